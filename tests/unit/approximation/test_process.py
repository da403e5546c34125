"""Checks of the process of a proof: its floats, and a hash of its sources that changes when these do."""

import ctypes
import importlib
import platform
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from evo.approximation.bits import ExactFunction
from evo.approximation.exact import certified_exact, exact_language
from evo.approximation.formats import FORMATS
from evo.approximation.functions import Function
from evo.approximation.process import check_float_mode, sources
from evo.approximation.sweep import Sweep
from evo.errors import UserError
from evo.instructions import shipped_instruction_set
from evo.language.program import Language, parse_program

# Of glibc's fenv_t: the word of the control register (MXCSR, FPCR), and its bits.
_WORD, MODES = {
    "x86_64": (7, {"flushed results": 1 << 15, "flushed operands": 1 << 6, "down": 1 << 13, "up": 2 << 13, "to zero": 3 << 13}),
    "aarch64": (0, {"flushed": 1 << 24, "up": 1 << 22, "down": 2 << 22, "to zero": 3 << 22}),
}[platform.machine()]


@contextmanager
def float_mode(bits):
    libm, kept, changed = ctypes.CDLL("libm.so.6"), (ctypes.c_uint32 * 8)(), (ctypes.c_uint32 * 8)()
    assert not libm.fegetenv(kept)
    changed[:] = kept
    changed[_WORD] |= bits
    try:
        assert not libm.fesetenv(changed)
        yield
    finally:
        libm.fesetenv(kept)


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_proven_with_other_floats(mode):
    check_float_mode()
    function, reason = ExactFunction("div10", "x < 256"), "flushes subnormal" if "flush" in mode else "round to the nearest"
    language = exact_language(function)
    words = parse_program(language, "3:b32 0xcccccccd:b32 %x mulhi shr", "test")
    real = Language(shipped_instruction_set("default"), (("x", "f32"),), (("y", "f32"),))
    sweep = Sweep(real, parse_program(real, "%x", "test"), Function("sin"), FORMATS["f32"], 1, 100, 1)
    for prove in (check_float_mode, lambda: certified_exact(language, words, function, target="sm_90"), sweep.run):
        with float_mode(MODES[mode]), pytest.raises(UserError, match=f"the CPU .*{reason}.*nothing can be proven"):
            prove()
    check_float_mode()
    assert certified_exact(language, words, function, target="sm_90").num_valid == 256


def test_sources_are_those_of_loaded_modules_that_are_not_installed(tmp_path, monkeypatch):
    found, installed = [sources()], tmp_path / "site-packages"
    installed.mkdir()
    for folder in (tmp_path, installed):
        monkeypatch.syspath_prepend(folder)
    for path, text in ((tmp_path / "of_mine.py", "A = 1"), (tmp_path / "of_mine.py", "A = 2"), (installed / "of_others.py", "")):
        path.write_text(text)
        importlib.import_module(path.stem)
        found.append(sources())
        assert sources() == found[-1]
    for name in ("of_mine", "of_others"):
        del sys.modules[name]
    assert len(set(found)) == 3 and found[3] == found[2] and sources() == found[0]


def test_versions_are_among_the_sources(monkeypatch):
    found = sources()
    monkeypatch.setattr("evo.approximation.process.version", lambda name: {"numpy": np.__version__}.get(name, "another"))
    assert sources() != found
