"""Whole programs on the virtual machine: scheduling, memory, blocks, inputs, sums and errors.

Programs are checked against single instructions, each applied to whole arrays; those have their own references in
test_ptx_vm.py. Every run compares all SIMD levels bit by bit (`Machines.store`).
"""

import math
import re

import numpy as np
import pytest

from evo.language.program import word
from evo.native.ptx_vm import SUMS_DTYPE, Targets, VirtualMachine, levels
from evo.native.stack_ptx import NO_VALUE, Lowering, NodeKind
from evo.native.stack_ptx_words import WordType

NUM_POINTS = 300
REQUESTS = ("F32", "F32", "U32", "PRED")
RETURN = word(WordType.RETURN)


@pytest.fixture(scope="module")
def machines(make_machines):
    return make_machines(REQUESTS)


@pytest.fixture(scope="module")
def real_machines(make_machines):
    """One f32 request."""
    return make_machines(("F32",))


def input_values(seed: int, num_points: int = NUM_POINTS) -> dict[int, np.ndarray]:
    """Bits for every input register: uniform patterns, small numbers, zeros and NaNs."""
    rng = np.random.default_rng(seed)
    values = {}
    for register in range(7):
        bits = rng.integers(0, 1 << 32, num_points, np.uint32)
        small = rng.normal(size=num_points).astype(np.float32).view(np.uint32)
        special = rng.choice(
            np.array([0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC01234], np.uint32), num_points
        )
        kind = rng.integers(0, 4, num_points)
        values[register] = np.where(kind == 0, bits, np.where(kind == 1, special, small))
    values[6] = values[6] & 3
    return values


def random_words(machines, seed: int, num_programs: int, length: int) -> np.ndarray:
    """Programs of inputs, constants, instructions with CPU meaning and meta operations."""
    rng = np.random.default_rng(seed)
    instruction_set = machines.instruction_set
    unsupported = next(iter(machines.machines.values())).unsupported
    usable = [
        i
        for i, instruction in enumerate(instruction_set.instructions)
        if instruction.name not in unsupported
        and {instruction_set.arg_types[arg].name for arg in (*instruction.args, *instruction.rets)} <= {"F32", "U32", "PRED"}
    ]
    constants = [0x00000000, 0x80000000, 0x3F800000, 0xBF000000, 0x00000001, 0x7F800001, 0x7F800000, 0x40490FDB]
    words = np.empty((num_programs, length), np.uint64)
    for cell in np.nditer(words, op_flags=["writeonly"]):
        draw = rng.random()
        if draw < 0.3:
            cell[...] = word(WordType.INPUT, payload=int(rng.integers(7)))
        elif draw < 0.4:
            cell[...] = word(WordType.CONSTANT, int(rng.choice([0, 0, 0, 1, 8])), int(rng.choice(constants)))
        elif draw < 0.9:
            cell[...] = word(WordType.PTX, payload=int(rng.choice(usable)))
        else:
            cell[...] = word(WordType.META, int(rng.choice([0, 0, 1, 3])), int(rng.choice([0, 2, 7])))
    return words


def by_single_instructions(machines, lowered, values: dict[int, np.ndarray], run_instruction) -> np.ndarray:
    """The outputs of a lowered program, one instruction at a time over whole arrays."""
    arrays: dict[int, np.ndarray] = {}
    for node in lowered.nodes:
        first, payload = int(node["first_value"]), int(node["payload"])
        if node["kind"] == NodeKind.INPUT:
            arrays[first] = values[payload]
        elif node["kind"] == NodeKind.CONSTANT:
            arrays[first] = np.full(NUM_POINTS, payload, np.uint32)
        else:
            instruction = machines.instruction_set.instructions[payload]
            start = int(node["first_operand"])
            operands = [arrays[int(value)] for value in lowered.operands[start : start + int(node["num_operands"])]]
            philox = {"add_philox": "add_u32", "mul_lo_philox": "mul_lo_u32"}
            if instruction.name == "philox_to_u32":
                arrays[first] = operands[0]
            elif instruction.name == "xor_philox":
                arrays[first] = operands[0] ^ operands[1]
            elif instruction.name == "mul_hi_philox":
                arrays[first] = ((operands[0].astype(np.uint64) * operands[1]) >> np.uint64(32)).astype(np.uint32)
            else:
                arrays[first] = run_instruction(philox.get(instruction.name, instruction.name), *operands)
    rows = [np.zeros(NUM_POINTS, np.uint32) if v == NO_VALUE else arrays[int(v)] for v in lowered.request_values]
    rows[3] = (rows[3] != 0).astype(np.uint32)
    return np.stack(rows)


