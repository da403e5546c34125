"""PTX text to kernels: parameters, variables, and a list of statements with the registers and labels that their scope declares.

Owns PTX's grammar as far as kernels need it. A call of a function becomes the function's statements, so that nothing else knows
of calls. Knows nothing of what instructions mean.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from functools import cached_property


class PtxError(Exception):
    """Text that is no PTX, or none that is known here."""


class Unsupported(PtxError):
    """PTX that is right but that the emulator gives no meaning."""


# kind: u, s, f; b (untyped bits) is u. Bytes in memory and in a register.
TYPE_BYTES = {f"{kind}{bits}": bits // 8 for kind in "usbf" for bits in (8, 16, 32, 64) if f"{kind}{bits}" != "f8"}
TYPE_BYTES |= {"f16x2": 4, "bf16": 2, "pred": 1}

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_ENTRY = re.compile(r"(?:\.(?:visible|weak|extern)\s+)?\.(entry|func)\b")
_ENTRY_NAME = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\(([^)]*)\))?")
_FUNCTION = re.compile(r"\.func\s+(\([^)]*\))?\s*([\w$%]+)\s*\(([^)]*)\)\s*(;?)")
_CALL = re.compile(r"(?:call|call\.uni)\s+([\w$%]+)\s*(?:,\s*\(([^)]*)\))?")
_LOCAL_PARAMETER = re.compile(r"\[\s*([\w$]+)\s*(?:\+\s*0\s*)?\]")
_LABEL = re.compile(r"([\w$%]+)\s*:(?!:)")
_INSTRUCTION = re.compile(r"(?:@(!?)\s*([\w$%]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_VARIABLE = re.compile(
    r"(?:\.(?:visible|weak|extern|common)\s+)*\.(global|const|shared|local)\s+(?:\.align\s+(\d+)\s+)?(?:\.v([24])\s+)?"
    r"\.(\w+)\s+([\w$%]+)\s*((?:\[\s*\w*\s*\])*)\s*(?:=\s*(.*))?$",
    re.DOTALL,
)
_FLOAT = re.compile(r"(-?)(?:0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})|(\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+))")
_INTEGER = re.compile(r"([+-]?)\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)[uU]?")
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s+(?:\.\w+\s+)?(?:\.align\s+\d+\s+)?)?([\w$%]+)\s*(?:\[(\d+)\])?"
)
_TABLE = re.compile(r"\s*\.branchtargets\s+([^;]*);")
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*")
_END_OF_CALL = "$end of call"
_LINE_DIRECTIVE = re.compile(r"\.(?:loc|file)\b[^\n]*")


@dataclass(frozen=True)
class Parameter:
    """A kernel's parameter: where it lies in the parameter block."""

    name: str
    offset: int
    num_bytes: int


@dataclass(frozen=True)
class Variable:
    """A variable in memory. num_bytes: 0 for an array whose size the launch decides. initial: its bytes from the first on.
    is_visible: to those who ask for its address.
    """

    name: str
    space: str
    alignment: int
    num_bytes: int
    initial: bytes = b""
    is_visible: bool = False


@dataclass
class Scope:
    """Declarations of a pair of braces: names of registers (slot), labels (statement index) and branch tables (labels)."""

    parent: Scope | None
    registers: dict[str, int] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)

    def find(self, kind: str, name: str):
        """The innermost declaration of this kind and name, or None."""
        scope: Scope | None = self
        while scope is not None:
            found = getattr(scope, kind).get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None


@dataclass(frozen=True)
class Statement:
    """An instruction. guard: name of its predicate, or ''."""

    guard: str
    is_negated: bool
    opcode: str
    operands: tuple[str, ...]
    scope: Scope

    def __str__(self) -> str:
        guard = f"@{'!' * self.is_negated}{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(self.operands)};"


@dataclass
class Kernel:
    """A kernel. register_types: of each slot."""

    name: str
    parameters: tuple[Parameter, ...]
    statements: list[Statement]
    register_types: list[str]
    variables: dict[str, Variable]

    @property
    def parameter_bytes(self) -> int:
        """Bytes of the parameter block."""
        return max((p.offset + p.num_bytes for p in self.parameters), default=0)


