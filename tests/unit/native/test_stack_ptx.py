"""Stack PTX from Python: lowering against a reference, hashes, batches, errors.

`reference_values` runs words on Python lists as csrc/stack_ptx.h says and shares nothing with the C implementation. Values of
both are numbers in one table of expressions, so that equal numbers mean equal expressions.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evo.instructions import shipped_instruction_set
from evo.language.program import word
from evo.native.stack_ptx import NO_VALUE, Lowering, NodeKind, check_name
from evo.native.stack_ptx_words import META_OPERATIONS, ProgramError, WordType

SET = shipped_instruction_set("default")
F32, U32, PRED = (SET.stack_index(name) for name in ("F32", "U32", "PRED"))
REGISTERS = [("x", F32), ("y", F32), ("u", U32), ("p", PRED), ("t", SET.stack_index("TF32")), ("z", F32), ("v", U32)]
REQUESTS = [5, 6, 0, 5]
ROUTINES = (
    np.array([word(WordType.INPUT), word(WordType.ROUTINE, payload=1), word(WordType.PTX, payload=5)], np.uint64),
    np.array([word(WordType.INPUT, payload=1), word(WordType.ROUTINE, payload=1), word(WordType.RETURN)], np.uint64),
)


def limits(**changes) -> SimpleNamespace:
    base = {"stack_size": 12, "max_nodes": 200, "max_frame_depth": 3, "store_size": 3, "execution_limit": 150}
    return SimpleNamespace(**{**base, **changes})


def lowering(of_limits: SimpleNamespace | None = None, registers=REGISTERS, requests=REQUESTS, routines=ROUTINES) -> Lowering:
    return Lowering(SET, registers, requests, of_limits or limits(), routines)


class Expressions:
    """Numbers of expressions: the same for equal ones, operands that commute in either order."""

    def __init__(self):
        self.numbers: dict[tuple, int] = {}

    def number(self, *key) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def instruction(self, index: int, operands: list[int], result: int) -> int:
        count = SET.instructions[index].num_commutative
        return self.number("ptx", index, *sorted(operands[:count]), *operands[count:], result)

    def special(self, index: int, element: int) -> int:
        """An element of a vector is the scalar register of that name, if there is one."""
        name = SET.special_registers[index].ptx
        is_vector = SET.arg_types[SET.special_registers[index].arg_idx].num_vec_elems > 0
        return self.number("special", f"{name}.{'xyzw'[element]}" if is_vector else name)


def elements(arg_types: tuple[int, ...]) -> list[int]:
    """The stack of each element of operands or results, in order."""
    types = [SET.arg_types[arg_type] for arg_type in arg_types]
    return [one.stack_idx for one in types for _ in range(max(1, one.num_vec_elems))]


def reference_values(words, of: SimpleNamespace, expressions: Expressions, requests=REQUESTS) -> list[int | None]:
    """Requests of a program in lenient mode: numbers of expressions, or None. No volatile words."""
    stacks: list[list[int]] = [[] for _ in SET.stacks]  # the top is last
    meta: list[int] = []
    store: dict[int, tuple[int, int]] = {}
    left = SimpleNamespace(words=of.execution_limit, values=of.max_nodes)

    class Ended(Exception):
        pass

    def push(stack: int, value: int) -> None:
        if len(stacks[stack]) < of.stack_size:
            stacks[stack].append(value)

    def create(count: int) -> None:
        if left.values < count:
            raise Ended
        left.values -= count

    def apply_instruction(index: int) -> None:
        instruction = SET.instructions[index]
        needed, results = elements(instruction.args), elements(instruction.rets)
        if any(len(stacks[stack]) < needed.count(stack) for stack in needed):
            return
        create(len(results))
        operands = [stacks[stack].pop() for stack in needed]
        for result, stack in reversed(list(enumerate(results))):
            push(stack, expressions.instruction(index, operands, result))

    def apply_special(index: int) -> None:
        arg_type = SET.arg_types[SET.special_registers[index].arg_idx]
        create(max(1, arg_type.num_vec_elems))
        for element in range(max(1, arg_type.num_vec_elems)):
            push(arg_type.stack_idx, expressions.special(index, element))

    def apply_meta(stack: list[int], operation: str) -> None:
        full = len(stack) == of.stack_size
        number = None
        if operation in ("yank_dup", "swap_with", "replace", "drop"):
            if not meta:
                return
            number = meta.pop()
            if number >= len(stack) or (full and operation in ("swap_with", "replace")):
                return
        if operation == "drop":
            del stack[len(stack) - number :]
        elif operation == "clear":
            stack.clear()
        elif operation == "reverse":
            stack.reverse()
        elif operation == "swap" and len(stack) > 1:
            stack[-2:] = [stack[-1], stack[-2]]
        elif operation == "rotate" and len(stack) > 2:
            stack.insert(-2, stack.pop())
        elif operation == "dup" and stack and not full:
            stack.append(stack[-1])
        elif operation == "yank_dup" and not full:
            stack.append(stack[-1 - number])
        elif operation == "swap_with":
            stack[-1], stack[-1 - number] = stack[-1 - number], stack[-1]
        elif operation == "replace":
            stack[-1 - number] = stack[-1]
            stack.pop()

    def run(words, depth: int) -> None:
        for value in map(int, words):
            if left.words == 0:
                raise Ended
            left.words -= 1
            kind, aux, payload = value & 0xFFFF, value >> 16 & 0xFFFF, value >> 32
            has_stack = aux < len(stacks)
            if kind == WordType.RETURN:
                return
            if kind == WordType.INPUT and payload < len(REGISTERS):
                create(1)
                push(REGISTERS[payload][1], expressions.number("input", payload))
            elif kind == WordType.CONSTANT and has_stack and SET.stacks[aux].constant_type:
                create(1)
                push(aux, expressions.number("constant", SET.stacks[aux].constant_type, payload))
            elif kind == WordType.PTX and payload < len(SET.instructions):
                apply_instruction(payload)
            elif kind == WordType.SPECIAL and payload < len(SET.special_registers):
                apply_special(payload)
            elif kind == WordType.META_CONSTANT and len(meta) < of.stack_size:
                meta.append(payload)
            elif kind == WordType.META and has_stack and payload < len(META_OPERATIONS):
                apply_meta(stacks[aux], META_OPERATIONS[payload])
            elif kind == WordType.STORE and has_stack and payload < of.store_size and stacks[aux]:
                store[payload] = (aux, stacks[aux].pop())
            elif kind == WordType.LOAD and payload in store:
                push(*store[payload])
            elif kind == WordType.ROUTINE and payload < len(ROUTINES) and depth < of.max_frame_depth:
                run(ROUTINES[payload], depth + 1)

    try:
        if of.max_frame_depth:
            run(words, 1)
    except Ended:
        pass
    return [stacks[REGISTERS[r][1]].pop() if stacks[REGISTERS[r][1]] else None for r in requests]


def lowered_values(lowered, expressions: Expressions) -> list[int | None]:
    """The same numbers for what a lowered program's requests get."""
    values: list[int] = []
    used = {*lowered.operands.tolist(), *lowered.request_values.tolist()}
    for node in lowered.nodes:
        kind, payload = NodeKind(node["kind"]), int(node["payload"])
        assert node["first_value"] == len(values)
        assert used & {*range(len(values), len(values) + int(node["num_values"]))}, "no request needs this node"
        if kind == NodeKind.INPUT:
            values.append(expressions.number("input", payload))
        elif kind == NodeKind.CONSTANT:
            values.append(expressions.number("constant", SET.stacks[node["stack_idx"]].constant_type, payload))
        elif kind == NodeKind.SPECIAL:
            values.append(expressions.special(payload & 0xFFFF, payload >> 16))
        else:
            first = int(node["first_operand"])
            operands = [values[i] for i in lowered.operands[first : first + int(node["num_operands"])]]
            values += [expressions.instruction(payload, operands, result) for result in range(int(node["num_values"]))]
    return [None if value == NO_VALUE else values[value] for value in lowered.request_values]


