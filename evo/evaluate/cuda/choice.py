"""Which lane runs a batch: `interpret`, without compiling, or `compile`.

Owns this choice, which changes no result: both lanes give the same bits on one device, and where they may not, a run is kept to
one of them.
"""

from evo.evaluate.trials import Trials

AUTO, INTERPRET, COMPILE = "auto", "interpret", "compile"
LANES = (INTERPRET, COMPILE)

# Compiling a program of 32 instructions takes 16 cores about 60 us, while kernels run, and interpreting it takes a GPU 10 us for
# a million points. So the lanes break even at some six million. Estimated.
MAX_INTERPRETED_POINTS = 6_000_000

# Of `evo.evaluate.trials`. Programs grow, so both lanes are tried again.
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


def lane_trials(setting: str, num_points: int, opt_level: int = 0) -> Trials:
    """The lane of each batch: the one that takes less time for an instruction, as batches in both show.

    Args:
        setting, num_points: as of `choose_lane`, which gives the lane of the first batches.
        opt_level: of the assembler. Above 0 rare programs have other bits compiled than interpreted
            (`evo.compile.assembler.choose_opt_level`), so that the first lane is kept. Backend `auto` names the one that it
            has measured to be faster.
    """
    first = choose_lane(setting, num_points)
    ways = LANES if setting == AUTO and opt_level == 0 else (first,)
    return Trials(ways, first, num_trials=NUM_TRIALS, first_s=FIRST_S, recheck_s=RECHECK_S)
