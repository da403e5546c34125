"""Forged certificates of programs that are wrong somewhere, or under a weaker precondition: none may hold.

Whether a program is wrong is known by how it was made, or by NumPy at every half.
"""

import json
import sys
from itertools import product

import numpy as np
import pytest

from evo.approximation.bits import ExactFunction
from evo.approximation.certificate import check_certificate
from evo.approximation.exact import certified_exact, exact_language
from evo.approximation.exact_sweep import EVERY, PARTS, TESTED
from evo.approximation.nodes import program_text
from evo.approximation.smt import SOLVED
from evo.errors import UserError
from evo.evaluate.slots import slots_of
from evo.language.program import format_program, parse_program

MODULE = """
import numpy as np
def average(x, y):
    return (x.astype(np.uint64) + y >> 1).astype(np.uint32)
def tenth(x):
    return x // np.uint32(10)
tenth.precondition = "x < 2**16"
def tenth_of_all(x):
    return x // np.uint32(10)
def same(x):
    return x & np.uint32(0xFFFFFFFF)
same.types = ("f16x2",)
"""
X, Y = ("%", 0), ("%", 1)
AVERAGE = ("add", ("lop3_c0", X, Y, 0), ("shr", ("lop3_3c", X, Y, 0), 1))
TENTH = ("mulhi", X, 0x1999999A)  # wrong above 2^30 or so
ONE, ZEROS, BELOW_ZERO, TWO, HALF = 0x3C003C00, 0, 0x80008000, 0x40004000, 0x38003800
# Instructions of halves that might seem to change nothing, and what they are to NumPy.
STEPS = {
    "x + 0": (lambda x: ("add2_f16", x, ZEROS), lambda h: h + np.float16(0)),
    "x + -0": (lambda x: ("add2_f16", x, BELOW_ZERO), lambda h: h + np.float16(-0.0)),
    "x - -0": (lambda x: ("sub2_f16", x, BELOW_ZERO), lambda h: h - np.float16(-0.0)),
    "x * 1": (lambda x: ("mul2_f16", x, ONE), lambda h: h * np.float16(1)),
    "x * 2 / 2": (lambda x: ("mul2_f16", ("mul2_f16", x, TWO), HALF), lambda h: h * np.float16(2) * np.float16(0.5)),
    "x / 2 * 2": (lambda x: ("mul2_f16", ("mul2_f16", x, HALF), TWO), lambda h: h * np.float16(0.5) * np.float16(2)),
    "x * 1 + -0": (lambda x: ("fma2_f16", x, ONE, BELOW_ZERO), lambda h: h * np.float16(1) + np.float16(-0.0)),
    "max(x, x)": (lambda x: ("max2_f16", x, x), lambda h: h),
    "max(x, -65504)": (lambda x: ("max2_f16", x, 0xFBFFFBFF), lambda h: np.fmax(h, np.float16(-65504))),
    "min(x, inf)": (lambda x: ("min2_f16", x, 0x7C007C00), lambda h: np.fmin(h, np.float16(np.inf))),
}
CONDITIONS = {
    "": lambda h: h | True,
    "no_nan_f16x2(x)": lambda h: (h & 0x7FFF) <= 0x7C00,
    "finite_f16x2(x)": lambda h: (h & 0x7FFF) < 0x7C00,
}


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "of_forgers.py").write_text(MODULE)
    yield "of_forgers"
    sys.modules.pop("of_forgers", None)


def certificate_of(function, node):
    language = exact_language(function)
    words = parse_program(language, program_text([node], function), "test")
    return certified_exact(language, words, function, target="sm_90").model_dump(mode="json")


def with_program(function, data, node):
    """A certificate that says of another program what is true of it, but for its results."""
    language = exact_language(function)
    words = parse_program(language, program_text([node], function), "test")
    text = " ".join(format_program(language, words).split())  # as a certificate has it
    slots = float(language.lowering.sums(words[None], slots_of(language.instruction_set, "sm_90"))[0])
    return {**data, "program": text, "num_instructions": int(language.lowering.analyze(words[None])[1][0]), "slots": slots}


