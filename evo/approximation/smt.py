"""Proofs by an SMT solver that a program and an exact function agree: over words whose values are too many to try.

Owns the semantics of a graph's operations in bit vectors, and the questions. Semantics that differ from the machine's or NumPy's
at a sample are refused. The solver is Bitwuzla (Niemetz & Preiner, CAV 2023).
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.bit_vectors import INSTRUCTIONS, BitVectors, UnsolvedError, joined, lop3
from evo.approximation.bits import ExactFunction, Words
from evo.approximation.exact_sweep import proof_graphs
from evo.approximation.float_vectors import FLOAT_INSTRUCTIONS, NUMPY, converted, of_integer, of_numpy, to_integer
from evo.approximation.graph import Term, ordered, program_terms
from evo.approximation.samples import sample
from evo.approximation.traced import UntraceableError
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine

SOLVED = "every input, by a solver"
_NUM_COMPARED = 64  # inputs at which the semantics are compared with computed results
_MOST_ENTRIES = 256  # of a table

_OPERATIONS = {
    "bitwise_and": "AND",
    "bitwise_or": "OR",
    "bitwise_xor": "XOR",
    "invert": "NOT",
    "add": "ADD",
    "subtract": "SUB",
    "multiply": "MUL",
    "negative": "NEG",
    "left_shift": "SHL",
}
_Truth = Callable[[BitVectors, Any, Any, bool], Any]
_COMPARISONS: dict[str, _Truth] = {
    "equal": lambda v, a, b, _: v.same(a, b),
    "not_equal": lambda v, a, b, _: v.differ(a, b),
    "less": lambda v, a, b, is_signed: v.less(a, b, is_signed),
    "greater": lambda v, a, b, is_signed: v.less(b, a, is_signed),
    "less_equal": lambda v, a, b, is_signed: v.is_not(v.less(b, a, is_signed)),
    "greater_equal": lambda v, a, b, is_signed: v.is_not(v.less(a, b, is_signed)),
}


def solved(language: Language, words: NDArray[np.uint64], function: ExactFunction) -> tuple[int, ...] | None:
    """Inputs at which a program is wrong; None: there are none.

    Raises:
        UnsolvedError: this is not known.
    """
    if find_spec("bitwuzla") is None:
        raise UnsolvedError("pip install 'evo-ptx[smt]' for a solver")
    try:
        outputs, demands = proof_graphs(function)
    except UntraceableError as error:
        raise UnsolvedError(str(error)) from error
    return _Question(language, words, function, outputs, demands).answer()


class _Question:
    """Whether there is an input at which results differ."""

    def __init__(
        self,
        language: Language,
        words: NDArray[np.uint64],
        function: ExactFunction,
        outputs: Sequence[Term],
        demands: Sequence[Term],
    ):
        self._function, self._language, self._words = function, language, words
        self._v = v = BitVectors()
        self._inputs = [v.anything(width) for width in function.widths]
        inputs = [v.wide(vector, 32) for vector in self._inputs]
        self._demanded: list[tuple[Any, str]] = []
        self._expected = self._of_terms(outputs, inputs)
        self._valid = [v.is_true(truth) for truth in self._of_terms(demands, inputs)]
        self._actual = self._of_terms(program_terms(language, language.lowering.lower(words)), inputs)

    def answer(self) -> tuple[int, ...] | None:
        """See `solved`."""
        v = self._v
        self._compare()
        if v.question(self._valid)([], []) is None:
            raise UnsolvedError("no input meets the precondition")
        for demand, reason in self._demanded:
            if v.question([*self._valid, v.is_not(demand)])([], []) is not None:
                raise UnsolvedError(reason)
        pairs = zip(self._actual, self._expected, self._function.care, strict=True)
        differ = [v.differ(v.apply("AND", a, v.number(care, 32)), v.apply("AND", b, v.number(care, 32))) for a, b, care in pairs]
        for difference in differ:
            if (inputs := v.question([*self._valid, difference])([], self._inputs)) is not None:
                words = [np.array([word], np.uint32) for word in inputs]
                wrong = [(a ^ b) & np.uint32(c) for a, b, c in zip(*self._computed(words), self._function.care, strict=True)]
                if not np.any(wrong) or not self._function.condition(*words)[0]:
                    raise UnsolvedError("results are NaN of any bits, or zeros of any sign")
                return inputs
        return None

    def _computed(self, words: Sequence[Words]) -> tuple[Sequence[Words], Sequence[Words]]:
        """Results of the machine and of NumPy."""
        unused = [None] * (len(self._language.registers) - len(words))
        results = VirtualMachine(self._language.lowering).store(self._words[None], [*words, *unused])[0].view(np.uint32)
        return list(results), self._function(*words)

    def _compare(self) -> None:
        """Compares the semantics with NumPy and the machine at a sample."""
        words = sample(self._function, _NUM_COMPARED, 1)
        terms, values = [*self._inputs, *self._actual, *self._expected], [*words, *chain(*self._computed(words))]
        asked = self._v.question([])
        for k in range(len(words[0])):
            truths = [
                self._v.same(a, self._v.number(int(row[k]), self._v.width(a))) for a, row in zip(terms, values, strict=True)
            ]
            if asked(truths, []) is None:
                raise UnsolvedError("an operation means something else to the solver")

    # ---- functions ----

    def _of_terms(self, terms: Sequence[Term], inputs: Sequence[Any]) -> list[Any]:
        known: dict[Term, Any] = {}
        for term in ordered(terms):
            known[term] = self._of_term(term, [known[operand] for operand in term.operands], inputs)
        return [known[term] for term in terms]

    def _of_term(self, term: Term, operands: list[Any], inputs: Sequence[Any]) -> Any:
        v, width, (a, b, *_) = self._v, term.width, (*operands, None, None)
        kinds = [operand.dtype.kind for operand in term.operands]
        is_signed = "i" in kinds
        match term.op:
            case "input":
                return inputs[term.value]
            case "constant":
                return v.number(term.bits(), width)
            case "view":
                return a
            case "part":
                return v.cut(a, width * term.value, width)
            case "join":
                return joined(v, operands)
            case "cast":
                return self._cast(a, term.operands[0].dtype, term.dtype, width)
            case "where":
                return v.choose(v.is_true(a), b, operands[2])
            case "instruction":
                return _of_instruction(v, term.value, operands)
            case "special":
                raise UnsolvedError("the program reads a special register")
            case _ if "f" in kinds:
                result = of_numpy(v, term.op, operands) if len({operand.dtype for operand in term.operands}) == 1 else None
                if result is not None:
                    return result
            case "take":
                return self._looked_up(term.value, a, width, is_signed)
            case "logical_and" | "logical_or" | "logical_xor" | "logical_not":
                truths = [v.truth(v.is_true(operand)) for operand in operands]
                return v.apply("NOT" if term.op == "logical_not" else term.op[8:].upper(), *truths)
            case "bitwise_count":
                return v.wide(
                    v.ones(v.choose(v.less(a, v.number(0, v.width(a)), True), v.negative(a), a) if is_signed else a), width
                )
            case "absolute" if is_signed:
                return v.choose(v.less(a, v.number(0, width), True), v.negative(a), a)
            case "floor_divide" | "remainder" if kinds in (["u", "u"], ["i", "i"]):
                return self._divided(term.op, a, b, is_signed)
            case "minimum" | "maximum" if len({*kinds}) == 1:
                is_first = v.less(a, b, is_signed) if term.op == "minimum" else v.less(b, a, is_signed)
                return v.choose(is_first, a, b)
            case _ if term.op in _COMPARISONS and len({operand.dtype for operand in term.operands}) == 1:
                return v.truth(_COMPARISONS[term.op](v, a, b, is_signed))
            case "right_shift":
                return v.apply("ASHR" if is_signed else "SHR", a, b)
            case _ if term.op in _OPERATIONS and "b" not in kinds:
                return v.apply(_OPERATIONS[term.op], *operands)
            case "bitwise_and" | "bitwise_or" | "bitwise_xor" | "invert":
                return v.apply(_OPERATIONS[term.op], *operands)
        raise UnsolvedError(
            f"np.{term.op} of {', '.join(str(operand.dtype) for operand in term.operands)} has no meaning in bits"
        )

    def _cast(self, a: Any, old: np.dtype[Any], new: np.dtype[Any], width: int) -> Any:
        v = self._v
        if old.kind == "f":
            if new.kind == "f":
                return converted(v, a, NUMPY[v.width(a)], NUMPY[width])
            if width == 1:
                return of_numpy(v, "not_equal", [a, v.number(0, v.width(a))])
            integer, is_inside = to_integer(v, a, width, new.kind == "i")
            self._demanded.append((is_inside, f"a float may be outside of {new}"))
            return integer
        if new.kind == "f":
            return of_integer(v, a, NUMPY[width], old.kind == "i")
        return v.truth(v.is_true(a)) if width == 1 else v.wide(a, width, old.kind == "i")

    def _divided(self, op: str, a: Any, b: Any, is_signed: bool) -> Any:
        """Quotient rounded down, or its remainder; both are 0 if the divisor is."""
        v, zero = self._v, self._v.number(0, self._v.width(a))
        quotient, rest = (v.apply(f"{'S' if is_signed else 'U'}{name}", a, b) for name in ("DIV", "REM"))
        if is_signed:
            signs = [v.less(number, zero, True) for number in (rest, b)]
            is_above = v.choose(v.is_not(v.same(rest, zero)), v.truth(v.differ(*signs)), v.number(0, 1))
            quotient = v.apply("SUB", quotient, v.wide(is_above, v.width(a)))
            rest = v.choose(v.is_true(is_above), v.apply("ADD", rest, b), rest)
        return v.choose(v.same(b, zero), zero, quotient if op == "floor_divide" else rest)

    def _looked_up(self, table: NDArray[Any], index: Any, width: int, is_signed: bool) -> Any:
        if len(table) > _MOST_ENTRIES:
            raise UnsolvedError(f"a table has more than {_MOST_ENTRIES} entries")
        v, entries = self._v, table.view(f"u{table.dtype.itemsize}").tolist()
        limit = min(len(entries), 1 << (v.width(index) - is_signed))  # a negative index counts from the end
        if limit < 1 << v.width(index):
            is_inside = v.less(index, v.number(limit, v.width(index)))
            self._demanded.append((is_inside, "a table may be read beyond its ends"))
        value = v.number(entries[-1], width)
        for k, entry in enumerate(entries[:-1]):
            value = v.choose(v.same(index, v.number(k, v.width(index))), v.number(entry, width), value)
        return value


def _of_instruction(v: BitVectors, name: str, operands: Sequence[Any]) -> Any:
    if name.startswith("lop3_"):
        return lop3(v, int(name[5:], 16), *operands)
    meaning = INSTRUCTIONS.get(name) or FLOAT_INSTRUCTIONS.get(name)
    if meaning is None:
        raise UnsolvedError(f"instruction {name!r} has no meaning in bits")
    return meaning(v, *operands)
