"""Instructions of constants are computed when a program is lowered, by the virtual machine's arithmetic."""

import itertools

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.language.program import Language, word
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx import Lowering, NodeKind
from evo.native.stack_ptx_words import WordType
from evo.native.tune import Tuner

SET = shipped_instruction_set("wide")
LANGUAGE = Language(SET, (("x", "f32"), ("y", "f32"), ("n", "u32")), (("f", "f32"), ("g", "u32")))
PLAIN = Lowering(SET, LANGUAGE.registers, LANGUAGE.requests, LANGUAGE.limits)
# Zeros, subnormals, infinities, NaNs with several payloads, and ordinary numbers.
FLOATS = (0x00000000, 0x80000000, 0x00000001, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC01234, 0x3F800000, 0xC0490FDB, 0x42C80000)
INTEGERS = (0, 1, 2, 31, 32, 0x80000000, 0xFFFFFFFF, 12345)


def encode(text: str, language: Language = LANGUAGE) -> np.ndarray:
    return np.array([language.encode(token) for token in text.split()] + [word(WordType.RETURN)], np.uint64)[None]


def cpu_instructions() -> list[str]:
    unsupported = VirtualMachine(PLAIN).unsupported
    return [instruction.name for instruction in SET.instructions if instruction.name not in unsupported]


def has_constants(name: str) -> bool:
    """Return whether each operand can be a constant: predicates and s32 values cannot."""
    args = SET.instructions[SET.instruction_index(name)].args
    return all(SET.stacks[SET.arg_types[index].stack_idx].constant_type for index in args)


@pytest.mark.parametrize("name", [name for name in cpu_instructions() if has_constants(name)])
def test_each_instruction_of_constants_gives_the_bits_that_it_gives_for_inputs(name):
    instruction = SET.instructions[SET.instruction_index(name)]
    types = [SET.arg_types[index].stack_idx for index in instruction.args]
    (result,) = (SET.arg_types[index].stack_idx for index in instruction.rets)
    prefixes = [SET.stacks[stack].literal_prefix for stack in types]
    registers = [*((f"in{i}", stack) for i, stack in enumerate(types)), ("out", result)]
    rows = list(itertools.product(*(FLOATS if prefix == "f32" else INTEGERS for prefix in prefixes)))
    rng = np.random.default_rng(3)
    rows = [rows[i] for i in rng.permutation(len(rows))[:60]]
    last = len(types)
    inputs = [word(WordType.INPUT, payload=i) for i in reversed(range(last))]
    one = np.array([[*inputs, word(WordType.PTX, payload=SET.instruction_index(name)), word(WordType.RETURN)]], np.uint64)
    plain = VirtualMachine(Lowering(SET, registers, [last], LANGUAGE.limits))
    columns = [np.array(column, np.uint32) for column in zip(*rows, strict=True)]
    expected = plain.store(one, [*columns, None]).view(np.uint32)[0, 0]
    folding = Lowering(SET, registers, [last], LANGUAGE.limits, folding=LANGUAGE.lowering.folding)
    for row, bits in zip(rows, expected, strict=True):
        constants = [word(WordType.CONSTANT, types[i], row[i]) for i in reversed(range(last))]
        words = np.array([*constants, word(WordType.PTX, payload=SET.instruction_index(name)), word(WordType.RETURN)], np.uint64)
        lowered = folding.lower(words)
        if SET.stacks[result].constant_type is None:
            assert lowered.num_instructions == 1  # it stays
        else:
            assert [(int(node["kind"]), int(node["payload"])) for node in lowered.nodes] == [(NodeKind.CONSTANT, bits)]


def test_an_operand_is_folded_at_each_place():
    for place in range(4):
        tokens = ["%n"] * place + ["2:u32 3:u32 add_u32"] + ["%n"] * (3 - place)
        assert LANGUAGE.lowering.lower(encode(" ".join([*tokens, "bfi_b32"]))[0]).num_instructions == 1


