"""Formulas of real numbers: predictions of programs from numbers in the user's units.

Owns how a program and the scalings of its inputs and outputs become one expression, and how that is computed: in float64. Knows
nothing of tasks or texts.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.instructions import Instruction, InstructionSet
from evo.instructions.description import Semantics
from evo.language.dag import CAST, REAL, Builder, Dag, Node, Row, number_of, real_node
from evo.language.parsed import closure
from evo.language.printer import short_number
from evo.language.simple_numbers import meant_number
from evo.language.usual_names import with_usual_names
from evo.native.stack_ptx import NodeKind

# Name -> (offset, scale): a number in the user's units is offset + scale * the program's.
Scaling = Mapping[str, tuple[float, float]]

CHUNK_POINTS = 1 << 14  # that are computed in one go: a formula's values then stay in a cache
# Function of an infix form -> the same in NumPy, C, PyTorch and Triton. Those that a language lacks are definitions of
# the export.
FUNCTIONS = {
    "abs": ("np.abs", "fabs", "torch.abs", "tl.abs"),
    "copysign": ("np.copysign", "copysign", "copysign", "libdevice.copysign"),
    "cos": ("np.cos", "cos", "torch.cos", "tl.cos"),
    "exp": ("np.exp", "exp", "torch.exp", "tl.exp"),
    "exp2": ("np.exp2", "exp2", "torch.exp2", "tl.exp2"),
    "floor": ("np.floor", "floor", "torch.floor", "tl.floor"),
    "log": ("np.log", "log", "torch.log", "tl.log"),
    "log10": ("np.log10", "log10", "torch.log10", "libdevice.log10"),
    "log2": ("np.log2", "log2", "torch.log2", "tl.log2"),
    "max": ("np.fmax", "fmax", "larger", "tl.maximum"),
    "min": ("np.fmin", "fmin", "smaller", "tl.minimum"),
    "pow": ("np.power", "pow", "torch.pow", "libdevice.pow"),
    "round": ("np.rint", "rint", "torch.round", "libdevice.rint"),
    "select": ("np.where", "choose", "torch.where", "tl.where"),
    "sin": ("np.sin", "sin", "torch.sin", "tl.sin"),
    "sqrt": ("np.sqrt", "sqrt", "torch.sqrt", "tl.sqrt"),
    "tan": ("np.tan", "tan", "torch.tan", "libdevice.tan"),
    "tanh": ("np.tanh", "tanh", "torch.tanh", "libdevice.tanh"),
}
_NUMPY = {names[0]: getattr(np, names[0].removeprefix("np.")) for names in FUNCTIONS.values()}
# Of forms that are one function of their operands in order, which then needs no names of these.
_DIRECT: dict[str, Callable[..., Any]] = {
    "a + b": operator.add,
    "a - b": operator.sub,
    "a*b": operator.mul,
    "a/b": operator.truediv,
    "-a": operator.neg,
}
_DIRECT |= {f"{name}({operands})": function for name, function in _NUMPY.items() for operands in ("a", "a, b")}
_NUM_OPERANDS = {"copysign": 2, "max": 2, "min": 2, "pow": 2, "select": 3}  # of others, one
_REAL_TYPES = frozenset({"f32", "pred"})
_CALL = re.compile(r"[a-z]\w+(?=\()")
_WITHOUT_CALL = {"fma(a, b, c)": "a*b + c"}  # NumPy has no fma


def formula_of(program: Dag, inputs: Scaling, outputs: Scaling, *, usual_names: bool = True) -> Dag:
    """The formula that a program stands for.

    Constants are simple numbers such as pi/4 or the shortest decimals that float32 reads as the program's, and functions are
    those of real numbers. A program with instructions that have no such function stays one of PTX, and casts stand between it and
    the scalings.
    """
    is_real = has_real_form(program)
    usual_names = usual_names and is_real
    if usual_names:
        program = with_usual_names(program)
    builder = Builder()
    apply, number = builder.apply, builder.real

    def cast(value: int, type_name: str) -> int:
        return apply("a", value, type_name=type_name, name=CAST)

    def scaled(value: int, offset: float, scale: float) -> int:
        if abs(scale) != 1.0:
            value = apply("a*b", number(abs(scale) if offset else scale), value)
        elif scale < 0.0 and not offset:
            value = apply("-a", value)
        return apply("a - b" if scale < 0.0 else "a + b", number(offset), value) if offset else value

    indices: list[int] = []
    for value in program.nodes:
        operands = tuple(indices[operand] for operand in value.operands)
        if value.kind == NodeKind.INPUT and (is_real or value.name in inputs):
            offset, scale = inputs.get(value.name, (0.0, 1.0))
            index = builder.node(Node(value.kind, value.payload, row=Row(name=value.name)))
            if offset:
                index = apply("a - b" if offset > 0 else "a + b", index, number(abs(offset)))
            if scale != 1.0:
                index = apply("a/b", index, number(scale))
            indices.append(index if is_real else cast(index, "f32"))
        elif is_real and value.type == "f32" and value.kind == NodeKind.CONSTANT:
            indices.append(number(meant_number(np.uint32(value.payload).view(np.float32))))
        elif is_real and value.semantics.infix in _WITHOUT_CALL:
            indices.append(apply("a + b", apply("a*b", *operands[:2]), operands[2]))
        elif is_real and value.kind == NodeKind.PTX:
            indices.append(builder.node(real_node(value, operands)))
        else:
            indices.append(builder.node(value.with_operands(operands)))
    results: list[int | None] = []
    for (name, _), result in zip(program.outputs, program.results, strict=True):
        output = None if result is None else indices[result]
        if name in outputs:
            offset, scale = outputs[name]
            output = (
                number(offset)
                if output is None or not scale
                else scaled(output if is_real else cast(output, REAL), offset, scale)
            )
        results.append(output)

    def types(pairs: tuple[tuple[str, str], ...], scaled: Scaling) -> tuple[tuple[str, str], ...]:
        return tuple((name, REAL if is_real or name in scaled else kind) for name, kind in pairs)

    formula = Dag(tuple(builder.nodes), tuple(results), types(program.inputs, inputs), types(program.outputs, outputs))
    return with_usual_names(formula) if usual_names else formula


def scaling_notes(inputs: Scaling) -> list[str]:
    """A line for each input that programs read moved or scaled."""
    held = "float32 cannot hold its values, so programs read"
    return [
        f"{name}: {held} {units_text(name, *pair)}; formulas and predictions take {name} itself" for name, pair in inputs.items()
    ]


def units_text(name: str, offset: float, scale: float) -> str:
    """Write a program's input as formulas have it."""
    moved = f"({name} {'-' if offset > 0 else '+'} {short_number(abs(offset))})" if offset else name
    return moved if scale == 1.0 else f"{moved}/{short_number(scale)}"


