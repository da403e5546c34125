"""Process that proves: its floating-point arithmetic, and the files of the modules that it has loaded.

Knows nothing of functions or proofs.
"""

import hashlib
import os
import sys
import sysconfig
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from evo.about import DISTRIBUTION
from evo.errors import UserError

_INSTALLED, _STDLIB = {"site-packages", "dist-packages"}, Path(sysconfig.get_path("stdlib"))


def check_float_mode() -> None:
    """Check that this thread's arithmetic keeps subnormal numbers and rounds to the nearest number.

    Raises:
        UserError: it does not, so that functions have other values than elsewhere.
    """
    for kind, word, digits in (("f4", "u4", 23), ("f8", "u8", 52)):
        tiny = np.array([1 << digits, 1], word).view(kind) * np.array([0.5, 2.0], kind)  # the least normal number and the least
        if tiny.view(word).tolist() != [1 << (digits - 1), 2]:
            raise UserError(
                "the CPU flushes subnormal numbers to 0, so nothing can be proven: a library that was compiled with -ffast-math"
                " may have switched this on as it was loaded"
            )
        sums = np.array([0.25, 0.75], kind) * np.array(2.0**-digits, kind) + np.ones(1, kind)
        if sums.tolist() != [1.0, 1.0 + 2.0**-digits]:
            raise UserError("the CPU does not round to the nearest number, so nothing can be proven: reset the rounding mode")


def sources() -> str:
    """SHA-256 of the versions of Python, NumPy and evo, and of the files of all loaded modules that are not installed."""
    facts = [sys.version, version("numpy"), version(DISTRIBUTION)]
    if "__file__" not in vars(sys.modules["__main__"]):  # a notebook, whose text is unknown
        facts.append(str(os.getpid()))
    files = {vars(module).get("__file__") for module in list(sys.modules.values()) if isinstance(module, ModuleType)}
    paths = [path for path in sorted(Path(file) for file in files if file and is_own(file)) if path.is_file()]
    facts += [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


@cache  # of thousands of modules, at each proof
def is_own(file: Any) -> bool:
    """Tell if a module's file is the user's own, not an installed one."""
    path = Path(file or _STDLIB / "builtins")
    return not _INSTALLED & {*path.parts} and _STDLIB not in path.parents