class Module:
    """A PTX module. variables: those outside of kernels, by name; target: such as `sm_90`; kernel_names: in order."""

    def __init__(self, text: str | bytes):
        text = text.decode() if isinstance(text, bytes) else text
        text = _COMMENT.sub(lambda match: match[1] or " ", text)
        version, target = re.search(r"\.version\s+(\d+\.\d+)", text), re.search(r"\.target\s+(\w+)", text)
        if version is None or target is None:
            raise PtxError("a PTX module begins with .version and .target")
        self.target = target[1]
        self.variables: dict[str, Variable] = {}
        self._sources: dict[str, tuple[str, str]] = {}
        self._functions: dict[str, tuple[tuple[Parameter, ...], str]] = {}
        self._kernels: dict[str, Kernel] = {}
        at = 0
        for match in _ENTRY.finditer(text):
            if match.start() < at:
                continue
            self._read_variables(text[at : match.start()])
            function = _FUNCTION.search(text, match.start()) if match[1] == "func" else None
            if function and function[4]:  # a declaration
                at = function.end()
                continue
            opening = text.index("{", match.end())
            closing = _closing_brace(text, opening)
            if match[1] == "entry":
                name = _ENTRY_NAME.search(text, match.start())
                self._sources[name[1]] = (name[2] or "", text[opening + 1 : closing])
            elif function and not function[1]:
                self._functions[function[2]] = (_parse_parameters(function[3]), text[opening + 1 : closing])
            at = closing + 1
        self._read_variables(text[at:])

    @cached_property
    def kernel_names(self) -> tuple[str, ...]:
        return tuple(self._sources)

    def kernel(self, name: str) -> Kernel:
        """The kernel of this name, parsed when first asked for. Raises KeyError."""
        if name not in self._kernels:
            parameters, body = self._sources[name]
            kernel = Kernel(name, _parse_parameters(parameters), [], [], dict(self.variables))
            self._kernels[name] = _BodyParser(kernel, self._functions).parse(body)
        return self._kernels[name]

    def _read_variables(self, text: str) -> None:
        for statement in text.split(";"):
            found = re.search(r"(?:\.(?:visible|weak|extern|common)\s+)*\.(?:global|const|shared)\s", statement)
            if found:
                variable = parse_variable(statement[found.start() :])
                self.variables[variable.name] = variable


def parse_variable(text: str) -> Variable:
    """A declaration of a variable, without its semicolon."""
    text = text.strip()
    match = _VARIABLE.match(text)
    if match is None:
        raise Unsupported(f"declaration: {text[:80]}")
    space, alignment, lanes, type_name, name, dimensions, initial = match.groups()
    element = _bytes_of(type_name)
    num_bytes = element * int(lanes or 1)
    for size in re.findall(r"\[\s*(\w*)\s*\]", dimensions):
        num_bytes *= int(size, 0) if size else 0
    values = re.findall(r"[\w.+-]+", initial) if initial else []
    data = b"".join((parse_constant(value, type_name) & (2 ** (8 * element) - 1)).to_bytes(element, "little") for value in values)
    is_visible = ".visible" in text[: match.start(1)]
    return Variable(name, space, int(alignment or element * int(lanes or 1)), num_bytes, data, is_visible)


def parse_constant(text: str, type_name: str) -> int | None:
    """The bits of a constant that stands where a value of this type is expected; None if it is no constant."""
    text = text.strip()
    match = _FLOAT.fullmatch(text)
    if match:
        sign, single, double, decimal = match.groups()
        if single and type_name != "f64":
            return int(single, 16) ^ (0x8000_0000 if sign else 0)
        if single or double:
            value = struct.unpack(">f" if single else ">d", bytes.fromhex(single or double))[0]
        else:
            value = float(decimal)
        code = {"f32": "f", "f16": "e"}.get(type_name, "d")
        return int.from_bytes(struct.pack(f">{code}", -value if sign else value), "big")
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    digits = match[2]
    value = int(digits, 0) if digits[:2].lower() in ("0x", "0b") else int(digits, 8 if digits.startswith("0") else 10)
    return -value if match[1] == "-" else value


def split_operands(text: str) -> tuple[str, ...]:
    """Operands at commas that stand in no brackets or braces."""
    if "{" not in text and "[" not in text:
        return tuple(part.strip() for part in text.split(",")) if text else ()
    return tuple(part.strip() for part in _OPERAND.findall(text))


def _bytes_of(type_name: str) -> int:
    if type_name not in TYPE_BYTES:
        raise Unsupported(f"type .{type_name}")
    return TYPE_BYTES[type_name]


def _closing_brace(text: str, opening: int) -> int:
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, opening):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.start()
    raise PtxError("a brace is not closed")