STABLE_SPECIAL = [i for i, special in enumerate(SET.special_registers) if not special.volatile]


def near(count: int) -> st.SearchStrategy[int]:
    """An index, mostly one that exists."""
    return st.integers(0, count)


def words_near(instructions: list[int], registers: int = len(REGISTERS), max_size: int = 60) -> st.SearchStrategy[list[int]]:
    """Words of every kind with few volatile ones, mostly inputs and instructions, so that programs do something."""
    stack = near(len(SET.stacks))
    inputs = st.builds(word, st.just(WordType.INPUT), payload=near(registers))
    ptx = st.builds(word, st.just(WordType.PTX), payload=st.sampled_from(instructions))
    others = st.one_of(
        st.builds(word, st.just(WordType.CONSTANT), stack, st.sampled_from([0, 1, 0x3F800000, 0x80000000])),
        st.builds(word, st.just(WordType.SPECIAL), payload=st.sampled_from(STABLE_SPECIAL)),
        st.builds(word, st.just(WordType.META), st.one_of(st.just(F32), stack), near(len(META_OPERATIONS))),
        st.builds(word, st.just(WordType.META_CONSTANT), payload=st.integers(0, 5)),
        st.builds(word, st.just(WordType.STORE), st.one_of(st.just(F32), stack), near(3)),
        st.builds(word, st.just(WordType.LOAD), payload=near(3)),
        st.builds(word, st.just(WordType.ROUTINE), payload=near(2)),
        st.builds(word, st.sampled_from([0, 8, 9, 13, 65535]), near(65535), near(2**32 - 1)),
    )
    return st.lists(st.one_of(inputs, inputs, ptx, ptx, others), max_size=max_size)


