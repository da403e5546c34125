"""Words that few instructions make of the inputs: the rows of a synthesis.

Owns which they are. Knows nothing of goals.
"""

from itertools import permutations, product
from typing import Any

from evo.approximation.bits import ALL
from evo.approximation.nodes import Node
from evo.approximation.numbers import rounded
from evo.approximation.packed import field_nodes
from evo.approximation.wide import LIMITS

SHIFTS = range(1, 32)
_MOST_ROWS, _BASES = 900, (3, 5, 10)
_BYTE_PAIRS = [a | 0x4040 | b << 8 for a in range(4) for b in range(4)]
_BYTE_PAIRS += [0x4400 | a | b << 4 for a in range(4) for b in range(4) if a != b]
_FIELDS = [0x01010101 * m for m in (0x0F, 0xF0, 0x80, 0x7F, 0x01, 0x88)]
_FIELDS += [0x00010001 * m for m in (0xFF, 0xFF00, 0x0F, 0x8000, 0x7FFF, 0x80, 0x8080)]
_HALVES = {1: 0x55555555, 2: 0x33333333, 4: 0x0F0F0F0F, 8: 0x00FF00FF}  # lower halves of fields, by their width
_FIELDS += [1, 0xFF, 0xFFFF, 0xFFFF0000, 0x7FFFFFFF, 0x80000000, 0x7F800000, 0xFFFFFFFF]
_OF_TWO = """add sub mul mulhi mulhi_s min_u max_u min_s max_s shl shr sar addf subf mulf minf maxf f16x2_of_f32 bf16x2_of_f32
    e4m3x2_of_f32 e5m2x2_of_f32""".split()
_OF_TWO += [f"{name}2_{form}" for name in ("add", "sub", "mul", "min", "max") for form in ("f16", "bf16")]
_LOW = 0x0F0F0F0F
_ARITHMETIC = "add sub mul min_u max_u min_s max_s addf subf mulf minf maxf".split()
_OF_THREE = "dp4a_u dp4a_s vabsdiff4 pack_s8 pack_u8 mad madhi fmaf fma2_f16 fma2_bf16 shf_l shf_r bfe_u bfe_s".split()


def expand(known: Any) -> None:
    """Rows of one instruction, and of two that often belong together."""
    inputs = [("%", k) for k in range(known.num_inputs)]
    for x in inputs:
        known.add(x)
    _joined_fields(known, inputs)
    for x in inputs:
        _moves(known, x)
        _fields(known, x)
        _conversions(known, x)
        for small in ("f16x2_of_e4m3x2", "f16x2_of_e5m2x2"):
            for pair in ((small, x), ("shr", (small, x), 16)):
                known.add(("f32_of_f16", pair))
        if known.function.types[x[1]] == "f32":
            number = ("addf", x, 0)  # -0 becomes 0
            known.add(("bf16x2_of_f32", x, x))
            known.add(number)
            for name, constant in (("add", 1), ("shr", 31), ("sar", 31)):
                known.add((name, number, constant))
        for code in rounded(x) if known.function.types[x[1]] == "bf16x2" else ():
            for node in (code, *(("prmt", code, 0, selector) for selector in _BYTE_PAIRS)):
                known.add(node)
    for a in inputs:
        for b in inputs:
            if a != b:
                _pairs(known, a, b)
    fields = {known.values(node).tobytes(): node for node in (*field_nodes(inputs), *inputs)}
    known.fields = list(fields.values())
    for x in known.fields:
        known.add(x)
    first = list(known.rows)
    for x in first:
        if len(known.rows) > _MOST_ROWS:
            break
        kind, *operands = x
        if kind in ("shr", "prmt"):
            _conversions(known, x)
        if kind == "shr":
            for mask in (1, 0x00010001, 0x01010101, *([_HALVES[operands[1]]] if operands[1] in _HALVES else [])):
                known.add(("lop3_ca", x, mask, 0))
        if kind == "lop3_ca" and operands[1] == ~operands[2] & 0xFFFFFFFF:  # inverted bits
            for selector in _BYTE_PAIRS:
                known.add(("prmt", x, 0, selector))
    for a, b, c in permutations(inputs) if len(inputs) == 3 else ():
        for name in _OF_THREE:
            known.add((name, a, b, c))
        for inner, outer in product(_ARITHMETIC, _ARITHMETIC):
            known.add((outer, (inner, a, b), c))
        if set(known.function.types) == {"f32"}:
            for node in (("addf", ("mulf", a, b), c), ("mulf", ("addf", a, b), c), ("mulf", ("subf", a, b), c)):
                _conversions(known, node)


def _joined_fields(known: Any, inputs: list[Node]) -> None:
    """Every second field of a word, and of another or the same."""
    for (width, lower), x, y in product(_HALVES.items(), inputs, inputs):
        if width < 8:  # a permutation moves bytes
            upper = [(x, ("shl", y, width)), (("shr", x, width), y)] if x != y else [(x, ("shr", x, width))]
            for low, high in upper:
                known.add(("lop3_d8", high, low, lower))  # c ? b : a


