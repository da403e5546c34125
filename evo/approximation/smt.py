"""Proofs by an SMT solver that a program and an exact function agree: over words whose values are too many to try.

Owns what each operation of a function's graph and each instruction means in bit vectors; integers and bits only. A meaning that
differs from the machine's or from NumPy's at a sample is refused. The solver is Bitwuzla (Niemetz & Preiner 2023).
"""

from collections.abc import Callable, Sequence
from functools import reduce
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.bit_vectors import INSTRUCTIONS, BitVectors, UnsolvedError, lop3
from evo.approximation.bits import ExactFunction, Words
from evo.approximation.exact_sweep import traced
from evo.approximation.samples import sample
from evo.approximation.trace import Term, UntraceableError, ordered
from evo.language.program import Language
from evo.native.ptx_vm import VirtualMachine
from evo.native.stack_ptx import Lowered, NodeKind

SOLVED = "every input, by a solver"
_NUM_COMPARED = 256  # inputs at which meanings are compared with what is computed
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
        outputs, demands = traced(function)
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
        self._inputs = [v.name(f"x{k}", width) for k, width in enumerate(function.widths)]
        inputs = [v.wide(each, 32) for each in self._inputs]
        self._demanded: list[Any] = []
        self._expected = self._of_terms(outputs, inputs)
        self._valid = [v.is_true(each) for each in self._of_terms(demands, inputs)]
        self._found = self._of_program(language.lowering.lower(words), inputs)

    def answer(self) -> tuple[int, ...] | None:
        """See `solved`."""
        v = self._v
        self._compare()
        if v.model(self._valid, self._inputs) is None:
            raise UnsolvedError("no input meets the precondition")
        for demand in self._demanded:
            if v.model([*self._valid, v.is_not(demand)], []) is not None:
                raise UnsolvedError("a table may be read beyond its end")
        pairs = zip(self._found, self._expected, self._function.care, strict=True)
        differ = [v.differ(v.apply("AND", a, v.number(care, 32)), v.apply("AND", b, v.number(care, 32))) for a, b, care in pairs]
        for each in differ:
            if (inputs := v.model([*self._valid, each], self._inputs)) is not None:
                words = [np.array([word], np.uint32) for word in inputs]
                wrong = [(a ^ b) & np.uint32(c) for a, b, c in zip(*self._computed(words), self._function.care, strict=True)]
                if not np.any(wrong) or not self._function.condition(*words)[0]:
                    raise UnsolvedError("the solver names an input at which the program is right")
                return inputs
        return None

    def _computed(self, words: Sequence[Words]) -> tuple[Sequence[Words], Sequence[Words]]:
        """Results of the machine and of NumPy."""
        unused = [None] * (len(self._language.registers) - len(words))
        results = VirtualMachine(self._language.lowering).store(self._words[None], [*words, *unused])[0].view(np.uint32)
        return list(results), self._function(*words)

    def _compare(self) -> None:
        """Compares both meanings with what NumPy and the machine compute at a sample."""
        words = sample(self._function, _NUM_COMPARED, 1)
        results, expected = self._computed(words)
        for terms, values in ((self._found, results), (self._expected, expected)):
            for term, row in zip(terms, values, strict=True):
                for k, value in enumerate(row[:_NUM_COMPARED]):
                    if self._v.value(term, self._inputs, [int(each[k]) for each in words]) != int(value):
                        raise UnsolvedError("an operation means something else to the solver")

    # ---- functions ----

    def _of_terms(self, terms: Sequence[Term], inputs: Sequence[Any]) -> list[Any]:
        known: dict[Term, Any] = {}
        for term in ordered(terms):
            if any(each.dtype.kind == "f" for each in (term, *term.operands)) and term.op not in ("input", "view"):
                raise UnsolvedError(f"np.{term.op} of floats has no meaning in bits")
            known[term] = self._of_term(term, [known[each] for each in term.operands], inputs)
        return [known[term] for term in terms]

    def _of_term(self, term: Term, operands: list[Any], inputs: Sequence[Any]) -> Any:
        v, width, (a, b, *_) = self._v, term.width, (*operands, None, None)
        kinds = [each.dtype.kind for each in term.operands]
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
                return reduce(lambda low, high: v.apply("CONCAT", high, low), operands)
            case "cast" if width == 1:
                return v.truth(v.is_true(a))
            case "cast":
                return v.wide(a, width, is_signed)
            case "where":
                return v.choose(v.is_true(a), b, operands[2])
            case "take":
                return self._looked_up(term.value, a, width)
            case "logical_and" | "logical_or" | "logical_xor" | "logical_not":
                truths = [v.truth(v.is_true(each)) for each in operands]
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
            case _ if term.op in _COMPARISONS and len({each.dtype for each in term.operands}) == 1:
                return v.truth(_COMPARISONS[term.op](v, a, b, is_signed))
            case "right_shift":
                return v.apply("ASHR" if is_signed else "SHR", a, b)
            case _ if term.op in _OPERATIONS and "b" not in kinds:
                return v.apply(_OPERATIONS[term.op], *operands)
            case "bitwise_and" | "bitwise_or" | "bitwise_xor" | "invert":
                return v.apply(_OPERATIONS[term.op], *operands)
        raise UnsolvedError(f"np.{term.op} of {', '.join(str(each.dtype) for each in term.operands)} has no meaning in bits")

    def _divided(self, op: str, a: Any, b: Any, is_signed: bool) -> Any:
        """Quotient rounded down, or its remainder; both are 0 if the divisor is."""
        v, zero = self._v, self._v.number(0, self._v.width(a))
        quotient, rest = (v.apply(f"{'S' if is_signed else 'U'}{name}", a, b) for name in ("DIV", "REM"))
        if is_signed:
            signs = [v.less(each, zero, True) for each in (rest, b)]
            is_above = v.choose(v.is_not(v.same(rest, zero)), v.truth(v.differ(*signs)), v.number(0, 1))
            quotient = v.apply("SUB", quotient, v.wide(is_above, v.width(a)))
            rest = v.choose(v.is_true(is_above), v.apply("ADD", rest, b), rest)
        return v.choose(v.same(b, zero), zero, quotient if op == "floor_divide" else rest)

    def _looked_up(self, table: NDArray[Any], index: Any, width: int) -> Any:
        if len(table) > _MOST_ENTRIES:
            raise UnsolvedError(f"a table has more than {_MOST_ENTRIES} entries")
        v, entries = self._v, table.view(f"u{table.dtype.itemsize}").tolist()
        if len(entries) >> v.width(index) == 0:
            self._demanded.append(v.less(index, v.number(len(entries), v.width(index))))
        found = v.number(entries[-1], width)
        for k, entry in enumerate(entries[:-1]):
            found = v.choose(v.same(index, v.number(k, v.width(index))), v.number(entry, width), found)
        return found

    # ---- programs ----

    def _of_program(self, lowered: Lowered, inputs: Sequence[Any]) -> list[Any]:
        v, known = self._v, list[Any]()
        for node in lowered.nodes:
            match node["kind"]:
                case NodeKind.INPUT:
                    known.append(inputs[int(node["payload"])])
                case NodeKind.CONSTANT:
                    known.append(v.number(int(node["payload"]), 32))
                case NodeKind.PTX:
                    first, count = int(node["first_operand"]), int(node["num_operands"])
                    operands = [known[lowered.value_nodes[each]] for each in lowered.operands[first : first + count]]
                    name = self._language.instruction_set.instructions[int(node["payload"])].name
                    if name.startswith("lop3_"):
                        known.append(lop3(v, int(name[5:], 16), *operands))
                    elif name in INSTRUCTIONS:
                        known.append(INSTRUCTIONS[name](v, *operands))
                    else:
                        raise UnsolvedError(f"instruction {name!r} has no meaning in bits")
                case _:
                    raise UnsolvedError("the program reads a special register")
        return [known[lowered.value_nodes[value]] for value in lowered.request_values]
