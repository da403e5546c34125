"""Which lane runs a batch: `interpret`, without compiling, or `compile`.

Owns this choice, which changes no result: both lanes give the same bits on one device, and where they may not, a run is kept to
one of them.
"""

from collections.abc import Sequence
from statistics import median

AUTO, INTERPRET, COMPILE = "auto", "interpret", "compile"
LANES = (INTERPRET, COMPILE)

# Compiling a program of 32 instructions takes 16 cores about 60 us, while kernels run, and interpreting it takes a GPU 10 us for
# a million points. So the lanes break even at some six million. Estimated.
MAX_INTERPRETED_POINTS = 6_000_000

# Seconds of work before the first trials and before the next ones, since programs grow; batches in each lane, in turn, after one
# that warms up.
FIRST_S, RECHECK_S, NUM_TRIALS = 2.0, 300.0, 3
# Most programs of a batch that try the lane that is not chosen, which may take many times as long: one pack interpreted, and
# compiled half a second of a core.
TRIAL_PROGRAMS = 1024


def choose_lane(setting: str, num_points: int) -> str:
    """INTERPRET or COMPILE, before anything is measured.

    Args:
        setting: `evaluation.lane` of a config.
        num_points: at which a program is evaluated.
    """
    if setting != AUTO:
        return setting
    return INTERPRET if num_points <= MAX_INTERPRETED_POINTS else COMPILE


class Trials:
    """The lane of each batch: the chosen one, until trials show which is the fastest; then that one, until the next trials. They
    decide no result: all lanes give the same bits.

    Args:
        lanes: of which the first wins a tie.
        chosen: the lane before the first trials.
    """

    def __init__(self, lanes: Sequence[str], chosen: str):
        self.chosen = chosen
        self._lanes = lanes
        self._until_s, self._spent_s = FIRST_S, 0.0  # the latter since the last choice
        self._costs_s: dict[str, list[float]] = {lane: [] for lane in lanes}  # of a unit of work, by trial

    @property
    def lane(self) -> str:
        """The lane of the next batch."""
        if self._spent_s < self._until_s:
            return self.chosen
        return min(self._lanes, key=lambda lane: (len(self._costs_s[lane]), lane != self.chosen))

    def note(self, lane: str, seconds: float, amount: int) -> None:
        """Takes the time of a batch with this amount of work. Chooses after enough trials, by medians: a busy moment decides
        nothing.
        """
        if self._spent_s < self._until_s:
            self._spent_s += seconds
            return
        self._costs_s[lane].append(seconds / max(1, amount))
        if min(map(len, self._costs_s.values())) > NUM_TRIALS:
            self.chosen = min(self._lanes, key=lambda each: median(self._costs_s[each][1:]))
            self._costs_s = {each: [] for each in self._lanes}
            self._until_s, self._spent_s = RECHECK_S, 0.0


def lane_trials(setting: str, num_points: int, opt_level: int = 0) -> Trials:
    """The lane of each batch: the one that takes less time for an instruction, as batches in both show.

    Args:
        setting, num_points: as of `choose_lane`, which gives the lane of the first batches.
        opt_level: of the assembler. Above 0 rare programs have other bits compiled than interpreted
            (`evo.compile.assembler.choose_opt_level`), so that the first lane is kept. Backend `auto` names the one that it
            has measured to be faster.
    """
    first = choose_lane(setting, num_points)
    return Trials(LANES if setting == AUTO and opt_level == 0 else (first,), first)
