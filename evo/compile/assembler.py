"""Options of the PTX assembler. Imports no assembler, so that a config can be read where there is no assembler."""

from evo.compile.targets import architecture

# For cubins that are kept.
DEFAULT_OPT_LEVEL = 1

# Up to this many points level 0 pays. It saves 0.4 ms of a core for a program of 32 live instructions, and leaves 18 instructions
# more (docs/benchmarks.md). An H200 issues 132 x 128 of them at 1.7 GHz, so the 0.4 ms of one of 16 cores are 40 million points:
# 2 million for a GPU a tenth as fast beside twice as many cores.
MAX_POINTS_UNOPTIMISED = 2_000_000


def choose_opt_level(num_points: int) -> int:
    """The level for a run whose config names none. It depends on the task alone: a run that is resumed keeps it.

    It must: level 1 finds more constants than folding does, such as a choice between equal values, and computes approximate
    functions of these itself, with other bits than a GPU.
    """
    return 0 if num_points <= MAX_POINTS_UNOPTIMISED else DEFAULT_OPT_LEVEL


def assembler_options(opt_level: int) -> tuple[str, ...]:
    """Options for an optimisation level from 0 to 3. It changes no result but for what `choose_opt_level` says.

    Level 1 leaves as many of a program's instructions as level 3 and compiles a tenth faster, but schedules them less well.
    Level 0 compiles almost twice as fast and leaves half as many instructions again (docs/benchmarks.md).
    """
    # Without --fmad=false the assembler fuses a program's multiplications and additions: other bits than on the CPU.
    return ("--fmad=false", f"--opt-level={opt_level}")


DEFAULT_OPTIONS = assembler_options(DEFAULT_OPT_LEVEL)


def compiler_options(target: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """Options of nvPTXCompiler for a target such as `sm_90`."""
    return (f"--gpu-name={architecture(target)}", *options)