def wrong_at(node, bit, *at):
    """A node with a bit that is wrong at one input."""
    others = [("lop3_3c", ("%", k), word, 0) for k, word in enumerate(at)]
    differs = others[0] if len(at) == 1 else ("lop3_fc", *others, 0)
    return ("lop3_3c", node, ("shl", ("lop3_3c", ("min_u", differs, 1), 1, 0), bit), 0)


def holds(path, data, **asked):
    path.write_text(json.dumps(data))
    try:
        check_certificate(path, **asked)
    except UserError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("name", ["average", "tenth"])
def test_a_program_that_is_wrong_at_one_input_is_not_certified(module, tmp_path, name):
    node, code = {"average": AVERAGE, "tenth": TENTH}[name], f"{module}:{name}"
    if name == "average":
        pytest.importorskip("bitwuzla")
    function, random = ExactFunction(code), np.random.default_rng(46)
    data = certificate_of(function, node)
    assert data["method"] == (SOLVED if name == "average" else EVERY) and holds(tmp_path / "a.json", data, code=code)
    edges = [0, 0xFFFFFFFF, 0x80000000] if name == "average" else [0, 0xFFFF, 9]
    passed = []
    for k in range(20):
        at = [int(random.integers(1 << width)) if k >= len(edges) else edges[k] for width in function.widths]
        forged = with_program(function, data, wrong_at(node, int(random.integers(32)), *at))
        if holds(tmp_path / "a.json", {**forged, "method": (data["method"], EVERY, PARTS, SOLVED)[k % 4]}, code=code):
            passed.append(at)
    assert passed == []


@pytest.mark.slow
@pytest.mark.parametrize("condition", CONDITIONS)
def test_steps_that_change_few_numbers_are_certified_where_they_change_none(module, tmp_path, condition):
    code, halves = f"{module}:same", np.arange(1 << 16, dtype=np.uint16)
    function = ExactFunction(code, condition)
    data = certificate_of(function, ("lop3_c0", X, 0xFFFFFFFF, 0))
    is_valid, found, expected = CONDITIONS[condition](halves).astype(bool), {}, {}
    pairs = [*product(STEPS, STEPS)][[*CONDITIONS].index(condition) :: len(CONDITIONS)]  # each under one of the conditions
    for name, more in [*((name, "") for name in STEPS), *pairs]:
        first, numbers = STEPS[name]
        second, more_numbers = STEPS[more] if more else (lambda x: x, lambda h: h)
        with np.errstate(all="ignore"):
            made = more_numbers(numbers(halves.view(np.float16)))
        bits = np.where(np.isnan(made), np.uint16(0x7FFF), made.view(np.uint16))
        expected[name, more] = bool((bits == halves)[is_valid].all())
        try:
            forged = certificate_of(function, second(first(X)))
        except UserError:
            forged = with_program(function, data, second(first(X)))
        found[name, more] = holds(tmp_path / "a.json", forged, code=code, precondition=condition)
    assert sum(not each for each in expected.values()) >= 20
    assert found == expected


@pytest.mark.parametrize(
    "text", ["", "x < 2**17", "x < 65537", "x <= 2**16", "x >= 0", "(x < 2**16)", "x < 2**16 or x > 3", "x < 2**32"]
)
@pytest.mark.parametrize("name", ["tenth", "tenth_of_all"])
def test_a_weaker_precondition_is_not_certified(module, tmp_path, text, name):
    function = ExactFunction(f"{module}:tenth")
    data = certificate_of(function, TENTH)
    for method in (EVERY, TESTED, SOLVED):
        forged = {**data, "function": f"{module}:{name}", "precondition": text, "method": method}
        assert not holds(tmp_path / "a.json", forged, code=forged["function"])
