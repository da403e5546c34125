"""Code whose graph a proof may trust.

A graph is recorded at an array of one word, by an object that stands for it. It is the function at all words if the code cannot
learn anything from that object that an array would tell otherwise. This is a grammar of such code, checked in the bytecode of the
function and of all functions that it may call: expressions, loops, branches, and NumPy's operations on elements; no types or
identities of objects, no memory, no caught errors, and no writes to names, attributes or objects beyond the call. An instruction,
name or value that is not listed is refused, unless it belongs to an error that is raised, which nothing catches.
"""

import dis
import functools
import itertools
import math
import operator
import sys
from collections.abc import Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.isolation import Cached, ReadOnlyDict, ReadOnlyList, codes_of, is_own, isolated
from evo.approximation.ptx_function import PtxFunction
from evo.approximation.traced import FUNCTIONS, UntraceableError
from evo.approximation.traced_numpy import KINDS, TracedNumPy

# Instructions of CPython 3.11 to 3.14. Those of comprehensions, generator expressions and `with` are among them.
_INSTRUCTIONS = {
    *"RESUME NOP CACHE POP_TOP COPY SWAP PUSH_NULL PRECALL EXTENDED_ARG NOT_TAKEN TO_BOOL".split(),
    *"LOAD_GLOBAL LOAD_DEREF STORE_DEREF LOAD_CLOSURE MAKE_CELL COPY_FREE_VARS".split(),
    *"LOAD_FAST STORE_FAST DELETE_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW".split(),
    *"LOAD_FAST_BORROW_LOAD_FAST_BORROW STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_FAST_MAYBE_NULL".split(),
    *"BUILD_TUPLE BUILD_LIST BUILD_MAP BUILD_CONST_KEY_MAP BUILD_SLICE LIST_APPEND LIST_EXTEND LIST_TO_TUPLE MAP_ADD".split(),
    *"DICT_MERGE DICT_UPDATE UNPACK_SEQUENCE UNPACK_EX BINARY_OP BINARY_SUBSCR STORE_SUBSCR DELETE_SUBSCR BINARY_SLICE".split(),
    *"STORE_SLICE UNARY_NEGATIVE UNARY_NOT UNARY_INVERT UNARY_POSITIVE COMPARE_OP CALL CALL_KW CALL_FUNCTION_EX".split(),
    *"LOAD_ATTR LOAD_METHOD MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE RETURN_VALUE GET_ITER FOR_ITER END_FOR".split(),
    *"POP_ITER JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP".split(),
    *(f"POP_JUMP_{way}IF_{what}" for way in ("", "FORWARD_", "BACKWARD_") for what in "TRUE FALSE NONE NOT_NONE".split()),
    *"RETURN_GENERATOR YIELD_VALUE CALL_INTRINSIC_1 RERAISE LOAD_ASSERTION_ERROR LOAD_COMMON_CONSTANT RAISE_VARARGS".split(),
    *"BEFORE_WITH LOAD_SPECIAL WITH_EXCEPT_START PUSH_EXC_INFO POP_EXCEPT".split(),
}
_INTRINSICS = {"INTRINSIC_STOPITERATION_ERROR", "INTRINSIC_UNARY_POSITIVE", "INTRINSIC_LIST_TO_TUPLE"}
_BUILTINS = {
    *"abs bool dict divmod enumerate float int len list max min pow range reversed round slice sorted sum tuple zip map".split(),
    *"ValueError TypeError AssertionError IndexError KeyError NotImplementedError OverflowError RuntimeError".split(),
}
_OPERATOR = "add and_ eq floordiv ge gt inv invert le lshift lt mod mul ne neg or_ pos pow rshift sub truediv xor".split()
_NUMPY = {
    *(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)),
    *(function.__name__ for function in FUNCTIONS),
    *(name[1:] for name in vars(TracedNumPy) if name[1:2] != "_" and hasattr(np, name[1:])),
    *KINDS,
    *"sum prod min max amin amax any all round around arange linspace eye tri tril triu meshgrid iinfo finfo dtype".split(),
    *"errstate newaxis pi e inf nan sort argsort unique cumsum cumprod diff packbits unpackbits".split(),
    *"uint ulonglong uintc ushort ubyte int_ longlong intc short byte half single double bool".split(),
}
# Of arrays, dtypes, limits of types, ufuncs, lists, dicts and integers.
_ATTRIBUTES = {
    *"T astype clip copy dot dtype flatten itemsize kind ndim ravel repeat reshape round shape size squeeze swapaxes".split(),
    *"take tolist transpose type view sum prod min max any all item bits eps tiny smallest_normal reduce accumulate".split(),
    *"append extend insert pop reverse get items keys values bit_length bit_count".split(),
}
_OTHERS = {
    functools: {"reduce"},
    itertools: {"product", "chain", "accumulate"},
    math: {name for name in vars(math) if name[:1] != "_"},
    operator: {*_OPERATOR},
    np: _NUMPY,
}
_NAMES = _ATTRIBUTES.union(*_OTHERS.values())
_TRUSTED = {id(getattr(module, name)) for module, names in _OTHERS.items() for name in names if hasattr(module, name)}
_CHANGING = {id(list), id(dict)}  # whose methods, taken from them, change objects that are read-only by their own methods
_STANDARD = vars(sys.modules["builtins"])
_TRUSTED |= {id(_STANDARD[name]) for name in _BUILTINS} - _CHANGING | {id(module) for module in _OTHERS}
_ORIGINAL = {(module, name): getattr(module, name, None) for module in _OTHERS for name in _NAMES}
_SCALARS = {bool, int, float, str, type(None), *(getattr(np, name) for name in KINDS)}
_NUMBERS = {*_SCALARS, type(Ellipsis), range}
_NOT_OF_ERRORS = ("JUMP", "STORE", "RETURN", "YIELD", "SEND", "FOR_ITER", "SWAP", "COPY", "POP", "RAISE")
_DESCRIBING = {"type", "len", "str", "repr", "hex", "bin"}
_ERRORS = {name for name in _BUILTINS if name.endswith("Error")}


