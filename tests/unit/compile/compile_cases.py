"""Programs with constants to be known by, and compile functions that fail in every way there is.

Worker processes import these functions by name; they could not import a test module.
"""

import os
import signal
import time

import numpy as np

from evo.compile.request import Compiled, CompileFailure, render
from evo.errors import FailureKind
from evo.language.batch import Batch
from evo.language.program import Language, parse_program

BAD_CONSTANT = "0f42F6E979"  # 123.456 as a stub has it
BAD = "%x 123.456 mul_ftz_f32 %y sub_ftz_f32"


def reject(request):
    """As the compiler would of a program with the bad constant, in whatever company it is."""
    return CompileFailure(FailureKind.REJECTED, "line 1: bad") if BAD_CONSTANT.encode() in render(request) else Compiled(b"cubin")


def hang(request):
    if BAD_CONSTANT.encode() in render(request):
        time.sleep(600)
    return Compiled(b"cubin")


def die(request):
    if BAD_CONSTANT.encode() in render(request):
        os.kill(os.getpid(), signal.SIGSEGV)
    return Compiled(b"cubin")


def dispute(request):
    """No program is at fault, but two cannot be together."""
    return CompileFailure(FailureKind.REJECTED, "too many") if request.num_programs > 2 else Compiled(b"cubin")


def break_down(request):
    raise ZeroDivisionError("a defect of ours")


def programs(language: Language, texts: list[str]) -> Batch:
    """The batch of these programs."""
    max_length = max(len(text.split()) for text in texts) + 1
    words = np.stack([parse_program(language, text, "test", max_length) for text in texts])
    return Batch.analyze(language.lowering, words)


def constant_of(i: int) -> float:
    """A constant that no other program has, exact in f32, far from those that an assembler makes up."""
    return 1.0 + (i + 1) / 8192


def program_text(i: int, num_more: int = 0) -> str:
    """A multiplication by the program's own constant, an addition, and `num_more` multiplications by an input."""
    return f"%x {constant_of(i)!r} mul_ftz_f32 %y add_ftz_f32" + " %t mul_ftz_f32" * num_more


def append_and_sleep(path: str, seconds: float) -> int:
    """Tells the process id in a file, sleeps, and returns it."""
    with open(path, "a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(seconds)
    return os.getpid()