def test_folded_programs_compute_the_same_bits():
    rng = np.random.default_rng(11)
    usable = [SET.instruction_index(name) for name in cpu_instructions()]
    words = np.empty((600, 48), np.uint64)
    for cell in np.nditer(words, op_flags=["writeonly"]):
        draw = rng.random()
        if draw < 0.4:
            stack = int(rng.integers(2))
            pool = FLOATS if SET.stacks[stack].literal_prefix == "f32" else INTEGERS
            cell[...] = word(WordType.CONSTANT, stack, int(rng.choice(pool)))
        elif draw < 0.5:
            cell[...] = word(WordType.INPUT, payload=int(rng.integers(3)))
        else:
            cell[...] = word(WordType.PTX, payload=int(rng.choice(usable)))
    points = rng.normal(size=(2, 70)).astype(np.float32)
    inputs = [*points, rng.integers(0, 1 << 32, 70, np.uint32), None, None]
    (hashes, sizes), (plain_hashes, plain_sizes) = LANGUAGE.lowering.analyze(words), PLAIN.analyze(words)
    is_folded = (hashes != plain_hashes).any(axis=1)
    assert is_folded.sum() > 200
    assert (sizes <= plain_sizes).all() and (sizes < plain_sizes).sum() > 200
    np.testing.assert_array_equal(
        VirtualMachine(LANGUAGE.lowering).store(words, inputs).view(np.uint32),
        VirtualMachine(PLAIN).store(words, inputs).view(np.uint32),
    )
    for row in words[is_folded][:100]:
        lowered = LANGUAGE.lowering.lower(row)
        keys = [(node["kind"], node["stack_idx"], node["payload"], *operands_of(lowered, node)) for node in lowered.nodes]
        assert len(set(keys)) == len(keys)  # equal values are one, those that folding made equal too


def operands_of(lowered, node) -> tuple[int, ...]:
    first = int(node["first_operand"])
    return tuple(int(value) for value in lowered.operands[first : first + int(node["num_operands"])])


def test_constants_under_an_instruction_of_constants_are_tuned_all_the_same():
    language = Language(SET, (("x", "f32"),), (("f", "f32"),))
    x = np.linspace(0.1, 1.0, 64, dtype=np.float32)
    words = encode("%x 0.5 ex2_approx_ftz_f32 mul_ftz_f32", language)
    target = (x * 2.0**1.25).astype(np.float32)
    tuner = Tuner(VirtualMachine(language.lowering), [x, None], target, iterations=20, is_scaled=False)
    tuned, outcomes = tuner.tune(words)
    assert outcomes["num_parameters"].tolist() == [1]
    assert np.float32(1.25) == pytest.approx(np.uint32(tuned[0, 1] >> np.uint64(32)).view(np.float32), abs=1e-4)


@pytest.mark.parametrize("divisor", FLOATS)
def test_a_division_by_a_constant_is_the_product_with_its_reciprocal_bit_by_bit(divisor):
    words = encode(f"0x{divisor:08x}:f32 %x div_approx_ftz_f32")
    lowered = LANGUAGE.lowering.lower(words[0])
    names = [SET.instructions[int(node["payload"])].name for node in lowered.nodes if node["kind"] == NodeKind.PTX]
    assert names == ["mul_ftz_f32"]
    points = np.array([*FLOATS, *np.random.default_rng(2).integers(0, 1 << 32, 500, np.uint32)], np.uint32)
    inputs = [points, None, None, None, None]
    divided, multiplied = (VirtualMachine(each).store(words, inputs)[0, 0] for each in (PLAIN, LANGUAGE.lowering))
    np.testing.assert_array_equal(divided.view(np.uint32), multiplied.view(np.uint32))


def test_reciprocals_are_values_like_others():
    # x / 4 + y / 4 + y x / (1 + 3): one reciprocal, and one product of it with x.
    text = "4.0 %x div_approx_ftz_f32 4.0 %y div_approx_ftz_f32 add_ftz_f32 1.0 3.0 add_ftz_f32 %x div_approx_ftz_f32 "
    text += "%y fma_rn_ftz_f32"
    lowered = LANGUAGE.lowering.lower(encode(text)[0])
    constants = [int(node["payload"]) for node in lowered.nodes if node["kind"] == NodeKind.CONSTANT]
    assert constants == [0x3E800000]
    assert lowered.num_instructions == 4
    written = ("4.0 %x div_approx_ftz_f32", "0.25 %x mul_ftz_f32")
    (divided,), (multiplied,) = (LANGUAGE.lowering.analyze(encode(text))[0] for text in written)
    assert divided.tolist() == multiplied.tolist()


@pytest.mark.parametrize(("use", "num_nodes"), [("%x add_ftz_f32", 4), ("%x %y fma_rn_ftz_f32", 5)])
@pytest.mark.parametrize(("first", "then"), [("3.0", "1.0 2.0 add_ftz_f32"), ("1.0 2.0 add_ftz_f32", "3.0")])
def test_what_is_equal_to_a_computed_constant_is_one_with_it_wherever_it_stands(first, then, use, num_nodes):
    lowered = LANGUAGE.lowering.lower(encode(f"{first} {use} {then} {use} add_ftz_f32")[0])
    assert (lowered.num_instructions, len(lowered.nodes)) == (2, num_nodes)
