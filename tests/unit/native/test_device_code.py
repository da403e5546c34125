"""Device code: that it computes what the virtual machine does, with slots used again, and what is told of other programs."""

import numpy as np
import pytest
from device_steps import Step, places_of, register_steps_of, steps_of

from evo.instructions import shipped_instruction_set
from evo.kernel.interpreter_cases import ACCUMULATOR, IS_STORED, KEEP, LOAD_CONSTANT, LOAD_SLOT, NO_CASE, SLOT, cases_of
from evo.kernel.register_cases import register_cases_of
from evo.language.program import Language, parse_program
from evo.native.device_code import NUM_EXTRA_WORDS, DeviceEncoder, Encoded, max_words
from evo.native.ptx_vm import VirtualMachine
from evo.native.row_threads import RowThreads

SET = shipped_instruction_set("default")
LANGUAGE = Language(SET, (("x", "f32"), ("y", "f32")), (("z", "f32"), ("x", "f32"), ("w", "f32")))
NUM_INPUTS, FIRST_OUTPUT = 2, 60
NUM_REGISTERS = 24
CASES = cases_of(SET)
# Exact instructions, whose results NumPy has too. The programs below stay clear of NaN and of subnormals.
MEANINGS = {
    "add_ftz_f32": np.add,
    "sub_ftz_f32": np.subtract,
    "mul_ftz_f32": np.multiply,
    "min_ftz_f32": np.minimum,
    "max_ftz_f32": np.maximum,
    "neg_ftz_f32": np.negative,
    "abs_ftz_f32": np.abs,
    "selp_f32": lambda a, b, p: np.where(p.view(np.uint32) != 0, a, b),
    "setp_lt_ftz_f32": lambda a, b: (a < b).astype(np.uint32).view(np.float32),
}


def encoder(num_slots: int = 20, names=None) -> DeviceEncoder:
    cases = CASES if names is None else cases_of(SET, names)
    return DeviceEncoder(LANGUAGE.lowering, cases.numbers, [0, 1, 63, 63], NUM_INPUTS, num_slots)


def encode(words: np.ndarray, row_threads: RowThreads | None = None, **kernel) -> tuple[np.ndarray, list[list[Step]]]:
    """The state of each program, and the steps of those that have any."""
    _, num_instructions = LANGUAGE.lowering.analyze(words)
    places = np.concatenate([[0], np.cumsum(max_words(num_instructions.astype(np.int64), 3) + NUM_EXTRA_WORDS)])
    code, starts = np.full(places[-1] + 9, 99, np.uint32), np.zeros(len(words), np.uint32)
    made = encoder(**kernel)
    results = made.encode(words, np.arange(len(words)), places, code, starts, FIRST_OUTPUT, row_threads)
    assert (code[places[1:] - 1] == 99).all() and (code[places[-1] :] == 99).all()
    assert (starts == places[:-1]).all()
    return results, [steps_of(code, start, CASES.numbers) for start in starts[results == Encoded.OK]]


def stores(steps: list[Step]) -> list[int]:
    """The vectors that steps store to."""
    return [step.result for step in steps if step.case & IS_STORED]


def run(steps: list[Step], inputs: list[np.ndarray]) -> tuple[np.ndarray, set[int]]:
    """Contents of the vectors of the outputs after the steps, as the header describes it, and the vectors that they store to."""
    vectors: dict[int, np.ndarray] = dict(enumerate(inputs))
    accumulator, stored = None, set()
    case_of = {int(CASES.numbers[i, f]): (i, f) for i, f in np.argwhere(CASES.numbers != NO_CASE)}
    for step in steps:
        places, constant = iter(step.vectors), np.full(len(inputs[0]), step.extra or 0, np.uint32).view(np.float32)
        case = step.case & ~IS_STORED
        if case == LOAD_SLOT:
            accumulator = vectors[next(places)]
        elif case == LOAD_CONSTANT:
            accumulator = constant
        elif case != KEEP & ~IS_STORED:
            index, form = case_of[case]
            instruction = SET.instructions[index]
            values = []
            for k in range(len(instruction.args)):
                place = form // 3**k % 3
                values.append(accumulator if place == ACCUMULATOR else vectors[next(places)] if place == SLOT else constant)
            accumulator = MEANINGS[instruction.name](*values)
        if step.case & IS_STORED:
            vectors[step.result] = accumulator
            stored.add(step.result)
    return np.stack([vectors[FIRST_OUTPUT + i] for i in range(3)]), stored