@pytest.mark.parametrize("seed", range(6))
def test_program_computes_what_its_instructions_compute_one_by_one(machines, run_instruction, seed):
    words, values = random_words(machines, seed, num_programs=25, length=80), input_values(seed)
    results = machines.store(words, values)
    num_instructions = 0
    for row, result in zip(words, results, strict=True):
        lowered = machines.lowering.lower(row)
        num_instructions += lowered.num_instructions
        np.testing.assert_array_equal(result, by_single_instructions(machines, lowered, values, run_instruction))
    assert num_instructions > 100


def test_all_levels_agree_on_long_random_programs(machines):
    results = machines.store(random_words(machines, seed=50, num_programs=60, length=400), input_values(50))
    assert len({row.tobytes() for row in results}) > 30


def test_uniform_input_equals_the_array_filled_with_it(machines):
    words, values = random_words(machines, seed=54, num_programs=30, length=60), input_values(54)
    uniform = {register: array[register] if register % 2 else array for register, array in values.items()}
    filled = {register: np.full(NUM_POINTS, array) if np.ndim(array) == 0 else array for register, array in uniform.items()}
    np.testing.assert_array_equal(machines.store(words, uniform), machines.store(words, filled))


def test_moved_bits_are_kept_and_computed_nans_are_canonical(real_machines):
    """A register that is only moved keeps a NaN's payload; inf - inf is PTX's NaN, also under copysign."""
    ptx = real_machines.instruction_set.instruction_index
    x, nan_bits = word(WordType.INPUT, payload=0), 0xFFC01234
    words = np.full((3, 8), RETURN, np.uint64)
    words[0, :1] = [x]
    words[1, :3] = [x, x, word(WordType.PTX, payload=ptx("sub_ftz_f32"))]
    words[2, :5] = [*words[1, :3], word(WordType.CONSTANT, 0, 0xBF800000), word(WordType.PTX, payload=ptx("copysign_f32"))]
    result = real_machines.store(words, {0: np.array([nan_bits, 0x7F800000], np.uint32)})[:, 0]
    np.testing.assert_array_equal(result, [[nan_bits, 0x7F800000], [0x7FFFFFFF] * 2, [0xFFFFFFFF] * 2])


@pytest.mark.parametrize(
    "function", ["lg2_approx_ftz_f32", "ex2_approx_ftz_f32", "tanh_approx_f32", "sin_approx_ftz_f32", "copysign_f32"]
)
@pytest.mark.parametrize("extreme", ["min_ftz_f32", "max_ftz_f32"])
def test_any_nan_loses_to_a_number_even_after_a_function(real_machines, function, extreme):
    ptx, x = real_machines.instruction_set.instruction_index, word(WordType.INPUT, payload=0)
    operands = [x] * len(real_machines.instruction_set.instructions[ptx(function)].args)
    words = [*operands, word(WordType.PTX, payload=ptx(function)), word(WordType.INPUT, payload=1)]
    words += [word(WordType.PTX, payload=ptx(extreme)), RETURN]
    nans = np.array([0x7F800001, 0xFF800001, 0x7FC00000, 0xFFC01234], np.uint32)
    numbers = np.array([1.5, -2.5, 0.0, -0.0], np.float32).view(np.uint32)
    result = real_machines.store(np.array([words], np.uint64), {0: nans, 1: numbers})[0, 0]
    np.testing.assert_array_equal(result, numbers)