ALL_WORDS = words_near([*range(len(SET.instructions)), len(SET.instructions)])
FEW_WORDS = words_near([SET.instruction_index(name) for name in ("add_ftz_f32", "sub_ftz_f32", "fma_rn_ftz_f32")], 2, 9)
SOME_LIMITS = st.builds(
    limits,
    stack_size=st.sampled_from([0, 1, 3, 12]),
    max_nodes=st.sampled_from([0, 5, 30, 200]),
    max_frame_depth=st.integers(0, 4),
    store_size=st.integers(0, 3),
    execution_limit=st.sampled_from([0, 1, 20, 150]),
)


def row(words: list[int]) -> np.ndarray:
    return np.array(words, np.uint64)


# ---- lowering


# Words without enough operands make no values.
IDLE = [word(WordType.PTX)] * 9 + [word(WordType.META, F32)] + [word(WordType.INPUT, payload=i) for i in (5, 1)]


@given(words=ALL_WORDS, of=SOME_LIMITS, value_numbering=st.booleans())
@example(words=IDLE, of=limits(max_nodes=10), value_numbering=True)
@settings(max_examples=400)
def test_lowering_agrees_with_the_reference(words, of, value_numbering):
    expressions = Expressions()
    lowered = lowering(of).lower(row(words), value_numbering=value_numbering)
    assert lowered_values(lowered, expressions) == reference_values(words, of, expressions)


@pytest.mark.parametrize("size", [0, 1, 3, 4])
def test_every_meta_operation_agrees_with_the_reference_at_every_height(size):
    """Then a drop, which tells how many numbers are left, by which it drops."""
    of, drop = limits(stack_size=size), word(WordType.META, F32, META_OPERATIONS.index("drop"))
    some = lowering(of, requests=[5] * 5)
    for height in range(size + 2):
        pushed = [word(WordType.CONSTANT, F32, i) for i in range(height)]
        for operation in range(len(META_OPERATIONS)):
            for numbers in ((), (0,), (1,), (2,), (3,), (1, 0), (1, 9), (2, 1)):
                meta = [word(WordType.META_CONSTANT, payload=number) for number in numbers]
                words, expressions = row([*pushed, *meta, word(WordType.META, F32, operation), drop]), Expressions()
                found = lowered_values(some.lower(words), expressions)
                assert found == reference_values(words, of, expressions, [5] * 5), (height, operation, numbers)


@given(words=st.lists(st.integers(0, 2**64 - 1), max_size=50))
def test_any_words_lower_emit_and_hash(words):
    some = lowering()
    lowered = some.lower(row(words))
    assert some.emit(row(words)[None]) == [lowered.stub]
    hashes, num_instructions = some.analyze(row(words)[None])
    np.testing.assert_array_equal(hashes[0], lowered.hash)
    np.testing.assert_array_equal(some.lower(row(words), value_numbering=False).hash, lowered.hash)
    renamed = lowering(registers=[(f"other_{i}", stack) for i, (_, stack) in enumerate(REGISTERS)])
    np.testing.assert_array_equal(renamed.lower(row(words)).hash, lowered.hash)
    assert num_instructions[0] == lowered.num_instructions == (lowered.nodes["kind"] == NodeKind.PTX).sum()


