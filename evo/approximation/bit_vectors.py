"""Bit vectors of an SMT solver, and instructions on words as such vectors, by the PTX ISA.

Knows nothing of functions, programs or proofs. The solver is Bitwuzla (Niemetz & Preiner, CAV 2023).
"""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

LIMIT_S = 120.0  # of a question
MEMORY_MIB = 8192


class UnsolvedError(Exception):
    """The solver does not know, or is not asked: an operation has no meaning here, or there is no solver."""


class BitVectors:
    """Terms of the solver: bit vectors, and truths about them. definitions: truths assumed in each question."""

    def __init__(self) -> None:
        import bitwuzla

        self._b, self._terms = bitwuzla, bitwuzla.TermManager()
        self.definitions: list[Any] = []

    def term(self, kind: str, operands: Sequence[Any], indices: Sequence[int] = ()) -> Any:
        """An operation of SMT-LIB, by the solver's name."""
        return self._terms.mk_term(getattr(self._b.Kind, kind), list(operands), list(indices))

    def anything(self, width: int) -> Any:
        """A vector that can be anything."""
        return self._terms.mk_const(self._terms.mk_bv_sort(width))

    def rounding(self, mode: str) -> Any:
        """A rounding mode, by its name in SMT-LIB."""
        return self._terms.mk_rm_value(getattr(self._b.RoundingMode, mode))

    def number(self, value: int, width: int) -> Any:
        """A number modulo 2^width."""
        return self._terms.mk_bv_value(self._terms.mk_bv_sort(width), value % (1 << width))

    def width(self, a: Any) -> int:
        """Bits of a vector."""
        return int(a.sort().bv_size())

    def apply(self, kind: str, *operands: Any) -> Any:
        """An operation of SMT-LIB's bit vectors."""
        return self.term(f"BV_{kind}", operands)

    def cut(self, a: Any, first: int, width: int) -> Any:
        """Bits from the first on."""
        return self.term("BV_EXTRACT", [a], [first + width - 1, first])

    def wide(self, a: Any, width: int, is_signed: bool = False) -> Any:
        """Extended or cut to a width."""
        more = width - self.width(a)
        if more > 0:
            return self.term("BV_SIGN_EXTEND" if is_signed else "BV_ZERO_EXTEND", [a], [more])
        return self.cut(a, 0, width) if more else a

    def negative(self, a: Any) -> Any:
        """Two's complement."""
        return self.apply("NEG", a)

    def same(self, a: Any, b: Any) -> Any:
        """Truth of a == b."""
        return self.term("EQUAL", [a, b])

    def differ(self, a: Any, b: Any) -> Any:
        """Truth of a != b."""
        return self.is_not(self.same(a, b))

    def less(self, a: Any, b: Any, is_signed: bool = False) -> Any:
        """Truth of a < b."""
        return self.apply("SLT" if is_signed else "ULT", a, b)

    def is_not(self, truth: Any) -> Any:
        """The opposite."""
        return self.term("NOT", [truth])

    def is_true(self, a: Any) -> Any:
        """Truth of a != 0."""
        return self.differ(a, self.number(0, self.width(a)))

    def choose(self, truth: Any, a: Any, b: Any) -> Any:
        """Choose a where it holds, else b."""
        return self.term("ITE", [truth, a, b])

    def truth(self, truth: Any) -> Any:
        """A truth as a bit."""
        return self.choose(truth, self.number(1, 1), self.number(0, 1))

    def ones(self, a: Any) -> Any:
        """Count of ones, in as many bits."""
        width = self.width(a)
        return reduce(lambda x, y: self.apply("ADD", x, y), (self.wide(self.cut(a, k, 1), width) for k in range(width)))

    def question(self, truths: Sequence[Any]) -> Callable[[Sequence[Any], Sequence[Any]], tuple[int, ...] | None]:
        """A function of further truths and of vectors: values of these for which all hold, or None if there are none."""
        options = self._b.Options()
        options.set(self._b.Option.PRODUCE_MODELS, True)
        options.set(self._b.Option.MEMORY_LIMIT, MEMORY_MIB)
        solver = self._b.Bitwuzla(self._terms, options)
        for truth in (*self.definitions, *truths):
            solver.assert_formula(truth)

        def asked(further: Sequence[Any], names: Sequence[Any]) -> tuple[int, ...] | None:
            end_s = time.monotonic() + LIMIT_S
            solver.configure_terminator(lambda: time.monotonic() > end_s)
            result = solver.check_sat(*further)
            if result == self._b.Result.UNKNOWN:
                raise UnsolvedError(f"the solver did not end within {LIMIT_S:g} s and {MEMORY_MIB} MiB")
            return None if result == self._b.Result.UNSAT else tuple(int(solver.get_value(vector).value(10)) for vector in names)

        return asked