@pytest.mark.parametrize("num_constants", [54, 55, 56, 57, 100])
def test_programs_with_many_constants_are_computed_at_every_level(real_machines, num_constants):
    """With more than some 50 constants AVX-512 is not the faster level, and the machine takes another."""
    add = word(WordType.PTX, payload=real_machines.instruction_set.instruction_index("add_ftz_f32"))
    constants = np.arange(1, num_constants + 1, dtype=np.float32) / 7
    words = [word(WordType.INPUT, payload=0)]
    for bits in constants.view(np.uint32):
        words += [word(WordType.CONSTANT, 0, int(bits)), add]
    x = np.random.default_rng(3).normal(size=NUM_POINTS).astype(np.float32)
    expected = x.copy()
    for constant in constants:
        expected += constant
    result = real_machines.store(np.array([[*words, RETURN]], np.uint64), {0: x})[0, 0]
    np.testing.assert_array_equal(result, expected.view(np.uint32))


def test_outputs_go_into_the_given_array(machines):
    words, values = random_words(machines, 57, 4, 40), machines.inputs(input_values(57))
    machine = machines.machines["baseline" if "baseline" in machines.machines else "portable"]
    out = np.empty((4, 4, NUM_POINTS), np.uint32)
    assert machine.store(words, values, out) is out
    np.testing.assert_array_equal(out, machine.store(words, values))


def test_floating_point_mode_of_the_thread_is_restored(machines):
    machines.store(random_words(machines, 59, 4, 40), input_values(59))
    assert np.array([1e-42], np.float32)[0] * np.float32(0.5) != 0


# ---- sums ----


def regression_case(real_machines, num_points: int):
    """x - x / y for each x, y: some infinite or NaN where y is 0; targets with a few infinities."""
    ptx = real_machines.instruction_set.instruction_index
    x, y = word(WordType.INPUT, payload=0), word(WordType.INPUT, payload=1)
    div, sub = (word(WordType.PTX, payload=ptx(name)) for name in ("div_approx_ftz_f32", "sub_ftz_f32"))
    words = np.array([[y, x, div, x, sub, RETURN], [x, RETURN, 0, 0, 0, 0], [RETURN, 0, 0, 0, 0, 0]], np.uint64)
    rng = np.random.default_rng(60)
    values = {0: rng.normal(size=num_points).astype(np.float32), 1: rng.integers(-20, 20, num_points).astype(np.float32)}
    targets = (values[0] * 1.5 + rng.normal(size=num_points)).astype(np.float32)[None]
    targets[0, ::101] = np.inf
    return words, values, targets


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("num_points", [1, 1024, 12_345])
def test_sums_equal_exactly_rounded_ones_over_finite_points(real_machines, num_points, is_weighted):
    words, values, targets = regression_case(real_machines, num_points)
    weights = np.random.default_rng(61).uniform(0.1, 3.0, num_points).astype(np.float32) if is_weighted else None
    outputs = real_machines.store(words, values).view(np.float32)[:, 0]
    seen = set()
    for machine in real_machines.machines.values():
        sums = machine.reduce(words, real_machines.inputs(values), Targets(targets, weights))
        assert sums.shape == (3, 1)
        assert sums.dtype == SUMS_DTYPE
        seen.add(sums.tobytes())
        for row, output in zip(sums[:, 0], outputs, strict=True):
            keep = np.isfinite(output) & np.isfinite(targets[0])
            y, t = output[keep].astype(np.float64), targets[0][keep].astype(np.float64)
            assert row["num_points"] == num_points
            assert row["num_nonfinite"] == num_points - keep.sum()
            assert row["max_abs_error"] == np.abs(y - t).max(initial=0)
            w = np.ones(len(y)) if weights is None else weights[keep].astype(np.float64)
            assert row["reference_t"] == (targets[0, 0] if np.isfinite(targets[0, 0]) else 0)
            assert row["reference_y"] == (output[0] if keep[0] else row["reference_t"])
            errors, y, t = y - t, y - row["reference_y"], t - row["reference_t"]
            terms = {"weight": 1.0, "sum_y": y, "sum_t": t, "sum_yy": y * y, "sum_tt": t * t, "sum_yt": y * t}
            for name, term in (terms | {"sum_squared_error": errors**2}).items():
                values_of = w * term
                assert row[name] == pytest.approx(math.fsum(values_of), rel=1e-13, abs=1e-13 * np.abs(values_of).sum())
    assert len(seen) == 1