def run_in_registers(words: np.ndarray, start: int, numbers: np.ndarray, inputs: list[np.ndarray]) -> np.ndarray:
    """As `run`, of words where vectors are registers."""
    vectors: dict[int, np.ndarray] = dict(enumerate(inputs))
    accumulator = operand = None
    known = places_of(numbers)
    for step in register_steps_of(words, start, numbers, NUM_REGISTERS):
        constant = np.full(len(inputs[0]), step.extra or 0, np.uint32).view(np.float32)
        if step.first in known:
            index, places = known[step.first]
            instruction = SET.instructions[index]
            places, sources = places[: len(instruction.args)], [operand, vectors.get(step.vector)]
            sources = iter(sources[2 - places.count(SLOT) :])
            values = [accumulator if p == ACCUMULATOR else next(sources) if p == SLOT else constant for p in places]
            accumulator = MEANINGS[instruction.name](*values)
        elif step.first == 2:
            vectors[step.vector] = accumulator
        elif step.first == 2 + NUM_REGISTERS:
            accumulator = vectors[step.vector]
        elif step.first == 2 + 2 * NUM_REGISTERS:
            operand = vectors[step.vector]
        else:
            accumulator = constant
    return np.stack([vectors[NUM_REGISTERS - 3 + i] for i in range(3)])


def random_words(count: int) -> np.ndarray:
    rng = np.random.default_rng(4)
    rows = []
    for _ in range(count):
        choices = ["%x", "%y", *map(str, rng.integers(1, 9, 2).astype(float)), *MEANINGS, *MEANINGS]
        tokens = [str(rng.choice(choices)) for _ in range(rng.integers(1, 60))]
        rows.append(parse_program(LANGUAGE, " ".join(tokens), "test", 64))
    return np.stack(rows)


@pytest.mark.parametrize("row_threads", [None, RowThreads(3)], ids=["the caller", "three threads"])
def test_steps_compute_what_the_virtual_machine_does(row_threads):
    words = random_words(400)
    x, y = (np.arange(-8, 8) / 3).astype(np.float32), (np.arange(16)[::-1] - 5.5).astype(np.float32)
    results, code = encode(words, row_threads)
    assert (results == Encoded.OK).all()
    expected = VirtualMachine(LANGUAGE.lowering).store(words, [x, y, x, x][: len(LANGUAGE.registers)])
    longest = 0
    for row, steps in enumerate(code):
        found, stored = run(steps, [x, y])
        np.testing.assert_array_equal(found, expected[row], err_msg=str(row))
        assert stored.isdisjoint(range(NUM_INPUTS))
        longest = max(longest, len(steps))
    assert longest > 20


def test_steps_compute_the_same_where_vectors_are_registers():
    words = random_words(400)
    x, y = (np.arange(-8, 8) / 3).astype(np.float32), (np.arange(16)[::-1] - 5.5).astype(np.float32)
    numbers = register_cases_of(SET, MEANINGS, NUM_REGISTERS).numbers
    made = DeviceEncoder(LANGUAGE.lowering, numbers, [0, 1, 23, 23], NUM_INPUTS, 19, NUM_REGISTERS)
    _, num_instructions = LANGUAGE.lowering.analyze(words)
    rooms = max_words(num_instructions.astype(np.int64), 3, made.in_registers) + NUM_EXTRA_WORDS
    places = np.concatenate([[0], np.cumsum(rooms)])
    code, starts = np.full(places[-1], 99, np.uint32), np.zeros(len(words), np.uint32)
    results = made.encode(words, np.arange(len(words)), places, code, starts, NUM_REGISTERS - 3)
    assert (results == Encoded.OK).all() and (code[places[1:] - 1] == 99).all()
    expected = VirtualMachine(LANGUAGE.lowering).store(words, [x, y, x, x][: len(LANGUAGE.registers)])
    for row, start in enumerate(starts):
        np.testing.assert_array_equal(run_in_registers(code, start, numbers, [x, y]), expected[row], err_msg=str(row))


