"""The lane that runs batches: `interpret`, without compiling, or `compile`.

Owns this choice, which changes no result: both lanes give the same bits on one device, and where they may not, a run is kept to
one of them.
"""

AUTO, INTERPRET, COMPILE = "auto", "interpret", "compile"
LANES = (INTERPRET, COMPILE)

# Compiling a program of 32 instructions takes 16 cores about 60 us, while kernels run, and interpreting it takes a GPU 10 us for
# a million points. So the lanes break even at some six million. Estimated.
MAX_INTERPRETED_POINTS = 6_000_000


def choose_lane(setting: str, num_points: int) -> str:
    """INTERPRET or COMPILE.

    Args:
        setting: `evaluation.lane` of a config.
        num_points: at which a program is evaluated.
    """
    if setting != AUTO:
        return setting
    return INTERPRET if num_points <= MAX_INTERPRETED_POINTS else COMPILE
