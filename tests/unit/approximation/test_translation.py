"""Graphs as instructions: programs that are right without any search."""

import os
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest

from evo.approximation.bits import ExactFunction
from evo.approximation.exact import exact_language
from evo.approximation.exact_task import ExactTask
from evo.approximation.nodes import program_text
from evo.approximation.samples import sample
from evo.approximation.synthesis import synthesized
from evo.approximation.translation import translated
from evo.language.program import parse_program
from evo.native.ptx_vm import VirtualMachine

TABLE = np.random.default_rng(0).integers(0, 1 << 32, 11, dtype=np.uint32)


def wide(a):
    return a.astype(np.uint64)


def signed(a):
    return a.view(np.int32)


FUNCTIONS = {
    "bits": lambda a, b: ((a & b | ~a) ^ (b | 0xF0), a & 0xFF),
    "shifts": lambda a, b: (a << (b & 63)) + (b >> (a & 63)) + (signed(a) >> signed(b & 63)).view(np.uint32),
    "wide sum": lambda a, b: ((wide(a) + b >> 1).astype(np.uint32), ((wide(a) << 9) - (wide(b) << 4) >> 30).astype(np.uint32)),
    "wide product": lambda a, b: (wide(a) * b * 5 >> 33).astype(np.uint32),
    "signed product": lambda a, b: (signed(a).astype(np.int64) * signed(b) >> 30).astype(np.uint32),
    "wide and signed": lambda a, b: (np.minimum(signed(a).astype(np.int64) + signed(b), 77) << 3 >> 2).astype(np.uint32),
    "saturated": lambda a, b: np.clip(signed(a).astype(np.int64) + signed(b), -(1 << 31), (1 << 31) - 1).astype(np.uint32),
    "quotients": lambda a, b: a // 7 + a % 10 * 3 + b // 641 + a // 1 + b // 64,
    "bytes": lambda a, b: np.maximum(a.view(np.uint8), b.view(np.uint8) + np.uint8(3)).view(np.uint32),
    "signed halves": lambda a, b: np.abs(a.view(np.int16) - b.view(np.int16)).view(np.uint32),
    "compared": lambda a, b: np.where((a < b) | (signed(a) >= signed(b)), a, b) + (a == b) + (a != 7),
    "truths": lambda a, b: (np.logical_or(a, b) & np.logical_not(b & 3)) ^ (a & 1).astype(bool),
    "table": lambda a, b: np.take_along_axis(TABLE, (a ^ b) % 11, 0),
    "counted": lambda a, b: np.bitwise_count(a) + np.bitwise_count(signed(b)),
    "floats": lambda a, b: np.clip(np.rint((a & 0xFFFF).astype(np.float32) * np.float32(0.3)), 0, 99).astype(np.uint8) + b,
    "halves": lambda a, b: (
        ((a & 0x3BFF).astype(np.uint16).view(np.float16) * np.float16(3)).view(np.uint16).astype(np.uint32) + b
    ),
}


@pytest.fixture
def function(monkeypatch, request):
    module = ModuleType("translated_functions")
    module.f = request.param
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return ExactFunction("translated_functions:f")


def results_of(function, text, points):
    language = exact_language(function)
    words = parse_program(language, text, "test")
    return VirtualMachine(language.lowering).store(words[None], [*points, *[None] * len(function.outputs)])[0].view(np.uint32)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS, indirect=True)
def test_instructions_compute_what_numpy_does(function):
    points = sample(function, 1 << 12, 7)
    results = results_of(function, program_text(translated(function), function), points)
    np.testing.assert_array_equal(results, np.stack(function(*points)))


@pytest.mark.parametrize(
    "function",
    [lambda a, b: np.take_along_axis(np.arange(64, dtype=np.uint32), a & 63, 0) + b, lambda a, b: a // (b | 1)],
    indirect=True,
)
def test_a_function_without_instructions_of_its_own_is_not_translated(function):
    assert translated(function) == []


def hundreds(a, b):
    return (a & 255) // 100 + b // 100


@pytest.mark.parametrize("function", [hundreds], indirect=True)
def test_a_quotient_takes_as_many_instructions_as_its_numbers_need(function):
    of_byte, of_word = translated(function)[0][1:]
    assert (of_byte[0], of_word[0], of_word[1][0]) == ("mulhi", "shr", "mulhi")


def of_floats(x, scale):
    return np.clip(np.rint(x * scale), -128, 127).astype(np.int32)


of_floats.types = ("f32", "f32")
of_floats.precondition = "finite(x) and finite(scale)"


@pytest.mark.parametrize("function", [of_floats], indirect=True)
def test_a_search_begins_with_the_graph(function):
    points = sample(function, 1 << 12, 9)
    [result] = results_of(function, synthesized(function, "sm_90", 1)[0], points)
    assert (result == function(*points)[0])[function.condition(*points)].all()


RARE = 0x9E3779B1


def rarely_large(a):
    return np.where(a == RARE, a, a & 1023) // 7


@pytest.mark.parametrize("function", [rarely_large], indirect=True)
def test_programs_are_right_at_counterexamples(function):
    program = ExactTask(function.text, counterexamples=[RARE]).programs()[0]
    [result] = results_of(function, program, [np.array([RARE, 1 << 10, 76], np.uint32)])
    assert result.tolist() == [RARE // 7, 0, 10]


def shared(a, b):
    for _ in range(32):  # as a tree, 2^32 nodes
        a = (a >> 1) ^ (a * 3 + b)
    return a


def deep(a, b):
    for k in range(150):
        a = (a + k) ^ b
    return a


@pytest.mark.parametrize("function", [shared, deep], indirect=True)
def test_a_graph_that_is_large_as_a_tree_is_not_translated(function):
    assert translated(function) == []


@pytest.mark.slow
def test_a_synthesis_is_the_same_in_each_process():
    code = """
from evo.approximation import zoo
from evo.approximation.bits import ExactFunction
from evo.approximation.synthesis import synthesized
zoo.f = lambda a, b, c: sum(np.clip(x.view(np.int32), 0, 1023).astype(np.uint32) << 10 * k for k, x in enumerate((a, b, c)))
print(synthesized(ExactFunction("evo.approximation.zoo:f"), "sm_90", 1))
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", "import numpy as np" + code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        for seed in ("1", "3")
    ]
    assert runs[0].stdout == runs[1].stdout and len(runs[0].stdout) > 10