def has_real_form(program: Dag) -> bool:
    """Return whether a program is a formula of real numbers: all its instructions are functions of these."""
    kinds = {kind for _, kind in (*program.inputs, *program.outputs)}
    return kinds <= {"f32"} and all(
        value.type in _REAL_TYPES
        and value.kind != NodeKind.SPECIAL
        and (value.kind != NodeKind.PTX or _is_function(value.semantics))
        for value in program.nodes
    )


def is_real_function(instruction_set: InstructionSet, instruction: Instruction) -> bool:
    """Return whether an instruction is a function of real numbers."""
    arg_types = (instruction_set.arg_types[arg] for arg in (*instruction.args, *instruction.rets))
    types = {instruction_set.stacks[kind.stack_idx].literal_prefix for kind in arg_types}
    return types <= _REAL_TYPES and _is_function(instruction.semantics)


def _is_function(semantics: Semantics) -> bool:
    return bool(semantics.infix) and _has_functions(_plain(semantics))


@cache
def _has_functions(form: str) -> bool:
    calls = [node for node in ast.walk(ast.parse(form)) if isinstance(node, ast.Call)]
    names = [ast.unparse(call.func) for call in calls]
    return all(n in FUNCTIONS and len(call.args) == _NUM_OPERANDS.get(n, 1) for n, call in zip(names, calls, strict=True))