def _moves(known: Any, x: Node) -> None:
    for k in SHIFTS:
        for name in ("shr", "shl", "sar"):
            known.add((name, x, k))
        known.add(("shf_r", x, x, k))
    for selector in _BYTE_PAIRS:
        known.add(("prmt", x, 0, selector))


def _fields(known: Any, x: Node) -> None:
    for mask in (*_FIELDS, *_HALVES.values()):
        known.add(("lop3_ca", x, mask, 0))
        known.add(("lop3_ca", x, ~mask & 0xFFFFFFFF, mask))
    for constant in (1, 0xFFFFFFFF, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000):
        known.add(("add", x, constant))
    for addend in (1, 0xFFFFFFFF):
        known.add(("add", ("min_u", x, 0xFFFFFFFE), addend))
        known.add(("add", ("max_u", x, 1), addend))
    for name in ("min_u", "max_u", "min_s", "max_s"):
        for limit in (0xFFFFFFFE, *LIMITS):
            known.add((name, x, limit))
    for factor in (0x01010101, 0x00010001):
        known.add(("mul", x, factor))
    for form, unit in (("f", 0x3F800000), ("2_f16", 0x3C003C00), ("2_bf16", 0x3F803F80)):
        for limit in (0, unit):
            known.add((f"min{form}", x, limit))
            known.add((f"max{form}", x, limit))
    for name in ("popc", "brev", "bfind"):
        known.add((name, x))
    known.add(("popc", ("lop3_0c", x, ("add", x, ALL), 0)))  # zeros below the lowest one
    ones = ("sub", x, ("lop3_c0", ("shr", x, 1), 0x55555555, 0))  # ones in each two bits, in four and in eight
    ones4 = ("add", ("lop3_c0", ones, 0x33333333, 0), ("lop3_c0", ("shr", ones, 2), 0x33333333, 0))
    for node in (ones, ones4, ("lop3_c0", ("add", ones4, ("shr", ones4, 4)), 0x0F0F0F0F, 0)):
        known.add(node)
    known.add(("shr", ("brev", x), 32 - known.function.widths[x[1]]))
    for highest in (("bfind", x), ("bfind", ("add", x, ALL))):
        for power in (1, 2):
            known.add(("shl", power, highest))
            known.add(("shf_l", power, power, highest))
    if known.function.widths[x[1]] <= 8:  # a bit to each field
        for factor, mask in (
            (0x00204081, 0x01010101),
            (0x08040201, 0x08040201),
            (0x00204081, 0x80808080),
            (0x11111111, 0x84218421),
        ):
            known.add(("lop3_ca", ("mul", x, factor), mask, 0))
    for base in _BASES:
        _digits(known, x, base)
    for addend in range(4):
        known.add(("dp4a_u", x, 0x01010101, addend))
    known.add(("dp4a_s", x, 0x01010101, 0))


def _digits(known: Any, x: Node, base: int) -> None:
    """Digits of a fraction of 8 bits: two in the halves of a word, or one of a word."""
    powers = [base**k for k in range(9) if base**k < 256]
    for power in powers:
        known.add(("mul", x, power << 24))
    for low, high in zip(powers[::2], powers[1::2], strict=False):
        halves = ("lop3_ca", ("mul", x, low | high << 16), 0x00FF00FF, 0)
        known.add(("mul", halves, base))


def _conversions(known: Any, x: Node) -> None:
    for name in (
        "f16x2_of_e4m3x2",
        "f16x2_of_e5m2x2",
        "e4m3x2_of_f16x2",
        "e5m2x2_of_f16x2",
        "s32_of_f32",
        "f32_of_u32",
        "f32_of_s32",
        "f32_of_f16",
    ):
        known.add((name, x))


def _pairs(known: Any, a: Node, b: Node) -> None:
    for name in _OF_TWO:
        known.add((name, a, b))
    for name in _OF_THREE:
        known.add((name, a, b, 0))
    for x, y in product(*([node, ("lop3_c0", node, _LOW, 0), ("lop3_c0", ("shr", node, 4), _LOW, 0)] for node in (a, b))):
        for name in ("dp4a_u", "dp4a_s"):  # of bytes and nibbles
            known.add((name, x, y, 0))
    for table in ("c0", "3c"):
        known.add(("popc", (f"lop3_{table}", a, b, 0)))
    if known.function.types[a[1]] == known.function.types[b[1]] == "f32":
        for name in ("addf", "subf", "mulf"):
            _conversions(known, (name, a, b))
    for selector in (0x5410, 0x7632, 0x5140, 0x6420, 0x7531, 0x7362):
        known.add(("prmt", a, b, selector))
