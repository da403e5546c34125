"""Which lane runs a batch: `interpret`, without compiling, or `compile`.

Owns this choice, which changes no result: both lanes give the same bits on one device, and a device on which they do not is kept
on one of them.
"""

from __future__ import annotations

AUTO, INTERPRET, COMPILE = "auto", "interpret", "compile"

# Compiling a program takes a core about a millisecond, and interpreted it then runs some five times as long as compiled. With 16
# cores, and 15 us against 3 us for 32 instructions at a million points, the lanes break even at some five million. Estimated.
MAX_INTERPRETED_POINTS = 5_000_000


def choose_lane(setting: str, num_points: int) -> str:
    """INTERPRET or COMPILE.

    Args:
        setting: `evaluation.lane` of a config.
        num_points: at which a program is evaluated.
    """
    if setting != AUTO:
        return setting
    return INTERPRET if num_points <= MAX_INTERPRETED_POINTS else COMPILE