@given(words=ALL_WORDS)
def test_value_numbering_leaves_no_two_equal_values(words):
    expressions = Expressions()
    lowered = lowering().lower(row(words))
    numbers = []
    for node in lowered.nodes:
        first = int(node["first_operand"])
        operands = [int(value) for value in lowered.operands[first : first + int(node["num_operands"])]]
        if node["kind"] == NodeKind.PTX:
            numbers.append(expressions.instruction(int(node["payload"]), operands, 0))
        else:
            numbers.append(expressions.number(int(node["kind"]), int(node["stack_idx"]), int(node["payload"])))
    assert len(set(numbers)) == len(numbers)


@given(words=ALL_WORDS)
def test_programs_that_strict_mode_accepts_mean_the_same(words):
    some = lowering(limits(max_frame_depth=9))
    try:
        strict = some.lower(row(words), mode="strict")
    except ProgramError:
        return
    lenient = some.lower(row(words))
    np.testing.assert_array_equal(strict.nodes, lenient.nodes)
    np.testing.assert_array_equal(strict.request_values, lenient.request_values)


@pytest.mark.parametrize("num_registers", [2, 63, 64, 65, 1000])
def test_equal_values_are_merged_however_many_registers_there_are(num_registers):
    """Inputs are values before the first word runs: the table of values of a short program starts smaller than their number."""
    last = num_registers - 1
    some = lowering(registers=[(f"reg_{i}", F32) for i in range(num_registers)], requests=[0], routines=())
    add = word(WordType.PTX, payload=SET.instruction_index("add_ftz_f32"))
    sum_of_two = [word(WordType.INPUT), word(WordType.INPUT, payload=last), add]
    assert some.lower(row([*sum_of_two, *sum_of_two[1::-1], add, add])).stub == (
        "{\n.reg .f32 %_s0_<2>;\n"
        f"add.ftz.f32 %_s0_0, %reg_{last}, %reg_0;\nadd.ftz.f32 %_s0_1, %_s0_0, %_s0_0;\nmov.f32 %reg_0, %_s0_1;\n}}"
    )


# ---- hash


@given(programs=st.lists(FEW_WORDS, min_size=2, max_size=40))
def test_hashes_are_equal_exactly_where_expressions_are(programs):
    expressions = Expressions()
    some = lowering()
    rows = np.zeros((len(programs), 9), np.uint64)
    for one, words in zip(rows, programs, strict=True):
        one[: len(words)] = words
    hashes, _ = some.analyze(rows)
    expected = [tuple(reference_values(one, limits(), expressions)) for one in rows]
    for half in (slice(0, 2), slice(0, 1), slice(1, 2)):
        found = [tuple(one[half]) for one in hashes]
        assert [found.index(one) for one in found] == [expected.index(one) for one in expected]


def test_many_values_are_numbered_while_their_table_grows_and_a_long_stub_is_whole():
    some = lowering(limits(max_nodes=20_000, execution_limit=20_000), requests=[5, 0])
    sub, fma = (word(WordType.PTX, payload=SET.instruction_index(name)) for name in ("sub_ftz_f32", "fma_rn_ftz_f32"))
    words = [word(WordType.INPUT), *(step for i in range(2000) for step in (word(WordType.CONSTANT, F32, i), sub))]
    (stub,) = some.emit(row(words * 2)[None])
    lines = stub.splitlines()
    assert lines[1] == ".reg .f32 %_s0_<2000>;"
    assert lines[2001:] == [
        "sub.ftz.f32 %_s0_1999, 0f000007CF, %_s0_1998;",
        *("mov.f32 %z, %_s0_1999;", "mov.f32 %x, %_s0_1999;", "}"),
    ]
    # Values that share all but the third operand; constants of no use, now more, now fewer, make some of them meet in the table.
    x, y = word(WordType.INPUT), word(WordType.INPUT, payload=1)
    others = np.random.default_rng(1).integers(0, 4, 1500)
    chain = [x, *(step for i in range(1500) for step in (x, y, fma, *[word(WordType.CONSTANT, U32, i)] * others[i]))]
    assert some.lower(row(chain)).num_instructions == 1500


# ---- errors


@pytest.mark.parametrize("name", ["f1", "tid", "", "a b", "%x", "ä", "x\0y", "a.b"])
def test_names_that_are_reserved_or_that_ptx_cannot_write_are_refused(name):
    reason = f"register name '{name}'.*choose another" if name in ("f1", "tid") else "use letters, digits, _ and \\$, without a"
    with pytest.raises(ValueError, match=reason):
        check_name(name)
    if name:
        with pytest.raises(ValueError, match="register"):
            lowering(registers=[(name, F32)], requests=[0])


