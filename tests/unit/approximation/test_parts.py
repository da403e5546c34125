"""Proofs in parts: graphs against the functions, what is no graph, and mutants."""

import re
import sys
from types import ModuleType

import numpy as np
import pytest
from scipy import special

from evo.approximation.bits import ExactFunction
from evo.approximation.dependence import ONE, UNKNOWN, of_terms
from evo.approximation.exact import exact_language
from evo.approximation.exact_sweep import PARTS, ExactSweep, Part, parts_of, proof_graphs
from evo.approximation.graph import as_word, conjuncts, evaluate
from evo.approximation.plain_code import plain
from evo.approximation.samples import sample
from evo.approximation.trace import trace
from evo.approximation.traced import UntraceableError
from evo.language.program import parse_program
from evo.native.ptx_vm import VirtualMachine

COUNT = 64


def assert_holds(bits, values):
    """values: results at inputs of which (1 + 64 * COUNT, ...) differ from the first COUNT in one bit each."""
    base, flipped = values[:COUNT], values[COUNT:].reshape(64, COUNT)
    for k, bit in enumerate(bits):
        assert bit not in (0, ONE) or set((base >> k & 1).tolist()) == {int(bit == ONE)}
        for source in range(64):
            if bit in (0, ONE) or not bit >> source & 1:
                assert not ((base ^ flipped[source]) >> k & 1).any()


def flipped(rng):
    """Two inputs at COUNT points, then with each of their 64 bits flipped."""
    words = rng.integers(0, 1 << 32, (2, COUNT), dtype=np.uint32)
    words[:, :8] &= rng.integers(0, 1 << 32, (2, 8), dtype=np.uint32)
    flips = np.zeros((64, 2, 1), np.uint32)
    flips[np.arange(64), np.arange(64) // 32, 0] = 1 << np.arange(64) % 32
    return np.concatenate([words, (words ^ flips).transpose(1, 0, 2).reshape(2, -1)], axis=1)


TABLE = np.random.default_rng(0).integers(0, 1 << 20, 256, dtype=np.uint32)
NIBBLES = np.arange(0, 32, 4, dtype=np.uint32)


def in_place(x, y):
    z = np.zeros_like(x)
    for k in range(4):
        z |= (x >> 8 * k & 15) << 4 * k
    z[y > 1 << 31] = 7
    z[(y & 3) == 1] += np.uint32(5)
    small = (y & 3) == 2
    z[small] = x[small] * np.uint32(3)
    return z


def entries(x, y):
    own = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.uint32)
    return TABLE[x & 0xFF] + own[y & 7] + [TABLE][0].take(5) + helped(y)


def helped(y):
    return np.take(TABLE, y >> 28) * np.uint32(2)


def unpacked(x, y):
    fields = (x[:, None] >> NIBBLES) & 15
    return (TABLE[fields] & 1 << NIBBLES).sum(axis=-1, dtype=np.uint32) + np.bitwise_or.reduce(fields[:, ::2], axis=1)


def of_bytes(x, y):
    four = x.view(np.uint8).reshape(-1, 4)
    swapped = np.stack([four[:, 3], four[..., 2], y.view(np.uint8)[1::4], four[:, 0]], axis=-1)
    return swapped.view(np.uint32)[:, 0] + four.max(axis=1)


def made(x, y):
    z = np.full(x.shape, 7, np.uint32)
    z += np.ones(x.shape[0], np.uint32)
    z[:] = np.select([x > y, x == y], [x, np.asarray(y, np.uint32)], z)
    quotient, remainder = np.divmod(x, 10)
    return np.array(z) ^ quotient ^ remainder.astype(np.uint32, copy=False)


def columns(x, y):
    four = np.empty((x.shape[0], 4), np.uint8)
    four[:, 0] = x & 0xFF
    four[:, 1:3] = (y[:, None] >> np.array([8, 16], np.uint32)) & 0xFF
    four[..., 3] = 7
    four[four > 200] -= np.uint8(200)
    halves = four.view(np.uint16).ravel().copy()
    halves[0::2] = 5
    return halves.view(np.uint32)


