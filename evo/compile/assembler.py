"""Options of the PTX assembler. Imports nothing, so that a config can be read where there is no assembler."""

from __future__ import annotations

# Level 1 leaves as many instructions of a program as 3 and compiles a tenth faster, but orders them less well. Level 0 compiles
# almost twice as fast, and leaves half as many instructions again (docs/benchmarks.md).
DEFAULT_OPT_LEVEL = 1