@pytest.mark.parametrize("mode", ["strict", "compatible"])
@pytest.mark.parametrize(
    ("value", "result", "message"),
    [
        (word(WordType.NONE), "BAD_INSTRUCTION_MAYBE_FORGOT_RETURN", "no word has type 0; was RETURN forgotten"),
        (word(WordType.AST_IDX), "BAD_INSTRUCTION_MAYBE_FORGOT_RETURN", "no word has type 9"),
        (word(WordType.PTX, payload=99), "PTX_INSTRUCTION_IDX_OUT_OF_BOUNDS", "instruction 99 of 38"),
        (word(WordType.INPUT, payload=7), "REGISTER_IDX_OUT_OF_BOUNDS", "input 7 of 7"),
        (word(WordType.SPECIAL, payload=32), "SPECIAL_REGISTER_IDX_OUT_OF_BOUNDS", "special register 32 of 32"),
        (word(WordType.CONSTANT, 9), "STACK_IDX_OUT_OF_BOUNDS", "stack 9 of 9"),
        (word(WordType.CONSTANT, PRED), "WRONG_TYPE_DISPATCH", "stack 3 has no constants"),
        (word(WordType.META, F32, 9), "META_INSTRUCTION_IDX_OUT_OF_BOUNDS", "meta operation 9 of 9"),
        (word(WordType.META, F32, 1), "INVALID_VALUE", "the depth on the meta stack must be below the height"),
        (word(WordType.STORE, F32, 3), "STORE_IDX_OUT_OF_BOUNDS", "store index 3 of 3"),
        (word(WordType.LOAD, payload=3), "LOAD_IDX_OUT_OF_BOUNDS", "store index 3 of 3"),
        (word(WordType.ROUTINE, payload=2), "ROUTINES_IDX_OUT_OF_BOUNDS", "routine 2 of 2"),
    ],
)
def test_a_mode_that_is_not_lenient_names_the_word_and_the_reason(value, result, message, mode):
    words = row([word(WordType.INPUT), word(WordType.META_CONSTANT, payload=9), value])
    if result == "INVALID_VALUE" and mode == "compatible":
        np.testing.assert_array_equal(lowering().lower(words, mode=mode).nodes, lowering().lower(words).nodes)
        return
    with pytest.raises(ProgramError, match=message) as caught:
        lowering().lower(words, mode=mode)
    assert caught.value.result == f"STACK_PTX_ERROR_{result}"
    assert (caught.value.word_idx, caught.value.routine_idx) == (2, None)
    assert str(caught.value).startswith("word 2 (0x")


@pytest.mark.parametrize(
    ("changes", "result", "message"),
    [
        ({"max_nodes": 2}, "INSUFFICIENT_AST_SIZE", r"^word 2 \(0xc020000000000002, the constant -2\.5\): .*more than 2 values"),
        ({"execution_limit": 2}, "BAD_INSTRUCTION_MAYBE_FORGOT_RETURN", "runs more than 2 words, its execution_limit"),
    ],
)
def test_strict_lowering_names_the_limit_and_the_constant(changes, result, message):
    constants = [word(WordType.CONSTANT, F32, bits) for bits in (0, 0x3F800000, 0xC0200000)]
    with pytest.raises(ProgramError, match=message) as caught:
        lowering(limits(**changes)).lower(row(constants), mode="strict")
    assert (caught.value.result, caught.value.word_idx) == (f"STACK_PTX_ERROR_{result}", 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"registers": [("x", 9)], "requests": []}, r"register 'x': stack 9, but there are stacks 0 to 8"),
        ({"registers": [("x", F32), ("x", U32)], "requests": []}, r"register 'x' is given twice, as \.f32 and as \.u32"),
        ({"requests": [7]}, r"request 7: there are registers 0 to 6"),
        ({"of_limits": limits(max_nodes=-1)}, r"limits\.max_nodes: -1, must be from 0 to 268435455"),
        ({"of_limits": limits(execution_limit=2**32)}, r"limits\.execution_limit: 4294967296"),
    ],
)
def test_a_wrong_language_is_refused_with_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        lowering(**arguments)