def of_other_types(x, y):
    v = x.view(np.int32)
    wide = np.select([y == 0x12345678, y == 7], [v, 127])  # i32, as 127 has no type of its own
    narrow = np.select([y == 0x12345678, x == y], [(x & 255).astype(np.uint8), (y & 1) == 1], 0) << 1
    z = (wide * 2 >> 1).astype(np.uint32) + narrow
    z[x > y] = x[x > y] >> 1
    return z + np.uint32(z.dtype.type == np.uint32)


def changed_after_a_view(x, y):
    z = x ^ np.uint32(5)
    z[z.view(np.int32) < 0] ^= np.uint32(0xFFFF)
    z = z.view(np.uint16)
    z += np.uint16(3)
    return z.view(np.uint32) + y


def numbers_of_tables(x, y):
    limit = TABLE.max()
    above = limit
    above += np.uint32(1)  # a number of NumPy's is another one then
    return (x ^ y) + (above - limit) * np.uint32(isinstance(limit, np.integer)) + np.uint32(len({limit: 1}))


def written_through_views(x, y):
    z = np.zeros(len(x), np.uint32)
    four = z.view(np.uint8).reshape(-1, 4)
    four[:, 0], four[:, 3] = x & 0xFF, y >> 24
    four[:, 1:3] |= np.uint8(5)
    halves = z.view(np.uint16)
    halves[1::2] ^= np.uint16(0xF0F)
    four.T[2][y > x] += np.uint8(7)
    signed = z.view(np.int32)
    z += x
    return z ^ (signed >> 3).view(np.uint32)


def moved_elements(x, y):
    n = x.size
    q = np.concatenate([each.view(np.uint8).reshape(n, 4) for each in (x, y)], axis=1)
    r, g, b, a = np.flip(q[:, [0, 2, 5, 7]], axis=1).T.astype(np.uint32)
    rows = np.array([x, y, r | g << 8])
    wide = np.hstack([rows.T, np.tile(b[:, None], (1, 3))]) * np.repeat(np.arange(1, 4, dtype=np.uint32), 2)
    mixed = np.stack([x.view(np.int32), y.view(np.int8)[::4]], axis=1).view(np.uint32)[:, 1]
    upper = mixed + np.bitwise_xor.reduce([*np.split(wide, 2, axis=1)[1].T, a])
    return upper + np.ascontiguousarray(rows[::-1])[0] + wide.sum(1, np.uint32)


ROWS = {"of bytes": np.random.default_rng(1).integers(0, 256, (16, 4), dtype=np.uint8)}
SIGNED = np.arange(-32, 32, dtype=np.int16).reshape(4, 8, 2)


def of_several_axes(x, y):
    rows = ROWS["of bytes"][x & 15]
    pairs = SIGNED[x >> 30, (y & 3).astype(np.int8) - 4].sum(axis=1) + SIGNED[2, y & 7, 1]
    return rows.view(np.uint32).ravel() ^ pairs.astype(np.uint32) ^ np.take(ROWS["of bytes"], y >> 28, axis=0)[:, 2]


