"""Targets of compiling for a GPU.

Owns the targets of the pinned assembler, and the way out for GPUs that are newer. Imports no compiler.
"""

# The architectures of nvPTXCompiler 13.0, as major and minor number in one.
ASSEMBLED = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)


def target_for(capability: tuple[int, int]) -> str:
    """The target for a GPU of at least compute capability 7.5.

    It is the newest of the GPU's own major version that the assembler has, such as `sm_103` for 10.7: cubins run on later minor
    versions. For a major version that it has not it is PTX, such as `compute_121`, which the driver assembles; PTX runs on all
    later GPUs.
    """
    major, minor = capability
    older = [number for number in ASSEMBLED if number <= 10 * major + minor]
    alike = [number for number in older if number // 10 == major]
    return f"sm_{alike[-1]}" if alike else f"compute_{older[-1]}"


def is_assembled_by_driver(target: str) -> bool:
    """Return whether modules for a target are PTX."""
    return target.startswith("compute_")


def architecture(target: str) -> str:
    """Architecture of a target, as PTX and assembler name it."""
    return target.replace("compute_", "sm_")
