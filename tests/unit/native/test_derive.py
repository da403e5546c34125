"""Derivatives of lowered programs: against central differences in float64, rule by rule and on random programs.

Python calls csrc/derive.h here alone, as a library of its own.
"""

import ctypes
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from compilers import CSRC, compiler, run
from float64_programs import run_float64
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evo.instructions import shipped_instruction_set
from evo.language.program import Language
from evo.native.stack_ptx import NO_VALUE, NODE_DTYPE, NodeKind
from evo.native.stack_ptx_tables import instruction_set_tables

SET = shipped_instruction_set("default")
INPUTS = (("x", "f32"), ("y", "f32"), ("n", "u32"))
LANGUAGE = Language(SET, INPUTS, (("f", "f32"),))
KEEP_CONSTANTS = 2**32 - 1
# The arrays of StackPtxLowered: type and number.
ARRAYS = {
    "nodes": (NODE_DTYPE, "num_nodes"),
    "operands": (np.uint32, "num_operands"),
    "value_nodes": (np.uint32, "num_values"),
    "value_stacks": (np.uint16, "num_values"),
    "request_values": (np.uint32, "num_requests"),
}
NUMBERS = ("num_nodes", "num_operands", "num_values", "num_requests", "num_instructions", "mode")
# Differentiable instructions by number of operands. selp takes a predicate besides.
UNARY = ("abs", "neg", "rcp_approx", "sqrt_approx", "rsqrt_approx", "sin_approx", "cos_approx", "lg2_approx", "ex2_approx")
BINARY = ("add", "sub", "mul", "div_approx", "min", "max")
NAMES = {
    1: (*(f"{name}_ftz_f32" for name in UNARY), "tanh_approx_f32"),
    2: (*(f"{name}_ftz_f32" for name in BINARY), "copysign_f32"),
    3: ("fma_rn_ftz_f32",),
}


class LoweredStruct(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_void_p) for name in ARRAYS), *((name, ctypes.c_uint32) for name in NUMBERS)]


def struct_of(lowered) -> LoweredStruct:
    arrays = {name: getattr(lowered, name) for name in ARRAYS}
    numbers = {number: len(arrays[name]) for name, (_, number) in ARRAYS.items()}
    addresses = {name: array.ctypes.data for name, array in arrays.items()}
    return LoweredStruct(**addresses, **numbers, num_instructions=lowered.num_instructions, mode=0)


