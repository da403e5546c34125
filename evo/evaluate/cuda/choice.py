"""Which lane runs a batch: `interpret`, without compiling, or `compile`.

Owns this choice, which changes no result: both lanes give the same bits on one device, and where they may not, a run is kept to
one of them.
"""

from __future__ import annotations

from statistics import median

AUTO, INTERPRET, COMPILE = "auto", "interpret", "compile"
LANES = (INTERPRET, COMPILE)

# Compiling a program takes a core about a millisecond, and interpreted it then runs some five times as long as compiled. With 16
# cores, and 15 us against 3 us for 32 instructions at a million points, the lanes break even at some five million. Estimated.
MAX_INTERPRETED_POINTS = 5_000_000

FIRST_S = 2.0  # of work before the other lane is tried
RECHECK_S = 300.0  # of work, after which both are tried again: programs have grown, and the machine may have been busy
NUM_TRIALS = 3  # batches each way, in turn, after one that warms up


def choose_lane(setting: str, num_points: int) -> str:
    """INTERPRET or COMPILE, before anything is measured.

    Args:
        setting: `evaluation.lane` of a config.
        num_points: at which a program is evaluated.
    """
    if setting != AUTO:
        return setting
    return INTERPRET if num_points <= MAX_INTERPRETED_POINTS else COMPILE


class LaneChoice:
    """The lane of each batch: the one that takes less time for an instruction, as batches in both show.

    Args:
        setting, num_points: as of `choose_lane`, which gives the lane of the first batches.
        opt_level: of the assembler. Above 0 rare programs have other bits compiled than interpreted
            (`evo.compile.assembler.choose_opt_level`), so that the first lane is kept.
    """

    def __init__(self, setting: str, num_points: int, opt_level: int = 0):
        self._is_free = setting == AUTO and opt_level == 0
        self._chosen = choose_lane(setting, num_points)
        self._spent_s = 0.0  # since the last trials
        self._until_trials_s = FIRST_S
        self._costs_s: dict[str, list[float]] = {lane: [] for lane in LANES}  # of an instruction, by trial

    @property
    def lane(self) -> str:
        """The lane of the next batch."""
        if not self._is_trial:
            return self._chosen
        return min(LANES, key=lambda lane: (len(self._costs_s[lane]), lane != self._chosen))

    def note(self, lane: str, seconds: float, num_instructions: int) -> None:
        """Takes the time of a batch with so many live instructions. Chooses after enough trials, by medians."""
        if not self._is_trial:
            self._spent_s += seconds
            return
        self._costs_s[lane].append(seconds / max(1, num_instructions))
        if min(map(len, self._costs_s.values())) > NUM_TRIALS:
            self._chosen = min(LANES, key=lambda each: (median(self._costs_s[each][1:]), each))
            self._costs_s = {each: [] for each in LANES}
            self._spent_s, self._until_trials_s = 0.0, RECHECK_S

    @property
    def _is_trial(self) -> bool:
        return self._is_free and self._spent_s >= self._until_trials_s