def _parse_parameters(text: str) -> tuple[Parameter, ...]:
    parameters, offset = [], 0
    for declaration in filter(None, (part.strip() for part in text.split(","))):
        match = _PARAMETER.fullmatch(declaration)
        if match is None:
            raise Unsupported(f"parameter: {declaration}")
        element = _bytes_of(match[2])
        alignment = int(match[1] or element)
        offset = -(-offset // alignment) * alignment
        parameters.append(Parameter(match[3], offset, element * int(match[4] or 1)))
        offset += parameters[-1].num_bytes
    return tuple(parameters)


class _BodyParser:
    def __init__(self, kernel: Kernel, functions: dict[str, tuple[tuple[Parameter, ...], str]]):
        self._kernel = kernel
        self._functions = functions
        self._scope = Scope(None)
        self._calls: list[str] = []  # of functions, from the outermost on

    def parse(self, text: str) -> Kernel:
        at, end = 0, len(text)
        is_space = str.isspace
        while True:
            while at < end and is_space(text[at]):
                at += 1
            if at == end:
                break
            character = text[at]
            if character == "{":
                self._scope = Scope(self._scope)
                at += 1
            elif character == "}":
                self._scope = self._scope.parent
                at += 1
            elif character == ";":
                at += 1
            elif label := _LABEL.match(text, at):
                at = self._label(text, label)
            elif line := _LINE_DIRECTIVE.match(text, at):
                at = line.end()
            else:
                semicolon = text.find(";", at)
                if semicolon < 0:
                    raise PtxError(f"no semicolon after: {text[at : at + 60]!r}")
                self._statement(text[at:semicolon])
                at = semicolon + 1
        return self._kernel

    def _label(self, text: str, label: re.Match) -> int:
        name, at = label[1], label.end()
        table = _TABLE.match(text, at)
        if table:
            self._scope.tables[name] = [part.strip() for part in table[1].split(",")]
            return table.end()
        if name in self._scope.labels:
            raise PtxError(f"label {name} twice")
        self._scope.labels[name] = len(self._kernel.statements)
        return at

    def _statement(self, text: str) -> None:
        if text[0] == ".":
            self._directive(text)
            return
        match = _INSTRUCTION.fullmatch(text)
        if match is None:
            raise PtxError(f"no instruction: {text[:80]!r}")
        negation, guard, opcode, operands = match.groups()
        parts = split_operands(operands.strip())
        if opcode in ("call", "call.uni"):
            if guard:
                raise Unsupported(f"call of some threads: {text[:80]}")
            self._call(text)
            return
        if self._calls and opcode in ("ret", "ret.uni"):
            opcode, parts = "bra", (_END_OF_CALL,)
        # Parameters of calls are registers here.
        if opcode.startswith(("st.param.", "ld.param.")):
            where = 0 if opcode.startswith("st") else 1
            name = _LOCAL_PARAMETER.fullmatch(parts[where])
            if name and self._scope.find("registers", name[1]) is not None:
                opcode = f"mov.{opcode.split('.')[-1]}"
                parts = (name[1], parts[1]) if where == 0 else (parts[0], name[1])
        self._kernel.statements.append(Statement(guard or "", bool(negation), opcode, parts, self._scope))

    def _call(self, text: str) -> None:
        match = _CALL.fullmatch(text)
        if match is None or match[1] not in self._functions or match[1] in self._calls:
            raise Unsupported(f"call: {text[:80]}")
        parameters, body = self._functions[match[1]]
        given = [name.strip() for name in (match[2] or "").split(",") if name.strip()]
        if len(given) != len(parameters):
            raise PtxError(f"expected {len(parameters)} parameters: {text[:80]}")
        slots = [self._scope.find("registers", name) for name in given]
        caller, self._scope = self._scope, Scope(None, {p.name: slot for p, slot in zip(parameters, slots, strict=True)})
        inner = self._scope
        self._calls.append(match[1])
        self.parse(body)
        self._calls.pop()
        inner.labels[_END_OF_CALL] = len(self._kernel.statements)
        self._scope = caller

    def _directive(self, text: str) -> None:
        name = text.split(None, 1)[0]
        if name == ".reg":
            match = re.fullmatch(r"\.reg\s+\.(\w+)\s+(.*)", text, re.DOTALL)
            if match is None or match[1] not in TYPE_BYTES:
                raise Unsupported(f"declaration: {text}")
            for declared in match[2].split(","):
                base, _, count = declared.strip().partition("<")
                for register in [f"{base}{i}" for i in range(int(count.rstrip("> ")))] if count else [base]:
                    if register in self._scope.registers:
                        raise PtxError(f"register {register} twice")
                    self._scope.registers[register] = len(self._kernel.register_types)
                    self._kernel.register_types.append(match[1])
        elif name == ".param":
            match = _PARAMETER.fullmatch(text)
            if match is None or match[4]:
                raise Unsupported(f"declaration: {text}")
            self._scope.registers[match[3]] = len(self._kernel.register_types)
            self._kernel.register_types.append(match[2])
        elif name in (".shared", ".local", ".global", ".const"):
            variable = parse_variable(text)
            self._kernel.variables[variable.name] = variable
        elif name != ".pragma":
            raise Unsupported(f"directive: {text[:80]}")