OTHER = ModuleType("other")
OTHER.__file__ = __file__
exec(
    "import functools, numpy as np\nCODES = np.arange(7, 263)\ndef code(x): return np.uint32(CODES[x & 255] + steps()[x & 7])\n"
    "@functools.cache\ndef steps():\n  made = np.zeros(8, np.uint32)\n  made[1:] = np.arange(7) ** 2\n  return made",
    vars(OTHER),
)
OTHER.steps()
RAW = np.arange(256, dtype=np.uint8).view(np.bool_)  # whose bytes are other numbers than 0 and 1
FUNCTIONS = {
    "written through views": written_through_views,
    "moved elements": moved_elements,
    "tables of several axes": of_several_axes,
    "by another module": lambda x, y: OTHER.code(x) + np.uint32(OTHER.CODES[y >> 24]),
    "limits by name": lambda x, y: np.clip(x, a_min=5, a_max=None) + np.clip(y.view(np.int32), min=-3, max=9).view(np.uint32),
    "of one length": lambda x, y: x[:, True][:, 0] + np.zeros(len(x), np.uint32) + np.full(x.shape, y),
    "numbers of tables": numbers_of_tables,
    "changed after a view": changed_after_a_view,
    "limits beyond the type": lambda x, y: np.clip(x, -1, 7) + np.clip(y & 511, 3, 1 << 40).astype(np.uint8),
    "written to columns": columns,
    "of other types": of_other_types,
    "truths of other bytes": lambda x, y: RAW[x & 0xFF] & RAW[y & 0xFF],
    "a limit of zero": lambda x, y: np.clip(np.float32(0) * -(x & 3).astype(np.float32), 0, 1).view(np.uint32),
    "in place": in_place,
    "entries of tables": entries,
    "unpacked by a further axis": unpacked,
    "of bytes in rows": of_bytes,
    "made like the inputs": made,
    "bitwise": lambda x, y: (x & 0xFF00FF) | (y & 0x0F00FF00) ^ ~x,
    "shifts": lambda x, y: (x << 5) + (y >> 28) + (x << 40) + (x.view(np.int32) >> 9).view(np.uint32),
    "shifted by an input": lambda x, y: (x << (y & 63)) ^ (y >> (x & 7)),
    "sums": lambda x, y: ((x & 0xF0) + (y & 0xFFF)) - (y & 0xFF0),
    "products": lambda x, y: (x & 0xFFFF) * 5 + (x >> 16) * np.uint32(0x10001) + (y & 0xF0) * (x & 0xC),
    "odd products": lambda x, y: (x & 0xFF00 | 5) * (y & 0xF00 | 3) ^ ((x | 1) * (y | 1) & 1),
    "of arrays": lambda x, y: x + 1 if isinstance(x, np.ndarray) else y,
    "quotients": lambda x, y: x // 7 + (x & 0xFF) % 10 + y // (x & 3),
    "wide": lambda x, y: ((x.astype(np.uint64) * 3 + y) >> 16).astype(np.uint32),
    "signed": lambda x, y: (x.astype(np.int64) - y).astype(np.uint32) + np.minimum(x.view(np.int32), 7).view(np.uint32),
    "bytes": lambda x, y: (x.view(np.uint8) + (y.view(np.uint8) >> 1)).view(np.uint32),
    "halves": lambda x, y: np.maximum(x.view(np.int16), y.view(np.int16)).view(np.uint32),
    "signed bytes": lambda x, y: np.abs(x.view(np.int8).astype(np.int32)).astype(np.uint8).view(np.uint32),
    "choices": lambda x, y: np.where(x >> 31, y & 0xFF, x | 0x80),
    "truths": lambda x, y: (x > y) | ((x & 1) == 1) & np.logical_not(y & 0xF),
    "clipped": lambda x, y: np.clip(x.view(np.int32), -128, 127).view(np.uint32) & 0xFF,
    "table": lambda x, y: np.take_along_axis(TABLE, x & 0xFF, 0) ^ np.take_along_axis(TABLE, (y & 0xF) << 2 | 3, 0),
    "floats": lambda x, y: np.rint((x & 0xFFFF).astype(np.float32) * np.float32(0.5)),
    "counted": lambda x, y: np.bitwise_count(x & 0xF) + (y & 0xF00),
    "several": lambda x, y: (x, y & 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graphs_compute_functions_and_their_bits_depend_on_no_others(name):
    function, points = FUNCTIONS[name], flipped(np.random.default_rng(1))
    with np.errstate(all="ignore"):
        terms, expected = trace(function, points[:, :COUNT]), function(*points)
        for term, result in zip(terms, expected if isinstance(expected, tuple) else (expected,), strict=True):
            [found] = evaluate([term], list(points))
            assert found.dtype == result.dtype
            np.testing.assert_array_equal(found, result)
            [bits] = of_terms([as_word(term)], (32, 32))
            assert_holds(bits, result.view(np.uint32) if result.dtype == np.float32 else result.astype(np.uint32))


def test_rules_are_as_sharp_as_packed_fields_need():
    points = flipped(np.random.default_rng(2))
    for name, most in (("bytes", 15), ("halves", 32), ("signed bytes", 8), ("bitwise", 2), ("table", 12), ("choices", 3)):
        [term] = trace(FUNCTIONS[name], points)
        assert max(bit.bit_count() for bit in of_terms([as_word(term)], (32, 32))[0]) <= most, name


def counts_calls(x):
    counts_calls.count += 1
    return x + counts_calls.count


counts_calls.count = 0


def writes(x):
    y = x + 1
    y[0] = 0
    return y


def writes_to_its_input(x):
    x += np.uint32(1)
    return x


def writes_those_of_another_mask(x):
    y = x + 1
    y[x > 1] = x[x < 2]
    return y


def writes_some(x):
    y = x + 1
    y[:2] = 0
    return y


def looks_up_and_forgets(x):
    TABLE[x + 250]  # which fails at 6
    return x


def point_by_point(x):
    y = np.empty(x.shape, np.uint32)
    for k in range(len(x)):
        y[k] = x[k] ^ np.uint32(3)
    return y


def scatters(x):
    y = np.zeros(4, np.uint32)
    y[np.where(x[:1] == 1000, 2, 1)] = 5
    return x + y[1:2]


def writes_signed(x):
    y = x + 1
    y += x.view(np.int32)
    return y


def otherwise(x):
    try:
        return np.sort(x & 0xFF)
    except Exception:  # noqa: BLE001 - the function of a user that does
        return x & 0xFF


def catches(operation, error):
    def function(x):
        try:
            return operation(x) & 0xFF
        except error:  # which arrays do not raise
            return x & 0xFF

    return function


def half_that_overflows(x):
    with np.errstate(over="raise"):
        return x.astype(np.float32).astype(np.float16).view(np.uint16).astype(np.uint32)


def raises(x):
    with np.errstate(divide="raise"):
        return np.uint32(1) // (x + np.uint32(5))


@pytest.mark.parametrize(
    "function",
    [
        counts_calls,
        writes,
        writes_to_its_input,
        writes_those_of_another_mask,
        writes_some,
        writes_signed,
        lambda x: x[x > 1],
        lambda x: x[x > 1].reshape(-1, 4)[:, 0],
        looks_up_and_forgets,
        lambda x: np.where(x > 1, x, np.empty_like(x)),
        lambda x: x[:, None].max(axis=1, dtype=np.uint64),
        lambda x: np.select([x & 1], [x], x),
        lambda x: x if x.shape[0] % 4 else x + 1,
        catches(lambda x: x.shape[0] | 0, TypeError),
        catches(lambda x: np.array(x.shape[0]), TypeError),
        catches(half_that_overflows, FloatingPointError),
        lambda x: np.full(x.shape, 1, ">u4") ^ x,
        lambda x: np.clip((x & 3).astype(np.float32), 0, x.view(np.float32)),
        lambda x: np.clip((x & 3).astype(np.float32), np.nan, 2.0),
        lambda x: x[::2],
        lambda x: x[:3],
        lambda x: x[..., 0],
        lambda x: x.reshape(2, -1)[0],
        lambda x: x.reshape(-1, 2)[:, 0],
        lambda x: x + np.uint32(x.shape[0]),
        lambda x: x + np.arange(4, dtype=np.uint32),
        lambda x: np.stack([x, x], -1).sum(axis=0)[0] + x,
        lambda x: x[:, None].astype(np.float32).sum(axis=1),
        lambda x: TABLE[::2][x[x > 1] & 15],
        lambda x: x if x.any() else x + 1,
        lambda x: x + 1 if (x > 5) is True or bool(x[0]) else x,
        lambda x: x + np.arange(len(x), dtype=np.uint32),
        lambda x: x[::-1],
        lambda x: x[np.minimum(np.arange(len(x)) + 1, len(x) - 1)],
        lambda x: np.array([x, x[::-1]]).max(axis=0),
        lambda x: np.add(len(x), x),
        lambda x: x + np.uint32(x.size // 2),
        lambda x: np.broadcast_to(x[0], x.shape),
        np.sort,
        lambda x: x + x.sum(),
        np.cumsum,
        lambda x: np.roll(x, 1),
        lambda x: x.view(np.uint64).view(np.uint32),
        np.add.accumulate,
        lambda x: x.view(">u4").astype(np.uint32),
        lambda x: x.astype(">u4").view(np.uint32),
        lambda x: np.take_along_axis(TABLE.astype(np.longdouble), x & 0xFF, 0).astype(np.uint32),
        otherwise,
        lambda x: np.array([int(each) for each in x], np.uint32),
        lambda x: np.zeros(4, np.uint32),
        point_by_point,
        scatters,
        lambda x: (x[:, None] > np.arange(4)).ravel("K"),
        lambda x: np.fmax(x.view(np.float32), np.float32(0)),
        lambda x: (x > 1) ** 2,
        lambda x: 2 ** (x & 7),
        lambda x: 5,
        lambda x: x.astype(object),
        catches(lambda x: x.view(np.uint32, np.ndarray), TypeError),
        catches(lambda x: x.astype(np.uint32, "K", "unsafe"), TypeError),
        catches(lambda x: x.clip(0, 255, None), TypeError),
        catches(lambda x: x + (x < -1), OverflowError),
        catches(lambda x: np.array(x, ndmin=1), TypeError),
        catches(lambda x: np.frombuffer(x, np.uint32), TypeError),
        catches(lambda x: x.copy("C"), TypeError),
        lambda x: TABLE.take(x & 0xFF, mode="clip"),
        lambda x: TABLE[x & 0xFF, None][:, 0],
        raises,
        lambda x: special.exp2(x.astype(np.float32)),  # a ufunc with the name of NumPy's
    ],
)
def test_what_is_not_elementwise_is_no_graph(function):
    with pytest.raises(UntraceableError):
        trace(plain(function)[0], [np.arange(4, dtype=np.uint32)])


RARELY_OTHER = """
import numpy as np
K, U = 0x12345678, np.uint32
def rare(x, y): return (x == K) & (y == 5)
def by_its_type(x, y): return np.where(rare(x, y), U(7), x + y) if (x + y).dtype.type is np.uint32 else x + y
def by_a_subtype(x, y): return np.where(rare(x, y), U(7), x + y) if issubclass(x.dtype.type, np.uint32) else x + y
def by_a_default(x, y, add=np.add): return np.where(rare(x, y), U(7), x + y) if add is np.add else x + y
def by_an_attribute(x, y): return np.where(rare(x, y), U(7), x + y) if hasattr(x, "__array_interface__") else x + y
def by_another_name(x, y):
    a = x + y
    b = np.uint32(a)
    b[rare(x, y)] = 0
    return a
def by_elements(x, y):
    made = np.zeros_like(x)
    for i in range(len(x)):
        value = x[i] + y[i]
        made[i] = np.where(rare(x[i], y[i]), U(7), value) if isinstance(value, np.integer) else value
    return made
def by_a_copy(x, y):
    a = np.stack([x, y], axis=1)
    b = np.ascontiguousarray(a.T)
    b[0] ^= rare(x, y)
    a[:, 0] ^= rare(x, y)
    return a[:, 0] + y
def in_blocks(x, y):
    made, end = x + y, len(x) // 8 * 8
    made[:end] = np.where(rare(x, y), U(7), x + y)[:end]
    return made
def by_a_shape(x, y):
    try:
        return np.where(rare(x, y), U(7), x + y).reshape(-1, 1031).ravel()
    except ValueError:
        return x + y
"""


@pytest.mark.parametrize("name", re.findall(r"^def (\w+_\w+)", RARELY_OTHER, re.MULTILINE))
def test_a_graph_is_its_function_at_numbers_of_its_code_too(name, monkeypatch):
    """Also where types, identities, memory or lengths tell real arrays from others, at inputs that no sample has."""
    module = ModuleType("rarely_other")
    module.__file__ = __file__
    exec(RARELY_OTHER, vars(module))
    monkeypatch.setitem(sys.modules, "rarely_other", module)
    function = ExactFunction(f"rarely_other:{name}")
    words = [np.full(2062, word, np.uint32) for word in (0x12345678, 5)]
    try:
        outputs, _ = proof_graphs(function)
    except UntraceableError:
        return
    np.testing.assert_array_equal(evaluate(outputs, words)[0], function(*words)[0])


LAZY = np.zeros(4, np.uint32)


def makes_its_table(x):
    LAZY[:] = np.arange(4)
    return LAZY[x & 3]


def test_a_trace_leaves_its_module_as_it_is():
    words, before = [np.arange(4, dtype=np.uint32)], {**globals()}
    with pytest.raises(UntraceableError, match="read-only"):
        trace(plain(makes_its_table)[0], words)
    assert LAZY.flags.writeable and not LAZY.any()
    [term] = trace(lambda x: entries(x, x), words)
    np.testing.assert_array_equal(evaluate([term], words)[0], entries(*words, *words))
    assert globals() == before


def test_conditions_are_taken_apart():
    function = ExactFunction("morton16", "x != 3 and no_nan_f16x2(y)")
    _, demands = proof_graphs(function)
    needs = [bits[0] & (UNKNOWN - 1) for bits in of_terms(demands, function.widths)]
    assert len(demands) == 5 and needs[-2:] == [0x7FFF << 32, 0] and conjuncts(demands[0]) == [demands[0]]


PROGRAMS = {
    "s8x4_f16x2x2": "0xe480e480:b32 0x7352:b32 0x64006400:b32 0x80808080:b32 0x7f7f7f7f:b32 %q lop3_ca store.b32:0"
    " load:0 prmt add2_f16 0xe480e480:b32 0x7150:b32 0x64006400:b32 load:0 prmt add2_f16",
    "e5m2x4_f16x2x2": "0x3424:b32 0:b32 %q prmt 0x1404:b32 0:b32 %q prmt",
    "ordered": "0x80000000:b32 31:b32 %x sar %x lop3_1e",
    "e4m3x4_f16x2x2": "0x00004431:b32 0:b32 %q prmt f16x2_of_e4m3x2 0x00004420:b32 0:b32 %q prmt f16x2_of_e4m3x2",
}


def wrong_at(function, program, words):
    language = exact_language(function)
    results = VirtualMachine(language.lowering).store(program[None], [*words, *[None] * len(function.outputs)])[0].view(np.uint32)
    wrong = np.zeros(len(words[0]), bool)
    for result, expected, care in zip(results, function(*words), function.care, strict=True):
        wrong |= (result ^ expected) & np.uint32(care) != 0
    return wrong & function.condition(*words)


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_refuse_every_mutant_that_is_wrong_at_a_sample(name):
    function, text = ExactFunction(name), PROGRAMS[name]
    language, words = exact_language(function), sample(function, 1 << 12, 3)
    right = parse_program(language, text, "test")
    found = ExactSweep(language, right, function).run()
    assert (found.method, found.wrong) == (PARTS, None)
    num_wrong, tokens = 0, text.split()
    for k, token in enumerate(tokens):
        for bit in range(1, 32, 13 if name[0] == "s" else 6) if token.endswith(":b32") else ():
            changed = [*tokens[:k], f"{int(token[:-4], 0) ^ 1 << bit}:b32", *tokens[k + 1 :]]
            mutant = parse_program(language, " ".join(changed), "test")
            if wrong_at(function, mutant, words).any():
                num_wrong, found = num_wrong + 1, ExactSweep(language, mutant, function).run()
                assert found.wrong is not None and wrong_at(
                    function, mutant, [np.array([each], np.uint32) for each in found.wrong]
                )
    assert num_wrong >= 2


def test_four_inputs_of_32_bits_are_proven_in_parts():
    function = ExactFunction("f32x4_s8x4")
    text = "0:b32 %c s32_of_f32 %d s32_of_f32 pack_s8 %a s32_of_f32 %b s32_of_f32 pack_s8"
    language = exact_language(function)
    parts, _ = parts_of(language, parse_program(language, text, "test"), function)
    assert [(part.mask, part.care) for part in parts] == [(0xFFFFFFFF << 32 * k, (0xFF << 8 * k,)) for k in range(4)]


def test_valid_inputs_are_counted_by_parts():
    function = ExactFunction("e4m3x4_f16x2x2", "q & 0xFF != 5")
    found = ExactSweep(
        language := exact_language(function), parse_program(language, PROGRAMS["e4m3x4_f16x2x2"], "test"), function
    ).run()
    assert (found.method, found.num_valid) == (PARTS, 254**3 * 253)


def test_a_condition_without_inputs_is_one_of_the_parts():
    function = ExactFunction("e5m2x4_f16x2x2", "1 < 2 and (q & 15) < 3")
    language = exact_language(function)
    words = parse_program(language, "0x3424:b32 0:b32 %q prmt 0x1404:b32 0:b32 %q prmt", "test")
    sweep = ExactSweep(language, words, function)
    assert sweep.method == PARTS and sweep.run().num_valid == 3 << 28


def test_a_proof_by_other_parts_begins_anew(monkeypatch):
    function, keys = ExactFunction("ordered"), set()
    words = parse_program(language := exact_language(function), PROGRAMS["ordered"], "test")
    for part in (Part(1, (1,), None, False), Part(2, (1,), None, False), Part(2, (2,), None, False)):
        monkeypatch.setattr("evo.approximation.exact_sweep.parts_of", lambda *_, part=part: ([part], []))
        keys.add(ExactSweep(language, words, function).key)
    assert len(keys) == 3