def plain(function: Any) -> tuple[Any, NDArray[np.uint32]]:
    """Copy a function that is isolated, and words of the numbers in its code, and next to these.

    Raises:
        UntraceableError: the code is not of the grammar. The reason names its line.
    """
    if any(getattr(module, name, None) is not value for (module, name), value in _ORIGINAL.items()):
        raise UntraceableError("its process has changed NumPy or a module of Python's")
    reader = _Reader(copy := isolated(function))
    if type(function) is not PtxFunction:  # whose statements have a grammar of their own
        reader.read(copy, "it")
    return copy, _words_near(reader.numbers)


def _words_near(found: list[Any]) -> NDArray[np.uint32]:
    numbers: set[int] = {0, 1}
    for number in found:
        if isinstance(number, int | np.integer):
            numbers |= {int(number), int(number) >> 32}
        elif isinstance(number, float | np.floating):
            with np.errstate(all="ignore"):
                numbers |= {int(np.float32(number).view(np.uint32)), int(np.float16(number).view(np.uint16)) * 0x10001}
    near = {number + step for number in numbers for step in (-1, 0, 1)} | {-number for number in numbers}
    return np.array(sorted({number & 0xFFFFFFFF for number in near}), np.uint32)


class _Reader:
    """Reads a function and all that its code may read."""

    def __init__(self, root: Any):
        self._root, self._seen, self.numbers = root, set[int](), list[Any]()

    def read(self, value: Any, name: str) -> None:
        """Checks a value and all that it consists of."""
        if id(value) in _TRUSTED or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if type(value) in _NUMBERS or (isinstance(value, np.dtype) and value.kind in "biuf"):
            self.numbers.append(value)
            if type(value) is str and "%" in value:
                raise UntraceableError(f"{name} may be a format")
        elif type(value) is slice:
            for item in (value.start, value.stop, value.step):
                self.read(item, name)
        elif type(value) in (tuple, ReadOnlyList):
            for item in value:
                self.read(item, name)
        elif type(value) is ReadOnlyDict:
            for item in (*value.keys(), *value.values()):
                self.read(item, name)
        elif type(value) is FunctionType and is_own(value.__globals__, self._root):
            self._read_function(value)
        elif type(value) is Cached:
            self.read(value.function, name)
        elif type(value) is not np.ndarray or value.dtype.kind not in "biuf":
            kind = getattr(value, "__name__", type(value).__name__)
            raise UntraceableError(f"it reads {name} ({kind}), which no graph can be trusted with")

    def _read_function(self, function: FunctionType) -> None:
        if (
            getattr(function, "__builtins__", None) is not _STANDARD
            or type(function.__globals__) is not dict
            or _NAMES & {*vars(function)}
        ):
            raise UntraceableError(f"{function.__name__} has attributes, or builtins of its own")
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.read(value, "a default")
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        for name, cell in cells.items():
            try:
                value = cell.cell_contents
            except ValueError as error:  # it is empty
                raise UntraceableError(f"{name} has no value") from error
            self.read(value, name)
        for code in codes_of(function.__code__):
            self._read_code(code, function.__globals__, cells)

    def _read_code(self, code: CodeType, names: dict[str, Any], cells: dict[str, Any]) -> None:
        where, instructions = f"line {code.co_firstlineno} of {code.co_filename}", [*dis.get_instructions(code)]
        space: ModuleType | None = None  # whose name comes next
        before: Any = None  # the instruction before
        of_errors = {k for start in range(len(instructions)) for k in _raised(instructions, start, names)}
        for k, one in enumerate(instructions):
            if k in of_errors:
                if one.opname == "LOAD_GLOBAL":
                    self.read(names.get(one.argval), one.argval)
                continue
            if space is not None and one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                self.read(vars(space).get(one.argval, NotImplemented), f"{space.__name__}.{one.argval}")
                before, space = one, None
                continue
            if space is not None:
                raise UntraceableError(f"it hands {space.__name__} on ({where})")
            if type(held := _held(one, names)) is frozenset and instructions[k + 1].opname == "CONTAINS_OP":
                self.numbers += held
            elif one.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                if one.argval not in _NAMES:
                    raise UntraceableError(f"it uses .{one.argval} ({where})")
            elif one.opname == "LOAD_GLOBAL":
                value = names.get(one.argval, _STANDARD.get(one.argval, NotImplemented))
                is_called = dis.stack_effect(one.opcode, one.arg, jump=False) == 2
                if type(value) is ModuleType and is_own(vars(value), self._root):
                    space = value
                elif not is_called or id(value) not in _CHANGING:
                    self.read(value, one.argval)
            elif one.opname in ("LOAD_CONST", "KW_NAMES", "RETURN_CONST", "LOAD_SMALL_INT"):
                constant = code.co_consts[one.arg] if one.opname == "KW_NAMES" and one.arg is not None else one.argval
                if type(constant) is tuple and "subok" in constant:  # tables are of a class of their own
                    raise UntraceableError(f"it uses subok ({where})")
                if type(constant) is not CodeType:
                    self.read(constant, "a constant")
            elif not _is_known(one, before, instructions[k + 1 : k + 2], cells, names):
                raise UntraceableError(f"it uses {one.opname} ({where}), which no graph can be trusted with")
            before = one