def test_weights_of_one_change_no_bit(real_machines):
    words, values, targets = regression_case(real_machines, 3000)
    for machine in real_machines.machines.values():
        plain, weighted = (
            machine.reduce(words, real_machines.inputs(values), Targets(targets, weights))
            for weights in (None, np.ones(3000, np.float32))
        )
        assert plain.tobytes() == weighted.tobytes()


# ---- errors ----


def wrong_calls(machines) -> dict:
    """Messages of errors -> calls, of a machine whose registers all have values but where `changed` has others."""
    machine, good = list(machines.machines.values())[-1], machines.inputs(input_values(65))
    names = [special.ptx for special in machines.instruction_set.special_registers]
    ptx = machines.instruction_set.instruction_index
    nothing, memory = np.array([[RETURN]], np.uint64), np.zeros(4 * NUM_POINTS, np.uint32)
    no_meaning = [word(WordType.INPUT, payload=3), *(word(WordType.PTX, payload=ptx(n)) for n in ("u32_to_v4_u8", "cvt_u32_u8"))]
    laneid = [[RETURN, RETURN], [word(WordType.SPECIAL, payload=names.index("laneid")), RETURN]]
    pair = machines.instruction_set.stack_index("U8")
    pairs = Lowering(machines.instruction_set, [("a", pair)], [0], machines.lowering.limits)

    def changed(register: int, values) -> list:
        return [values if i == register else array for i, array in enumerate(good)]

    def store(words, inputs=good, *out):
        return lambda: machine.store(np.array(words, np.uint64) if isinstance(words, list) else words, inputs, *out)

    zeros, expected = np.zeros(NUM_POINTS), "expected an array of type float32 or uint32, got"
    return {
        f"SIMD level 'sse9' is not available here, one of: {levels()[0]}": lambda: VirtualMachine(machines.lowering, "sse9"),
        "program 0: instruction u32_to_v4_u8 has no CPU meaning": store([no_meaning]),
        "program 1: special register %laneid has no CPU meaning": store(laneid),
        "program 0: reads register 'reg_1', which has no values": store([[word(WordType.INPUT, payload=1)]], changed(1, None)),
        "input 'a': expected an array of type none, as u8 has no CPU meaning, got uint32": lambda: VirtualMachine(pairs).store(
            nothing, [np.zeros(3, np.uint32)]
        ),
        f"input 'reg_0': {expected} float64": store(nothing, changed(0, zeros)),
        f"input 'reg_0': {expected} >f4": store(nothing, changed(0, zeros.astype(">f4"))),
        "input 'reg_2': expected shape (300,) or (), got (299,)": store(nothing, changed(2, zeros[1:].astype(np.float32))),
        "inputs: expected one for each of the 11 registers, got 10": store(nothing, good[:10]),
        "inputs: at least one must be an array of shape (num_points,)": store(nothing, [None] * 11),
        "words: expected uint64": store(nothing.astype(np.int64)),
        "out: expected writable contiguous uint32 of shape (1, 4, 300)": store(nothing, good, np.empty((1, 4, 300), np.float32)),
        "out: overlaps an input; expected memory of its own": store(
            nothing, changed(3, memory[300:600]), memory.reshape(1, 4, NUM_POINTS)
        ),
        "every request must be an f32": lambda: machine.reduce(nothing, good, Targets(np.zeros((4, NUM_POINTS), np.float32))),
        "targets: expected those of 4 requests, got 3": lambda: machine.reduce(
            nothing, good, Targets(np.zeros((3, 300), np.float32))
        ),
        "weights: expected float32 of shape (300,)": lambda: Targets(np.zeros((4, 300), np.float32), np.ones(300)),
        "targets: expected float32 of shape (num_requests, num_points)": lambda: Targets(np.zeros(300, np.float32)),
    }


def test_wrong_calls_are_refused_by_name(machines):
    for message, call in wrong_calls(machines).items():
        with pytest.raises(ValueError, match=re.escape(message)):
            call()
