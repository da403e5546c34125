"""Graphs as instructions: programs that are right without any search."""

import os
import subprocess
import sys
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest

from evo.approximation.bits import ExactFunction
from evo.approximation.exact import exact_language
from evo.approximation.exact_task import ExactTask
from evo.approximation.nodes import Shared, parts_of, program_text
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


def many_shared(a, b):
    shared = [(a >> k) * (b | 1 << k) for k in range(20)]
    return shared[0] + shared[19] ^ sum(each * (other + 1) for each, other in pairwise(shared)), sum(shared)


def of_bytes(call, kind=np.uint8):
    return lambda a, b: call(a.view(kind), b.view(kind)).view(np.uint32)


def of_signed_bytes(call):
    return of_bytes(call, np.int8)


def of_halves(call):
    return of_bytes(call, np.int16)


def wider(a):
    return a.astype(f"i{2 * a.dtype.itemsize}")


# As words of lanes, and how many instructions that takes at most.
LANES = {
    "sum": (of_bytes(lambda a, b: a + b), 6),
    "small sum": (of_bytes(lambda a, b: (a & 15) + (b >> 2)), 4),
    "difference": (of_signed_bytes(lambda a, b: a - b), 6),
    "less one": (of_bytes(lambda a, b: (a >> 2 & 3) - 1), 4),
    "negative": (of_signed_bytes(lambda a, b: -a | b), 6),
    "shifts": (of_signed_bytes(lambda a, b: (a >> 3) ^ (b << 5)), 7),
    "logic": (of_halves(lambda a, b: ~a & (b | 0x1234)), 4),
    "products": (of_bytes(lambda a, b: (a & 7) * np.uint8(31) ^ b), 3),
    "limits": (of_signed_bytes(lambda a, b: np.clip(a, -7, 100) ^ np.minimum(b, 5)), 20),
    "average": (of_halves(lambda a, b: (wider(a) + b >> 1).astype(np.int16)), 5),
    "average, upwards": (of_signed_bytes(lambda a, b: (wider(a) + b + 1 >> 1).astype(np.int8)), 5),
    "average without a sign": (of_bytes(lambda a, b: (wider(a) + b + 1 >> 1).astype(np.uint8)), 4),
    "joined by shifts": (lambda a, b: sum(((a >> 8 * k & 255) ^ (b >> 8 * k & 15)) << 8 * k for k in range(4)), 3),
    "nibbles apart": (lambda a, b: sum((b >> 4 * k & 15) << 8 * k for k in range(4)), 7),
    "other bytes": (lambda a, b: np.stack([a.view(np.uint8)[k::4] for k in (2, 0, 3, 3)], 1).view(np.uint32)[:, 0] ^ b, 2),
    "f16": (
        lambda a, b: (
            (((np.stack([a >> 4, a >> 20], 1) & 15).astype(np.float16) - np.float16(8)) * np.float16(3)).view(np.uint32)[:, 0] ^ b
        ),
        7,
    ),
}
ROWS = np.random.default_rng(1).integers(0, 4, (4, 4), dtype=np.uint32)
SMALL = np.array([0.5, -1.25, 3, np.inf], np.float32)
FUNCTIONS |= {
    "a table of two axes": lambda a, b: ROWS[a & 3, b >> 30] + ROWS[2, a >> 31],
    "a table of floats": lambda a, b: (SMALL[a & 3] * np.float32(2)).view(np.uint32) ^ b,
}
CODES = np.random.default_rng(2).integers(0, 16, 256).astype(np.uint8)


def shared(a, b):
    for _ in range(32):  # as a tree, 2^32 nodes
        a = (a >> 1) ^ (a * 3 + b)
    return a


def root_of_16_bits(a, b):
    root, rest = np.zeros_like(a), a >> 16
    for k in range(14, -2, -2):
        more = root + np.uint32(1 << k)
        rest, root = (
            np.where(rest >= more, rest - more, rest),
            (root >> 1) + np.where(rest >= more, np.uint32(1 << k), np.uint32(0)),
        )
    return root ^ b