def joined(v: BitVectors, parts: Iterable[Any]) -> Any:
    """Vectors one after the other, the lowest first."""
    return reduce(lambda low, high: v.apply("CONCAT", high, low), parts)


# ---- instructions ----


def lop3(v: BitVectors, table: int, *operands: Any) -> Any:
    """Each bit of a table of 8, by a bit of each operand."""
    ones = [
        reduce(
            lambda x, y: v.apply("AND", x, y),
            (x if row >> k & 1 else v.apply("NOT", x) for x, k in zip(operands, (2, 1, 0), strict=True)),
        )
        for row in range(8)
        if table >> row & 1
    ]
    return reduce(lambda x, y: v.apply("OR", x, y), ones, v.number(0, 32))


def _byte(v: BitVectors, a: Any, k: int) -> Any:
    return v.cut(a, 8 * k, 8)


def _permuted(v: BitVectors, a: Any, b: Any, indices: Sequence[Any]) -> Any:
    """Bytes of b:a by indices of 3 bits, the lowest first."""
    both = v.apply("CONCAT", b, a)
    parts = [v.cut(v.apply("SHR", both, v.apply("SHL", v.wide(k, 64), v.number(3, 64))), 0, 8) for k in indices]
    return joined(v, parts)


def _prmt(v: BitVectors, a: Any, b: Any, c: Any) -> Any:
    whole, parts = _permuted(v, a, b, [v.cut(c, 4 * k, 3) for k in range(4)]), []
    for k in range(4):
        signs = v.wide(v.cut(whole, 8 * k + 7, 1), 8, True)
        parts.append(v.choose(v.is_true(v.cut(c, 4 * k + 3, 1)), signs, _byte(v, whole, k)))
    return joined(v, parts)


def _moded(index: Callable[[BitVectors, Any, Any], Any]) -> Callable[..., Any]:
    """A mode of prmt: the index of byte k of the result, of the lowest two bits of c."""

    def apply(v: BitVectors, a: Any, b: Any, c: Any) -> Any:
        first = v.wide(v.cut(c, 0, 2), 3)
        return _permuted(v, a, b, [index(v, first, v.number(k, 3)) for k in range(4)])

    return apply


def _product(v: BitVectors, a: Any, b: Any, is_signed: bool) -> Any:
    return v.cut(v.apply("MUL", v.wide(a, 64, is_signed), v.wide(b, 64, is_signed)), 32, 32)


def _field(v: BitVectors, a: Any, b: Any, c: Any) -> Any:
    count = v.wide(_byte(v, c, 0), 32)
    mask = v.apply("NOT", v.apply("SHL", v.number(-1, 32), count))
    return v.apply("AND", v.apply("SHR", a, v.wide(_byte(v, b, 0), 32)), mask)


def _signed_field(v: BitVectors, a: Any, b: Any, c: Any) -> Any:
    count, size = v.wide(_byte(v, c, 0), 32), v.number(32, 32)
    left = v.choose(v.less(count, size), v.apply("SUB", size, count), v.number(0, 32))
    return v.apply("ASHR", v.apply("SHL", v.apply("ASHR", a, v.wide(_byte(v, b, 0), 32)), left), left)


def _highest(v: BitVectors, a: Any) -> Any:
    highest = v.number(-1, 32)
    for k in range(32):
        highest = v.choose(v.is_true(v.cut(a, k, 1)), v.number(k, 32), highest)
    return highest


