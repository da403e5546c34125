"""Solutions of one instruction: what is found gives the goal, at points of a sample and at others."""

from itertools import islice

import numpy as np
import pytest

from evo.approximation import networks, solvers
from evo.approximation.bits import ExactFunction
from evo.approximation.lookups import looked_up
from evo.approximation.numbers import number_goals
from evo.approximation.packed import field_nodes
from evo.approximation.samples import drawn
from evo.approximation.shorter import shortened_nodes
from evo.approximation.solvers import Goal
from evo.approximation.synthesis import Synthesis
from evo.approximation.word_machine import apply

X = ("%", 0)
A, B = (drawn(256, 7, k, 32) for k in range(2))
ALL, SHIFTED = np.full_like(A, 0xFFFFFFFF), A >> np.uint32(5)
CASES = {
    "logic_of_one": (solvers.logic_of_one, (A & 0x000F000F) | 0x64006400, ALL),
    "logic_of_one, inverted": (solvers.logic_of_one, A ^ np.uint32(0x80808080), ALL),
    "logic_of_two": (solvers.logic_of_two, (A & 0x00FF00FF) | (B & 0xFF00FF00), ALL),
    "logic_of_two, bits that the sample does not tell": (
        lambda rows, goal: islice(solvers.logic_of_two(rows, goal), 1),
        np.where(np.arange(256) < 128, A & B & 0xFF, A & B).astype(np.uint32),
        np.where(np.arange(256) < 128, 0xFF, ALL).astype(np.uint32),
    ),
    "merged": (solvers.merged, (A & 0x80008000) | (B & 0x0E000E00) | 0x00010000, ALL),
    "merged, no constants": (solvers.merged, (A & 0x00FF00FF) | (B & 0xFF00FF00), ALL),
    "bytes": (solvers.bytes_of_two, (A & 0xFF) | 0x64000000 | (A >> 24) << 16 | 0x6400, ALL),
    "bytes of two": (solvers.bytes_of_two, (B & 0xFF) << 8 | A >> 24 | (A & 0xFF) << 16 | (B >> 24) << 24, ALL),
    "sign of a byte": (solvers.bytes_of_two, (A.view(np.int32) << 24 >> 24).view(np.uint32), ALL),
    "sum": (solvers.sums, A + np.uint32(0x7FFF), ALL),
    "sum of two, upper half": (solvers.sums, (A + B) & np.uint32(0xFFFF0000), ALL & np.uint32(0xFFFF0000)),
    "difference from a constant": (solvers.sums, np.uint32(127) - A, ALL),
    "covered": (solvers.covered, (A & 0x000FF000) | (B & 0xFFF) | (A & 0xFFF00000), ALL),
    "logic_of_three": (solvers.logic_of_three, (A & B) | (~A & SHIFTED), ALL),
    "a factor, and a row": (solvers.scaled, A * np.uint32(15) + B, ALL),
    "a row shifted, and a row": (solvers.scaled, (A >> np.uint32(5)) + B, ALL),
    "weights of bytes": (
        solvers.dots,
        ((A & 255) * 77 + (A >> 8 & 255) * 150 + (A >> 16 & 255) * 29).astype(np.uint32),
        ALL << np.uint32(8),
    ),
    "product": (solvers.products, A * np.uint32(0x01010101) + np.uint32(5), ALL),
    "quotient": (solvers.high_products, (A // np.uint32(10)) << np.uint32(3), ALL & np.uint32(0xFFFFFFF8)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_solution_gives_the_goal_at_all_points(name):
    finder, values, care = CASES[name]
    seen = slice(0, 128)
    found = list(finder(np.stack([A[seen], B[seen], SHIFTED[seen]]), Goal(values[seen], care[seen])))
    assert found

    def words(each):
        if isinstance(each, solvers.Solution):
            return apply(each.name, *map(words, each.operands))
        return (A, B, SHIFTED)[each[1]] if isinstance(each, tuple) else np.uint32(each)

    for solution in found:
        assert not ((words(solution) ^ values) & care).any()


def test_what_has_no_solution_gives_none():
    rows, goal = np.stack([A, B]), Goal(drawn(256, 7, 2, 32), ALL)
    for finder in {case[0] for case in CASES.values()}:
        assert list(finder(rows, goal)) == []


def _word(fields, width):
    return sum((each & np.uint32((1 << width) - 1)) << np.uint32(width * k) for k, each in enumerate(fields)).astype(np.uint32)


def test_field_nodes_are_the_arithmetic_of_fields():
    b = np.where(np.arange(256) % 3 == 0, A & 0xFFFFFF00, B).astype(np.uint32)
    known = Synthesis(ExactFunction("morton16"), "sm_90", [A, b])
    rows = {known.values(node).tobytes() for node in field_nodes([("%", 0), ("%", 1)])}
    for width in (8, 16, 32):
        mask = np.uint32((1 << width) - 1)
        x, y = ([word >> np.uint32(k) & mask for k in range(0, 32, width)] for word in (A, b))
        pairs = list(zip(x, y, strict=True))
        sign = np.uint32(width - 1)
        expected = {
            "sum": [p + q for p, q in pairs],
            "difference": [p - q for p, q in pairs],
            "less": [np.where(p < q, mask, 0) for p, q in pairs],
            "less, signed": [np.where(p ^ (1 << sign) < q ^ (1 << sign), mask, 0) for p, q in pairs],
            "overflow": [np.where(p.astype(np.int64) + q > mask, mask, 0) for p, q in pairs],
            "equal": [np.where(p == q, mask, 0) for p, q in pairs],
            "negated": [0 - p for p in x],
            "limit": [np.where(p >> sign, 1 << sign, mask >> 1) for p in x],
        }
        for name, fields in expected.items():
            assert _word([each.astype(np.uint32) for each in fields], width).tobytes() in rows, (name, width)


PARITY = 0x96696996  # of the numbers below 32
OF_TWO = {
    "xor": (A * np.uint32(255) ^ A >> np.uint32(13), ALL),
    "sum": (A * np.uint32(255) + (A & 0x0F0F0F0F), ALL),
    "difference": ((A >> np.uint32(5)) - A * np.uint32(3), ALL),
    "bytes": ((A * np.uint32(255)) >> np.uint32(8) & 0xFFFF | (A & 0xFF) << np.uint32(16), ALL),
    "bit of a constant": (np.uint32(PARITY) >> (A & 31) & 1, ALL),
}


@pytest.mark.parametrize("name", OF_TWO)
def test_rows_of_two_instructions_give_a_goal_that_is_solved_by_them(name):
    values, care = OF_TWO[name]
    known, every = (Synthesis(ExactFunction("div10"), "sm_90", [points]) for points in (A[:128], A))
    known.add(X)
    known.fields = [X]
    goal = Goal(values[:128], care[:128])
    found = [*known._wide.solutions(goal)]
    assert found and set(known.solve(goal)) & set(found)
    for node in found:
        assert not ((every.values(node) ^ values) & care).any()


def test_shorter_programs_have_fewer_slots_and_the_same_words():
    known = Synthesis(ExactFunction("div10"), "sm_90", [A])
    known.add(X)
    parity = ("lop3_c0", ("shr", X, 13), 1, 0)
    cases = {
        ("add", ("mul", X, 5), ("shl", X, 7)): 2.0,  # by one product
        ("add", ("add", X, 0xFFF), parity): 6.0,  # the shift is part of madhi
        ("lop3_c0", ("lop3_fc", ("lop3_c0", X, 0xFF00, 0), 0x0F, 0), 0xFF0F, 0): 2.0,
        ("add", ("dp4a_u", X, 0x01010101, 0), ("dp4a_u", ("shr", X, 4), 0x0F0F0F0F, 0)): 6.0,
    }
    for node, slots in cases.items():
        [found] = shortened_nodes(known, (node,))
        assert known.cost([found]) == slots < known.cost([node])
        np.testing.assert_array_equal(known.values(found), known.values(node))


N, SCALE, ZERO = (
    (A % np.uint32(16)).astype(np.float32),
    ((B % 999).astype(np.float32) - 499) / 64,
    (A % 77).astype(np.float32) / 8,
)
NUMBERS = {
    "product": (N * SCALE, N),
    "product, of quarters": (N / 4 * SCALE, N / 4),
    "sum": (N - 8 + SCALE, N - 8),
    "difference": (N - SCALE, N),
    "difference from an integer": (N - (B % 16), N + 2.0**23),
    "product and sum": (N * SCALE + ZERO, N),
    "infinities become NaN": (np.where(N == 3, np.uint32(0x7FFFFFFF).view(np.float32), N), np.where(N == 3, np.inf, N)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_told_before_inputs_join_them(name):
    values, expected = (each.astype(np.float32).view(np.uint32) for each in NUMBERS[name])
    function = ExactFunction("f32x4_s8x4")
    vars(function)["types"] = ("f32", "f32", "u32")
    inputs = [*(each.view(np.uint32) for each in (SCALE, ZERO)), B % np.uint32(16)]
    known = Synthesis(function, "sm_90", inputs)
    for k in range(3):
        known.add(("%", k))
    row, hits = ("%", 9), 0
    for wrap, before, _ in number_goals(known, Goal(values, ALL)):
        known._values = {**{("%", k): each for k, each in enumerate(inputs)}, row: before.values}
        if ((before.values ^ expected) & before.care).any() or not before.care.any():
            continue
        hits += 1
        is_told = before.care != 0
        assert is_told.sum() > 200
        np.testing.assert_array_equal(known.values(wrap(row))[is_told], values[is_told])
    assert hits


def test_bits_move_both_ways_after_a_shift():
    values = sum((A >> np.uint32(12 + 3 * k) & np.uint32(7)) << np.uint32(8 * k) for k in range(4))
    known = Synthesis(ExactFunction("div10"), "sm_90", [A])
    known.add(X)
    costs = [
        known.cost([node]) for node in networks.permutations(known, Goal(values, ALL)) if (known.values(node) == values).all()
    ]
    assert min(costs) <= 12  # two shifts, a mask, and twice a shift and a lop3 are 12


@pytest.mark.parametrize(
    ("bits", "entries", "slots"), [(4, 16, 12), (4, 8, 4), (4, 4, 4), (3, 8, 12), (2, 4, 12), (1, 2, 12), (4, -16, 10)]
)
@pytest.mark.parametrize("place", [0, 1])
def test_bytes_of_fields_are_looked_up_in_tables(bits, entries, slots, place):
    rng = np.random.default_rng(bits + abs(entries))
    table = rng.permutation(256)[: abs(entries)].astype(np.uint8)
    if entries < 0:  # signs, and sizes
        table = (table[np.arange(16) % 8] & 0x7F | np.arange(16) // 8 << 7).astype(np.uint8)
    found = Synthesis(ExactFunction("u4x8_f16x2x4"), "sm_90", [A[:128]])
    fields = np.stack([A >> np.uint32(4 * bits * place + bits * k) & np.uint32((1 << bits) - 1) for k in range(4)], axis=1)
    values = table[fields % abs(entries)].view(np.uint32)[:, 0]  # of a larger table with the same entries again
    nodes = [*looked_up(found, [Goal(values[:128], ALL[:128])])]
    whole = Synthesis(found.function, "sm_90", [A])
    right = [node for node in nodes if (whole.values(node) == values).all()]
    assert right and min(whole.cost([node]) for node in right) <= slots + 2 * place