FUNCTIONS |= {
    "quotients with a sign": lambda a, b: (a.view(np.int32) // 7 + b.view(np.int8)[::4] // np.int8(3)).view(np.uint32),
    "a remainder with a sign": lambda a, b: (a.view(np.int32) % 10 * (b.view(np.int32) % 8)).view(np.uint32),
    "toward 0, in 64 bits": lambda a, b: (np.abs(a.view(np.int32).astype(np.int64)) // 7).astype(np.uint32) ^ b,
    "roots of bytes": lambda a, b: np.floor(np.sqrt((a >> 8 & 255).astype(np.float32))).astype(np.uint32) + b,
    "256 codes": lambda a, b: CODES[a >> 24].astype(np.uint32) ^ b,
    "a root in turns": root_of_16_bits,
    "2^32 nodes as a tree": shared,
}
FUNCTIONS |= {f"lanes: {name}": call for name, (call, _) in LANES.items()} | {"many shared": many_shared}


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


@pytest.mark.parametrize(("function", "most"), LANES.values(), ids=LANES, indirect=["function"])
def test_lanes_are_computed_together(function, most):
    assert 0 < len(parts_of(translated(function))) <= most


WIDE = np.random.default_rng(4).integers(0, 1 << 32, 256, dtype=np.uint32)


@pytest.mark.parametrize("function", [lambda a, b: WIDE[a & 255] + b], indirect=True)
def test_a_large_table_is_solved_as_a_value(function):
    assert not translated(function)
    tables = []
    nodes = translated(function, solve=lambda term: tables.append(term.value) or ("mul", ("%", 0), 3))
    assert nodes == [("add", ("mul", ("%", 0), 3), ("%", 1))]
    np.testing.assert_array_equal(tables, [WIDE])


def test_texts_are_not_longer_than_programs_may_be():
    function, node = ExactFunction("div7"), ("%", 0)
    for k in range(20):
        node = Shared(("add", node, k))
    assert len(program_text([node], function).split()) == 41
    many = [Shared(("mul", node, k)) for k in range(400)]
    with pytest.raises(OverflowError):
        program_text(many, function)


def rounded(x):
    return np.clip(np.rint(x), 0, 7).astype(np.uint8) + np.clip(np.round(x), -9, -2).astype(np.int32)


def unorm(x):
    return np.rint(x * np.float32(1023)).astype(np.uint32) << 10


rounded.types, rounded.precondition = ("f32",), "no_nan(x)"
unorm.types, unorm.precondition = ("f32",), "x <= 0x3f800000"


@pytest.mark.parametrize("function", [rounded, unorm], indirect=True)
def test_limited_floats_are_rounded_by_a_sum(function):
    nodes, points = translated(function), sample(function, 1 << 12, 7)
    assert "s32_of_f32" not in {node[0] for node in parts_of(nodes)}
    np.testing.assert_array_equal(results_of(function, program_text(nodes, function), points), np.stack(function(*points)))


def shift_and_addend(a):
    return (a >> (a >> 28) + 4) ^ (a << 3) + 9


@pytest.mark.parametrize("function", [shift_and_addend], indirect=True)
def test_a_shift_takes_an_addend(function):
    [text, *_] = synthesized(function, "sm_90", 1)
    assert {"madhi", "mad"} <= {*text.split()}


@pytest.mark.parametrize("function", [lambda a, b: a // (b | 1)], indirect=True)
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
def test_a_search_begins_with_the_graph(function, monkeypatch):
    monkeypatch.setattr("evo.approximation.synthesis.MOST_GOALS", 30)
    monkeypatch.setattr("evo.approximation.synthesis.MOST_THOROUGH", 3)
    points = sample(function, 1 << 12, 9)
    [result] = results_of(function, synthesized(function, "sm_90", 1)[0], points)
    assert (result == function(*points)[0])[function.condition(*points)].all()


RARE = 0x9E3779B1


def rarely_large(a):
    return np.where(a == RARE, a, a & 1023) // 7


@pytest.mark.parametrize("function", [rarely_large], indirect=True)
def test_programs_are_right_at_counterexamples(function, monkeypatch):
    monkeypatch.setattr("evo.approximation.synthesis.MOST_GOALS", 30)
    monkeypatch.setattr("evo.approximation.synthesis.MOST_THOROUGH", 3)
    program = ExactTask(function.text, counterexamples=[RARE]).programs()[0]
    [result] = results_of(function, program, [np.array([RARE, 1 << 10, 76], np.uint32)])
    assert result.tolist() == [RARE // 7, 0, 10]


def deep(a, b):
    for k in range(150):
        a = (a + k) ^ b
    return a


@pytest.mark.parametrize("function", [deep], indirect=True)
def test_a_deep_graph_is_not_translated(function):
    assert not translated(function)


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