def _held(one: dis.Instruction, names: dict[str, Any]) -> Any:
    """Return the object that an instruction loads by a name or as a constant."""
    return names.get(one.argval) if one.opname == "LOAD_GLOBAL" else one.argval if one.opname == "LOAD_CONST" else None


def _raised(instructions: Sequence[dis.Instruction], start: int, names: dict[str, Any]) -> range:
    """Instructions after one that loads a class of errors, if these make its argument, and an error of it is raised then.

    They call nothing but builtin functions that describe a value: an end of iteration would be caught by `map`.
    """
    first = instructions[start]
    is_error = first.opname == "LOAD_GLOBAL" and first.argval in _ERRORS and first.argval not in names
    if not is_error and first.opname not in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT"):
        return range(0)
    held = depth = dis.stack_effect(first.opcode, first.arg, jump=False)
    called = list[int]()  # where the stack ended before functions that may be, and then are, called
    for k in range(start + 1, len(instructions) - 1):
        one, after = instructions[k : k + 2]
        effect = dis.stack_effect(one.opcode, one.arg, jump=False)
        if one.opname == "LOAD_GLOBAL" and effect == 2 and one.argval in _DESCRIBING and one.argval not in names:
            called.append(depth)
        depth += effect
        if one.opname.startswith("CALL"):
            if depth == 1 and (after.opname, after.arg) == ("RAISE_VARARGS", 1):
                return range(start + 1, k + 1)
            if not called or called.pop() != depth - 1:
                return range(0)
        is_call = one.opname in ("PRECALL", "EXTENDED_ARG", "PUSH_NULL", "KW_NAMES")
        if any(part in one.opname for part in _NOT_OF_ERRORS) or (depth <= held and not is_call) or one.is_jump_target:
            return range(0)
    return range(0)


def _is_known(one: dis.Instruction, before: Any, after: Any, cells: dict[str, Any], names: dict[str, Any]) -> bool:
    match one.opname:
        case "IS_OP":  # with None only
            return before.opname == "LOAD_CONST" and before.argval is None and not one.is_jump_target
        case "CONTAINS_OP":  # in numbers, which have no arrays among them
            held = _held(before, names)
            is_known = type(held) in (tuple, ReadOnlyList, frozenset, ReadOnlyDict, str) and not one.is_jump_target
            return is_known and all(type(item) in _SCALARS for item in held)
        case "PUSH_EXC_INFO":  # of `with`, not of `try`
            return bool(after) and after[0].opname == "WITH_EXCEPT_START"
        case "STORE_DEREF":
            return one.argval not in cells
        case "CALL_INTRINSIC_1":
            return one.argrepr in _INTRINSICS
        case _:
            return one.opname in _INSTRUCTIONS
