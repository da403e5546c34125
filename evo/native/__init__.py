"""The compiled extensions: one thin module per C header of csrc/, and one for nvPTXCompiler.

Owns how they are found. Knows nothing of tasks, search or files.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("evo.native.stack_ptx") is None:
    # Python was started in the source folder, which hides the installed package that has the extensions.
    __path__ += [str(folder) for entry in sys.path if any((folder := Path(entry, "evo", "native")).glob("stack_ptx.*.so"))][:1]
    if find_spec("evo.native.stack_ptx") is None:
        raise ImportError(
            "evo's compiled extensions are missing: this is the source folder, and evo is not installed; run: pip install ."
        )