@cache
def library() -> SimpleNamespace:
    """derive.h, and the rules of SET."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "derive.c"), Path(folder, "derive.so")
        source.write_text('#define DERIVE_IMPLEMENTATION\n#include "derive.h"\n')
        run(compiler("gcc"), "-std=c99", "-O1", "-shared", "-fPIC", "-I", CSRC, source, "-o", target)
        calls = ctypes.CDLL(str(target))
    tables = instruction_set_tables(SET)
    info = np.array(
        [
            *(tables.instruction_strings.addresses.ctypes.data, tables.descriptors.ctypes.data, len(tables.descriptors)),
            *(tables.special_strings.addresses.ctypes.data, tables.special_arg_types.ctypes.data, len(tables.special_arg_types)),
            *(tables.literal_prefixes.addresses.ctypes.data, len(tables.constant_types)),
            *(tables.arg_types.ctypes.data, len(tables.arg_types)),
        ],
        np.uintp,
    )
    size, rules, address = ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_void_p(info.ctypes.data)
    assert calls.derive_set_size(address, ctypes.byref(size)) == 0
    memory = np.empty(size.value, np.uint8)
    assert calls.derive_set_init(address, ctypes.c_void_p(memory.ctypes.data), size, ctypes.byref(rules)) == 0
    return SimpleNamespace(calls=calls, rules=rules, memory=memory)


def workspace(lowered: LoweredStruct, num_parameters: int) -> tuple[np.ndarray, tuple]:
    """Memory, and the two arguments that it is."""
    size = ctypes.c_size_t()
    assert library().calls.derive_size(ctypes.byref(lowered), ctypes.c_size_t(num_parameters), ctypes.byref(size)) == 0
    memory = np.empty(size.value, np.uint8)
    return memory, (ctypes.c_void_p(memory.ctypes.data), size)


def constants_of(lowered, request: int = 0) -> np.ndarray:
    """The nodes of the constants that matter."""
    struct, found, count = struct_of(lowered), np.empty(len(lowered.nodes), np.uint32), ctypes.c_size_t()
    _memory, arguments = workspace(struct, 0)
    result = library().calls.derive_constants(
        *(library().rules, ctypes.byref(struct), ctypes.c_size_t(request), *arguments),
        *(ctypes.c_void_p(found.ctypes.data), ctypes.c_size_t(len(found)), ctypes.byref(count)),
    )
    assert result == 0
    return found[: count.value].copy()


def derive(lowered, parameters, request: int = 0, first_register: int = KEEP_CONSTANTS) -> SimpleNamespace:
    """The derived program, with the fields of a `Lowered`."""
    struct, derived, chosen = struct_of(lowered), LoweredStruct(), np.array(parameters, np.uint32)
    _memory, arguments = workspace(struct, len(chosen))
    result = library().calls.derive_program(
        *(library().rules, ctypes.byref(struct), ctypes.c_size_t(request), ctypes.c_void_p(chosen.ctypes.data)),
        *(ctypes.c_size_t(len(chosen)), ctypes.c_uint32(first_register), *arguments, ctypes.byref(derived)),
    )
    assert result == 0

    def array(name: str) -> np.ndarray:
        dtype, number = np.dtype(ARRAYS[name][0]), getattr(derived, ARRAYS[name][1])
        return np.frombuffer(ctypes.string_at(getattr(derived, name), number * dtype.itemsize), dtype)

    return SimpleNamespace(**{name: array(name) for name in ARRAYS}, num_instructions=derived.num_instructions)


def lower(text: str):
    words = [LANGUAGE.encode(token) for token in text.split()]
    return LANGUAGE.lowering.lower(np.array(words, np.uint64), folding=False)


def constant_nodes(lowered) -> list[int]:
    return [i for i, node in enumerate(lowered.nodes) if node["kind"] == NodeKind.CONSTANT and node["stack_idx"] == 0]


def own_values(lowered, nodes) -> dict[int, float]:
    return {int(i): float(np.uint32(lowered.nodes[i]["payload"]).view(np.float32)) for i in nodes}


def difference(lowered, inputs, node: int, step: float) -> np.ndarray:
    """The central difference by a constant, in float64."""
    (value,) = own_values(lowered, [node]).values()
    above = run_float64(SET, lowered, inputs, {node: value + step})[0]
    below = run_float64(SET, lowered, inputs, {node: value - step})[0]
    return (np.asarray(above) - below) / (2 * step)


def derivatives(lowered, nodes, inputs) -> list[np.ndarray]:
    return run_float64(SET, derive(lowered, nodes), inputs, {})[1:]


# ---- rules ----


@pytest.mark.parametrize(("a", "b", "c"), [(0.7, 1.3, -0.4), (-0.6, 2.1, 0.9), (1.9, -0.8, 2.5)])
@pytest.mark.parametrize("name", [name for names in NAMES.values() for name in names])
def test_rule_equals_central_difference(name, a, b, c):
    num_operands = next(count for count, names in NAMES.items() if name in names)
    # Scaled, so that the adjoint of the result is not one.
    has_domain = any(part in name for part in ("sqrt", "lg2"))
    operands = [f"{abs(number) if has_domain else number}" for number in (a, b, c)[:num_operands]]
    lowered = lower(" ".join([*reversed(operands), name, "%x", "mul_ftz_f32"]))
    inputs = {0: 1.7}
    nodes = constant_nodes(lowered)
    assert len(nodes) == num_operands
    computed = derivatives(lowered, nodes, inputs)
    expected = [difference(lowered, inputs, node, 1e-6) for node in nodes]
    np.testing.assert_allclose(computed, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("text", "expected"),
    [  # the operand on top of the stack comes first
        ("0.0 sqrt_approx_ftz_f32", {"0.0": np.inf}),
        ("0.0 abs_ftz_f32", {"0.0": 1.0}),
        ("-0.0 abs_ftz_f32", {"-0.0": -1.0}),
        ("2.0 %x min_ftz_f32", {"2.0": 1.0}),  # min(x, 2) at x = 2: the second operand's
        ("%x 2.0 min_ftz_f32", {"2.0": 0.0}),
        ("2.0 %x max_ftz_f32", {"2.0": 0.0}),
        ("%x 2.0 max_ftz_f32", {"2.0": 1.0}),
        ("-3.0 5.0 copysign_f32", {"5.0": 0.0, "-3.0": -1.0}),  # the sign of 5, the magnitude of -3
        ("7.0 3.0 1.0 2.0 setp_lt_ftz_f32 selp_f32", {"7.0": 1.0, "3.0": 0.0, "1.0": 0.0, "2.0": 0.0}),  # not 2 < 1
    ],
)
def test_subgradient_is_the_documented_one(text, expected):
    lowered = lower(text)
    nodes = constant_nodes(lowered)
    computed = dict(zip(own_values(lowered, nodes).values(), derivatives(lowered, nodes, {0: 2.0}), strict=True))
    assert {repr(key): float(value) for key, value in computed.items()} == expected


def test_other_instructions_pass_none():
    listed = {name for names in NAMES.values() for name in names} | {"selp_f32", "f16_to_f32"}
    has_rule = library().calls.derive_set_has_rule
    has_rule.restype = ctypes.c_bool
    found = {each.name for i, each in enumerate(SET.instructions) if has_rule(library().rules, ctypes.c_size_t(i))}
    assert found == listed
    # x where x < c, otherwise 1: flat in c.
    lowered = lower("1.0 %x 0.5 %x setp_lt_ftz_f32 selp_f32")
    half = next(node for node, value in own_values(lowered, constant_nodes(lowered)).items() if value == 0.5)
    derived = derive(lowered, [half])
    assert derived.request_values[1] == NO_VALUE
    assert half not in constants_of(lowered)


# ---- the form of derived programs ----


def test_constants_are_those_that_matter_in_evaluation_order():
    lowered = lower("1.5 %x mul_ftz_f32 2.5 sin_approx_ftz_f32 add_ftz_f32 3:u32 cvt_rn_f32_u32 add_ftz_f32 9.0 swap.f32")
    values = own_values(lowered, constants_of(lowered))
    assert list(values.values()) == [1.5, 2.5]


# ---- random programs ----

CONSTANTS = st.sampled_from([0.25, -0.5, 0.75, 1.25, -1.5, 2.0, 3.0, -0.125])
TOKENS = st.one_of(
    st.sampled_from(["%x", "%y", "dup.f32", "swap.f32"]),
    CONSTANTS.map(str),
    st.sampled_from([name for names in NAMES.values() for name in names]),
    st.just("%x 0.5 setp_lt_ftz_f32 selp_f32"),
)
PROGRAMS = st.lists(TOKENS, min_size=4, max_size=30).map(" ".join)
POINTS = {0: np.linspace(0.31, 2.17, 7), 1: np.linspace(1.93, -1.41, 7)}


@given(PROGRAMS)
@settings(max_examples=300)
def test_gradient_equals_central_differences_where_these_are_reliable(text):
    lowered = lower(text)
    nodes = constants_of(lowered)
    for node, computed in zip(nodes, derivatives(lowered, nodes, POINTS), strict=True):
        coarse = difference(lowered, POINTS, int(node), 2e-6)
        fine = difference(lowered, POINTS, int(node), 1e-6)
        # Kinks, poles and rounding make the two differ.
        is_reliable = np.abs(coarse - fine) <= 1e-6 * (1 + np.abs(fine))
        is_reliable &= np.isfinite(computed) & (np.abs(fine) < 1e6)
        wrong = np.abs(computed - fine) > 1e-4 * (1 + np.abs(fine))
        assert not np.any(wrong & is_reliable), (text, node, computed, fine)


@given(PROGRAMS)
@example("%x 2.0 %y mul_ftz_f32 mul_ftz_f32 %x %y mul_ftz_f32 add_ftz_f32")  # whose derivative, y*x, is there as x*y
@settings(max_examples=200)
def test_derived_program_has_neither_dead_nor_equal_nodes(text):
    lowered = lower(text)
    nodes = constants_of(lowered)
    derived = derive(lowered, nodes, first_register=len(INPUTS))
    needed = {int(value) for value in derived.request_values if value != NO_VALUE}
    seen = set()
    for node in reversed(derived.nodes):
        first, count = int(node["first_operand"]), int(node["num_operands"])
        operands = [int(i) for i in derived.operands[first : first + count]]
        assert int(node["first_value"]) in needed
        assert all(operand < node["first_value"] for operand in operands)
        needed.update(operands)
        if node["kind"] == NodeKind.PTX:
            name = SET.instructions[node["payload"]].name
            commutes = name in ("add_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32")
            operands = [*sorted(operands[:2]), *operands[2:]] if commutes else operands
        key = (int(node["kind"]), int(node["payload"]), int(node["stack_idx"]), *operands)
        assert key not in seen
        seen.add(key)
    assert derived.num_instructions == sum(node["kind"] == NodeKind.PTX for node in derived.nodes)
