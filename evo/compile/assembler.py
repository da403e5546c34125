"""Options of the PTX assembler. Imports no assembler, so that a config can be read where there is no assembler."""

from __future__ import annotations

from evo.compile.targets import architecture

# A search compiles far more than it runs; see `assembler_options`.
DEFAULT_OPT_LEVEL = 1


def assembler_options(opt_level: int) -> tuple[str, ...]:
    """Options for an optimisation level from 0 to 3, which changes no result.

    Level 1 leaves as many of a program's instructions as level 3 and compiles a tenth faster, but schedules them less well.
    Level 0 compiles almost twice as fast and leaves half as many instructions again (docs/benchmarks.md).
    """
    # Without --fmad=false the assembler fuses a program's multiplications and additions: other bits than on the CPU.
    return ("--fmad=false", f"--opt-level={opt_level}")


DEFAULT_OPTIONS = assembler_options(DEFAULT_OPT_LEVEL)


def compiler_options(target: str, options: tuple[str, ...]) -> tuple[str, ...]:
    """What nvPTXCompiler is given for a target such as `sm_90`."""
    return (f"--gpu-name={architecture(target)}", *options)