def test_registers_are_all_vectors_of_a_kernel():
    numbers = register_cases_of(SET, MEANINGS, NUM_REGISTERS).numbers
    with pytest.raises(ValueError, match="24 vectors, not 25"):
        DeviceEncoder(LANGUAGE.lowering, numbers, [0, 1, 23, 23], NUM_INPUTS, 23, NUM_REGISTERS)
    made = DeviceEncoder(LANGUAGE.lowering, numbers, [0, 1, 23, 23], NUM_INPUTS, 22, NUM_REGISTERS)
    given = (np.zeros(1, np.int64), np.array([0, 9]), np.zeros(9, np.uint32), np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match="24 vectors"):
        made.encode(parse_program(LANGUAGE, "%x", "test", 8)[None], *given, 22)


def test_a_chain_of_operations_never_leaves_the_accumulator():
    words = parse_program(LANGUAGE, " ".join(["%x", *["%y add_ftz_f32 2.0 mul_ftz_f32"] * 10]), "test", 64)[None]
    _, [steps] = encode(words, num_slots=0)
    assert len(stores(steps)) == 3  # the outputs


def test_what_a_kernel_cannot_run_is_told_and_takes_no_place():
    deep = "%x %y sub_ftz_f32 %x %y add_ftz_f32 %x %y mul_ftz_f32 min_ftz_f32 max_ftz_f32"
    texts = ["%x 1.0 add_ftz_f32", "%x sin_approx_ftz_f32", deep, "%y"]
    words = np.stack([parse_program(LANGUAGE, text, "test", 64) for text in texts])
    names = [name for name in MEANINGS if name != "abs_ftz_f32"]
    results, code = encode(words, num_slots=0, names=names)
    assert list(results) == [Encoded.OK, Encoded.NO_CASE, Encoded.TOO_MANY_SLOTS, Encoded.OK]
    assert len(code) == 2


def test_programs_are_encoded_in_the_order_of_their_rows():
    words = np.stack([parse_program(LANGUAGE, text, "test", 8) for text in ("%y", "%x sin_approx_ftz_f32", "%x", "1.0")])
    code, starts = np.zeros(100, np.uint32), np.zeros(5, np.uint32)
    made = encoder(names=["add_ftz_f32"])
    results = made.encode(words, np.array([3, 1, 0, 2, 0]), np.arange(0, 101, 20), code, starts, 40)
    assert list(results) == [Encoded.OK, Encoded.NO_CASE, *[Encoded.OK] * 3]
    found = [steps_of(code, start, CASES.numbers) for start in starts[[0, 2, 3, 4]]]
    assert [any(step.extra == 0x3F800000 for step in each) for each in found] == [True, False, False, False]
    assert [any(step.vectors[0] == 1 for step in each) for each in found] == [False, True, False, True]
    assert all(sorted(stores(each)) == [40, 41, 42] for each in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": np.array([1])}, "rows: expected numbers below 1"),
        ({"places": np.array([0])}, "expected 1 starts and 2 places"),
        ({"places": np.array([0, 10])}, "ascending ones up to 9"),
        ({"places": np.array([3, 3])}, "1 apart or more"),
        ({"first_output": 62}, "64 vectors"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    words = parse_program(LANGUAGE, "%x", "test", 8)[None]
    given = {"rows": np.array([0]), "places": np.array([0, 9]), "words": np.zeros(9, np.uint32), "starts": np.zeros(1, np.uint32)}
    with pytest.raises(ValueError, match=message):
        encoder().encode(words, **{**given, "first_output": 60, **arguments})