def _dot(v: BitVectors, a: Any, b: Any, c: Any, is_signed: bool) -> Any:
    pairs = (tuple(v.wide(_byte(v, operand, k), 32, is_signed) for operand in (a, b)) for k in range(4))
    return reduce(lambda total, pair: v.apply("ADD", total, v.apply("MUL", *pair)), pairs, c)


def _distances(v: BitVectors, a: Any, b: Any, c: Any) -> Any:
    total = c
    for k in range(4):
        x, y = _byte(v, a, k), _byte(v, b, k)
        total = v.apply("ADD", total, v.wide(v.choose(v.less(x, y), v.apply("SUB", y, x), v.apply("SUB", x, y)), 32))
    return total


def _limited(v: BitVectors, a: Any, least: int, most: int) -> Any:
    low, high = v.number(least, 32), v.number(most, 32)
    return v.cut(v.choose(v.less(a, low, True), low, v.choose(v.less(high, a, True), high, a)), 0, 8)


def _packed(v: BitVectors, a: Any, b: Any, c: Any, least: int, most: int) -> Any:
    return v.apply("CONCAT", v.cut(c, 0, 16), v.apply("CONCAT", _limited(v, a, least, most), _limited(v, b, least, most)))


def _extreme(is_least: bool, is_signed: bool) -> Callable[..., Any]:
    return lambda v, a, b: v.choose(v.less(*((a, b) if is_least else (b, a)), is_signed), a, b)


def _funnel(v: BitVectors, a: Any, b: Any, c: Any, kind: str) -> Any:
    count = v.wide(v.cut(c, 0, 5), 64)
    return v.cut(v.apply(kind, v.apply("CONCAT", b, a), count), 32 if kind == "SHL" else 0, 32)


INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda v, a, b: v.apply("ADD", a, b),
    "sub": lambda v, a, b: v.apply("SUB", a, b),
    "mul": lambda v, a, b: v.apply("MUL", a, b),
    "mad": lambda v, a, b, c: v.apply("ADD", v.apply("MUL", a, b), c),
    "mulhi": lambda v, a, b: _product(v, a, b, False),
    "mulhi_s": lambda v, a, b: _product(v, a, b, True),
    "madhi": lambda v, a, b, c: v.apply("ADD", _product(v, a, b, False), c),
    "shl": lambda v, a, b: v.apply("SHL", a, b),
    "shr": lambda v, a, b: v.apply("SHR", a, b),
    "sar": lambda v, a, b: v.apply("ASHR", a, b),
    "shf_l": lambda v, a, b, c: _funnel(v, a, b, c, "SHL"),
    "shf_r": lambda v, a, b, c: _funnel(v, a, b, c, "SHR"),
    "prmt": _prmt,
    "prmt_f4e": _moded(lambda v, n, k: v.apply("ADD", n, k)),
    "prmt_b4e": _moded(lambda v, n, k: v.apply("SUB", n, k)),
    "prmt_rc8": _moded(lambda _, n, __: n),
    "prmt_ecl": _moded(lambda v, n, k: v.choose(v.less(n, k), k, n)),
    "prmt_ecr": _moded(lambda v, n, k: v.choose(v.less(n, k), n, k)),
    "prmt_rc16": lambda v, a, b, c: _permuted(
        v, a, b, [v.apply("CONCAT", v.apply("CONCAT", v.number(0, 1), v.cut(c, 0, 1)), v.number(k & 1, 1)) for k in range(4)]
    ),
    "bfe_u": _field,
    "bfe_s": _signed_field,
    "min_u": _extreme(True, False),
    "max_u": _extreme(False, False),
    "min_s": _extreme(True, True),
    "max_s": _extreme(False, True),
    "brev": lambda v, a: reduce(lambda x, y: v.apply("CONCAT", x, y), (v.cut(a, k, 1) for k in range(32))),
    "popc": lambda v, a: v.ones(a),
    "bfind": _highest,
    "dp4a_u": lambda v, a, b, c: _dot(v, a, b, c, False),
    "dp4a_s": lambda v, a, b, c: _dot(v, a, b, c, True),
    "vabsdiff4": _distances,
    "pack_s8": lambda v, a, b, c: _packed(v, a, b, c, -128, 127),
    "pack_u8": lambda v, a, b, c: _packed(v, a, b, c, 0, 255),
}
