"""Rules of dependence against instructions and NumPy: a bit moves with no input bit but those that its rule names."""

from contextlib import suppress
from functools import partial

import numpy as np
import pytest

from evo.approximation.bits import ExactFunction
from evo.approximation.dependence import ONE, of_program, of_terms
from evo.approximation.exact import exact_language
from evo.approximation.trace import trace
from evo.approximation.traced import UntraceableError
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine

LANGUAGE = Language(exact_language(ExactFunction("ordered")).instruction_set, (("x", "b32"), ("y", "b32")), (("z", "b32"),))
_B32 = next(each.args[0] for each in LANGUAGE.instruction_set.instructions if each.name == "shl")
INSTRUCTIONS = {each.name: each for each in LANGUAGE.instruction_set.instructions if {*each.args, *each.rets} == {_B32}}
KINDS = [np.dtype(kind) for kind in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?")]
# Zeros, ones, signs, fields, and of floats of 16 and 32 bits the least, subnormal, largest, infinite and not a number.
EDGES = """0 1 2 3 1f 20 3f 7f 80 ff ffff 8000 10000 ffff0000 7fffffff 80000000 80000001 fffffffe ffffffff 7f800000 ff800000
7fc00000 7f800001 ffc00001 800000 7fffff 807fffff 3f800000 4f000000 cf000000 7c00 fc00 7e00 7c007c01 3ff 400 7bff7bff 80008000
7f80ff80 64006400 01010101 80808080 7f7f7f7f 0f0f0f0f 7531 4440 e480e480""".split()
WORDS = np.array([int(each, 16) for each in EDGES], np.uint32)
COUNT, NUM_TRIALS = 96, 24


def drawn(rng, shape):
    """Words: random ones, those with few ones or zeros, and EDGES."""
    a, b, c = rng.integers(0, 1 << 32, (3, *shape), dtype=np.uint32)
    return np.choose(rng.integers(0, 5, shape), [a, a & b & c, a | b | c, rng.choice(WORDS, shape), rng.choice(WORDS, shape)])


def flipped(rng):
    """Two inputs at COUNT points, then with each of their 64 bits flipped: `(2, 65 * COUNT)`."""
    flips = np.zeros((65, 2, 1), np.uint32)
    flips[1 + np.arange(64), np.arange(64) // 32, 0] = 1 << np.arange(64) % 32
    return np.ascontiguousarray((drawn(rng, (2, COUNT)) ^ flips).transpose(1, 0, 2).reshape(2, -1))


def moved(bits, values):
    """The bits of results at `flipped` inputs that move against their rule, with the input bits at which they do."""
    found = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").reshape(65, COUNT).astype(np.uint64)
    changes = np.bitwise_or.reduce(found[1:] ^ found[0], axis=1)
    wrong = [
        (k, source)
        for k, bit in enumerate(bits)
        for source, change in enumerate(changes.tolist())
        if change >> k & 1 and (bit in (0, ONE) or not bit >> source & 1)
    ]
    return wrong + [(k, "known") for k, bit in enumerate(bits) if bit in (0, ONE) and (found >> k & 1 != (bit == ONE)).any()]


def operand_of(rng):
    constant, mask, count = drawn(rng, (3,)).tolist()
    name = rng.choice(["%x", "%y"])
    masked = f"{mask}:b32 {name} 0:b32 lop3_{rng.choice(['c0', '30', 'fc'])}"
    return str(rng.choice([f"{constant}:b32", f"{count % 36}:b32", name, masked, f"{count % 32}:b32 {masked} shl"]))


@pytest.mark.parametrize("name", [*(name for name in INSTRUCTIONS if name[:5] != "lop3_"), "lop3_"])
def test_bits_of_instructions_move_with_no_others(name):
    rng = np.random.default_rng(sum(name.encode()))
    for _ in range(24):
        instruction = INSTRUCTIONS[f"lop3_{rng.integers(256):02x}" if name == "lop3_" else name]
        text = " ".join([*(operand_of(rng) for _ in instruction.args), instruction.name])
        words, points = parse_program(LANGUAGE, text, "test"), flipped(rng)
        values = VirtualMachine(LANGUAGE.lowering).store(words[None], [*points, None]).view(np.uint32)[0, 0]
        [bits] = of_program(LANGUAGE, LANGUAGE.lowering.lower(words), (32, 32, 0))
        assert moved(bits, values) == [], text


@pytest.mark.parametrize(
    "text", ["5:b32 shl", "5:b32 shr", "40:b32 shr", "5:b32 sar", "65280:b32 0:b32 lop3_c0", "0:b32 6433:b32 prmt"]
)
def test_what_moves_bits_names_no_more_of_them_than_move(text):
    text = f"{text.rpartition(' ')[0]} %x {text.rpartition(' ')[2]}"  # the first operand is on top
    words, points = parse_program(LANGUAGE, text, "test"), flipped(np.random.default_rng(1))
    values = VirtualMachine(LANGUAGE.lowering).store(words[None], [*points, None]).view(np.uint32)[0, 0].reshape(65, COUNT)
    changes = np.bitwise_or.reduce(values[1:] ^ values[0], axis=1).tolist()
    [bits] = of_program(LANGUAGE, LANGUAGE.lowering.lower(words), (32, 32, 0))
    assert [max(bit, 0) for bit in bits] == [sum(1 << j for j in range(64) if changes[j] >> k & 1) for k in range(32)]


def array_of(rng, kind):
    """How an operand of a type comes of two words: a function, or a constant."""
    word, count = drawn(rng, (2,)).tolist()
    mask, which, how = np.uint32(word), rng.integers(2), rng.integers(6)
    if how == 0:  # a constant
        value = np.array([word, word], np.uint32).view(kind if kind != np.bool_ else "u1")[0]
        return value.astype(kind) if rng.integers(2) or kind.kind in "f?" else kind.type(count % 70)
    chosen = (lambda *words: words[which] & mask) if how > 2 else (lambda *words: words[which])
    if kind == np.bool_:
        return lambda *words: chosen(*words) > 7 if how > 3 else (chosen(*words) & np.uint32(4)).astype(kind)
    if kind.itemsize > 4:
        return lambda *words: chosen(*words).view(np.int32 if how % 2 else np.uint32).astype(kind)
    return lambda *words: chosen(*words).view(kind)


def has_graph(function, rng):
    """Return whether a function has a graph, in words if a point has several elements; its bits move by their rules."""
    points = flipped(rng)
    as_words = lambda *words: function(*words).view("u4"), lambda *words: function(*words).astype("u1").view("u4")
    for each in (function, *as_words):
        with np.errstate(all="ignore"), suppress(UntraceableError):
            [term] = trace(each, points)
            [bits] = of_terms([term], (32, 32))
            assert moved(bits, each(*points)) == [], term
            return True
    return False


_UFUNCS = {each for each in vars(np).values() if isinstance(each, np.ufunc)}
UFUNCS = {each.__name__: each for each in _UFUNCS if each.nout == 1 and not each.signature}


def applied(ufunc, operands, *words):
    return ufunc(*(each(*words) if callable(each) else each for each in operands))


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_bits_of_ufuncs_move_with_no_others(name):
    rng, ufunc, num_graphs = np.random.default_rng(sum(name.encode())), UFUNCS[name], 0
    for _ in range(NUM_TRIALS):
        kinds = rng.choice(KINDS, ufunc.nin) if rng.integers(2) else [rng.choice(KINDS)] * ufunc.nin
        num_graphs += has_graph(partial(applied, ufunc, [array_of(rng, kind) for kind in kinds]), rng)
    assert num_graphs > 1 or name == "isnat"


STEPS = {
    "cast": lambda a, *_, kind, **__: a.astype(kind),
    "view": lambda a, *_, kind, **__: a.view(kind),
    "take": lambda a, *_, table, **__: np.take_along_axis(table, a.astype(np.int64) & 0xFF, 0),
    "take of signed": lambda a, *_, table, **__: np.take_along_axis(np.append(0 * table, table), a.view(np.int8), 0),
    "where": lambda a, b, c, **_: np.where(a > 3, b, c),
    "clip": lambda a, *_, **__: np.clip(a, 3, 100),
    "shift": lambda a, *_, count, **__: a << a.dtype.type(count),
    "shift back": lambda a, *_, count, **__: a >> a.dtype.type(count),
    "mask": lambda a, *_, count, **__: a & a.dtype.type(count),
    "factor": lambda a, *_, count, **__: a * a.dtype.type(count),
    **{name: lambda a, b, *_, ufunc=UFUNCS[name], **__: ufunc(a, b) for name in ("add", "subtract", "multiply", "bitwise_or")},
}


def composed(rng):
    """A function of two words by some of STEPS."""
    steps = []
    for _ in range(rng.integers(1, 6)):
        options = {"kind": rng.choice(KINDS), "count": int(rng.integers(0, 40))}
        table = drawn(rng, (256,)).view(rng.choice(KINDS[:7]))
        steps.append(partial(STEPS[rng.choice(list(STEPS))], table=table, **options))
    places = rng.integers(0, 2 + np.arange(len(steps))[:, None], (len(steps), 3))

    def function(*words):
        values = [*words]
        for step, operands in zip(steps, places, strict=True):
            values.append(step(*(values[-1 - place] for place in operands)))
        return values[-1]

    return function


@pytest.mark.parametrize("seed", range(8))
def test_bits_of_composed_functions_move_with_no_others(seed):
    rng = np.random.default_rng(seed)
    assert sum(has_graph(composed(rng), rng) for _ in range(100)) > 50