def real_form(semantics: Semantics, language: int) -> str:
    """The function of an instruction in NumPy (0), C (1), PyTorch (2) or Triton (3)."""
    return _CALL.sub(lambda name: FUNCTIONS[name[0]][language], _plain(semantics))


def evaluate(
    formula: Dag, inputs: Iterable[NDArray[Any]], changed: Callable[[Node, Any, list[Any]], Any] | None = None
) -> list[NDArray[np.float64]]:
    """Evaluate each output in float64, `(num_points,)`.

    Args:
        formula: of real numbers alone.
        inputs: in the order of `formula.inputs`: `(num_points,)`, or a scalar if it is the same at all points.
        changed: takes each node, its value and its operands; gives the value to use instead.
    """
    arrays = [np.asarray(array) for array in inputs]
    num_points = max((len(array) for array in arrays if array.ndim), default=1)
    outputs = [np.empty(num_points) for _ in formula.outputs]
    for start in range(0, num_points, CHUNK_POINTS):
        chunk = slice(start, start + CHUNK_POINTS)
        results = _evaluate(formula, [np.asarray(array[chunk] if array.ndim else array, np.float64) for array in arrays], changed)
        for output, values in zip(outputs, results, strict=True):
            output[chunk] = values
    return outputs


def _evaluate(
    formula: Dag, inputs: Iterable[NDArray[np.float64]], changed: Callable[[Node, Any, list[Any]], Any] | None
) -> list[Any]:
    columns = dict(zip((name for name, _ in formula.inputs), inputs, strict=True))
    values: list[Any] = []
    with np.errstate(all="ignore"):
        for value in formula.nodes:
            operands = [values[operand] for operand in value.operands]
            if value.kind == NodeKind.INPUT:
                computed: Any = columns[value.name]
            elif value.kind == NodeKind.CONSTANT:
                computed = np.float64(number_of(value.payload)) if value.type == REAL else np.bool_(value.payload)
            else:
                computed = compiled(value.semantics.infix)(*operands)
            values.append(changed(value, computed, operands) if changed else computed)
    return [0.0 if result is None else values[result] for result in formula.results]


def unit_nodes(formula: Dag) -> list[int]:
    """The nodes that take inputs from the user's units to the program's own."""
    indices: list[int] = []
    for index, node in enumerate(formula.nodes):
        if node.type == REAL and not node.name and node.semantics.infix in ("a - b", "a + b", "a/b"):
            first, second = (formula.nodes[operand] for operand in node.operands)
            if second.kind == NodeKind.CONSTANT and (first.kind == NodeKind.INPUT or node.operands[0] in indices):
                indices.append(index)
    return indices


def moves(formula: Dag) -> dict[int, float]:
    """The numbers that inputs are moved by, by their indices among the nodes."""
    sums = (formula.nodes[index] for index in unit_nodes(formula) if formula.nodes[index].semantics.infix != "a/b")
    return {node.operands[1]: formula.nodes[node.operands[1]].number for node in sums}


@cache
def compiled(infix: str) -> Callable[..., Any]:
    """The function of an infix form, of up to three operands."""
    form = real_form(Semantics(infix=infix), 0)
    function = closure(form, _NUMPY)
    return _DIRECT.get(form) or (lambda *operands: function(dict(zip("abc", operands, strict=False))))


def _bits(number: float) -> int:
    return int(np.float64(number).view(np.uint64))


def _plain(semantics: Semantics) -> str:
    return _WITHOUT_CALL.get(semantics.infix, semantics.infix)
