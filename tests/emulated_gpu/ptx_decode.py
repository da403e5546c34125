"""Statements to functions of a group of threads: operands, memory accesses, branches, barriers and shuffles.

Owns the meaning of every instruction but the arithmetic ones. Knows nothing of how threads are scheduled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from emulated_gpu.ptx_arithmetic import operation
from emulated_gpu.ptx_memory import Area, MisalignedAddress
from emulated_gpu.ptx_special import special_register
from emulated_gpu.ptx_text import Kernel, Module, PtxError, Scope, Statement, Unsupported, parse_constant
from emulated_gpu.ptx_values import DTYPES, cut, unsigned

_SPACES = ("global", "shared", "local", "const", "param")
_CACHE_WORDS = {"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "volatile", "weak", "relaxed", "cta", "gpu", "sys", "shared::cta", "param::entry"}
_WINDOWS = {"global": 0, "const": 0, "shared": 1 << 56, "local": 1 << 57}
_ADDRESS = re.compile(r"\[\s*([\w$%]+)\s*(?:([+-])\s*(-?(?:0[xX][0-9a-fA-F]+|\d+)))?\s*\]")

Reader = Callable  # (group, threads) -> array
Writer = Callable  # (group, threads, values)


@dataclass(frozen=True)
class Instruction:
    """function: (group, threads) or, for one that decides where threads go on, (group, threads, place) -> place or None.

    guard: slot of the predicate, or None.
    """

    function: Callable
    guard: int | None
    is_negated: bool
    is_control: bool


class Code:
    """A kernel of a module, ready to run. Statements become instructions when they are first reached.

    Attributes:
        areas: the module's variables in global and constant memory.
        shared_bytes, local_bytes: of variables of known size.
    """

    _known: WeakKeyDictionary[Module, dict[str, Code]] = WeakKeyDictionary()
    _variables: WeakKeyDictionary[Module, dict[str, Area]] = WeakKeyDictionary()

    def __init__(self, module: Module, kernel: Kernel):
        self.kernel = kernel
        self.statements = [*kernel.statements, Statement("", False, "ret", (), Scope(None))]
        self.instructions: list[Instruction | None] = [None] * len(self.statements)
        own = self._variables.setdefault(module, {})
        self._addresses: dict[str, int] = {parameter.name: parameter.offset for parameter in kernel.parameters}
        sizes = {"shared": 0, "local": 0}
        # Arrays of a size that the launch decides come last.
        for variable in sorted(kernel.variables.values(), key=lambda variable: variable.num_bytes == 0):
            if variable.space in sizes:
                start = -(-sizes[variable.space] // variable.alignment) * variable.alignment
                self._addresses[variable.name] = start
                sizes[variable.space] = start + variable.num_bytes
                continue
            if variable.name not in own:
                data = np.zeros(max(variable.num_bytes, len(variable.initial)) + 256, np.uint8)
                data = data[-data.ctypes.data % 256 :][: max(variable.num_bytes, len(variable.initial))]
                data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
                own[variable.name] = Area(data.ctypes.data, data)
            self._addresses[variable.name] = own[variable.name].address
        self.areas = list(own.values())
        self.shared_bytes, self.local_bytes = sizes["shared"], sizes["local"]

    @classmethod
    def of(cls, module: Module, kernel_name: str) -> Code:
        """The code of a kernel; the same object for the same module and name. Raises KeyError."""
        known = cls._known.setdefault(module, {})
        if kernel_name not in known:
            known[kernel_name] = cls(module, module.kernel(kernel_name))
        return known[kernel_name]

    def register_name(self, slot: int) -> str:
        """The name of a register, for messages."""
        scopes = {id(statement.scope): statement.scope for statement in self.statements}.values()
        for scope in scopes:
            while scope is not None:
                for name, other in scope.registers.items():
                    if other == slot:
                        return name
                scope = scope.parent
        return f"slot {slot}"

    def decode(self, place: int) -> Instruction:
        """The instruction at this place."""
        statement = self.statements[place]
        try:
            instruction = _Decoder(self, statement).decode()
        except PtxError as error:
            raise type(error)(f"{self.kernel.name}: {statement}: {error}") from error
        except (KeyError, IndexError, ValueError) as error:
            raise PtxError(f"{self.kernel.name}: {statement}: {error!r}") from error
        self.instructions[place] = instruction
        return instruction

    def address(self, name: str) -> int | None:
        """Where a parameter or variable lies in its space."""
        return self._addresses.get(name)


class _Decoder:
    def __init__(self, code: Code, statement: Statement):
        self._code, self._statement, self._scope = code, statement, statement.scope
        self._name, *self._parts = statement.opcode.split(".")
        self._operands = statement.operands

    def decode(self) -> Instruction:
        guard = None
        if self._statement.guard:
            guard = self._slot(self._statement.guard)
        control = {"bra": self._branch, "brx": self._branch_table, "ret": self._leave, "exit": self._leave}
        control |= {"bar": self._barrier, "barrier": self._barrier}
        control |= {"shfl": self._shuffle, "vote": self._vote}
        if self._name in control:
            return Instruction(control[self._name](), guard, self._statement.is_negated, True)
        others = {"ld": self._load, "ldu": self._load, "st": self._store, "mov": self._move, "cvta": self._window, "activemask": self._active}
        others |= {"membar": self._nothing, "fence": self._nothing, "nop": self._nothing, "trap": self._trap}
        function = others.get(self._name, self._arithmetic)()
        return Instruction(function, guard, self._statement.is_negated, False)

    # -- operands ------------------------------------------------------------------------------------------------------

    def _slot(self, name: str) -> int:
        slot = self._scope.find("registers", name)
        if slot is None:
            raise PtxError(f"no register {name}")
        return slot

    def _type_of(self, slot: int) -> str:
        return self._code.kernel.register_types[slot]

    def _reader(self, operand: str, type_name: str) -> Reader:
        """Gives an operand's values as this type."""
        dtype = DTYPES[type_name]
        if type_name == "pred" and operand.startswith("!"):
            inner = self._reader(operand[1:].strip(), type_name)
            return lambda group, threads: ~inner(group, threads)
        slot = self._scope.find("registers", operand)
        if slot is not None:
            if DTYPES[unsigned(self._type_of(slot))].itemsize == dtype.itemsize or dtype == bool:
                return lambda group, threads: group.read(slot, threads).view(dtype)
            return lambda group, threads: cut(group.read(slot, threads), dtype)
        constant = parse_constant(operand, type_name)
        if constant is None:
            constant = self._symbol(operand)
        if constant is not None:
            if dtype == bool:
                values = np.array([constant != 0])
            else:
                values = np.array([constant & (2 ** (8 * dtype.itemsize) - 1)], np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
            return lambda group, threads: values
        if operand.startswith("%"):
            special = special_register(operand[1:])
            return lambda group, threads: cut(special(group, threads), dtype)
        raise PtxError(f"operand {operand}")

    def _symbol(self, operand: str) -> int | None:
        """The address of a variable, with an offset."""
        match = re.fullmatch(r"([\w$]+)\s*(?:([+-])\s*(\d+))?", operand)
        address = self._code.address(match[1]) if match else None
        return None if address is None else address + int((match[2] or "+") + (match[3] or "0"))

    def _writer(self, operand: str) -> Writer:
        if operand == "_":
            return lambda group, threads, values: None
        slot = self._slot(operand)
        type_name = self._type_of(slot)
        if type_name == "pred":
            return lambda group, threads, values: group.write(slot, threads, values.astype(bool))
        dtype = DTYPES[unsigned(type_name)]
        return lambda group, threads, values: group.write(slot, threads, cut(values, dtype))

    def _address(self, operand: str) -> Reader:
        match = _ADDRESS.fullmatch(operand)
        if match is None:
            raise PtxError(f"address {operand}")
        base, sign, offset = match.groups()
        offset = int(offset, 0) * (-1 if sign == "-" else 1) if offset else 0
        read = self._reader(base, "u64")
        if offset == 0:
            return read
        addend = np.array([offset & (2**64 - 1)], np.uint64)
        return lambda group, threads: read(group, threads) + addend

    def _elements(self, operand: str) -> list[str]:
        """The operands of a vector, or the operand itself."""
        return [part.strip() for part in operand.strip("{}").split(",")] if operand.startswith("{") else [operand]

    # -- arithmetic and moves ------------------------------------------------------------------------------------------

    def _arithmetic(self) -> Callable:
        meaning = operation(self._statement.opcode, len(self._operands))
        results = [part.strip() for part in self._operands[0].split("|")]
        writers = [self._writer(name) for name in results]
        if len(self._operands) != 1 + len(meaning.sources):
            raise PtxError(f"expected {1 + len(meaning.sources)} operands")
        readers = [self._reader(operand, type_name) for operand, type_name in zip(self._operands[1:], meaning.sources, strict=True)]
        function, write = meaning.function, writers[0]

        def run(group, threads):
            result = function(*[read(group, threads) for read in readers])
            if isinstance(result, tuple):
                for write_one, values in zip(writers, result, strict=False):
                    write_one(group, threads, values)
            else:
                write(group, threads, result)

        return run

    def _move(self) -> Callable:
        target, source = self._operands
        type_name = self._parts[-1]
        if target.startswith("{"):
            return self._unpack(self._elements(target), self._reader(source, unsigned(type_name)))
        if source.startswith("{"):
            return self._pack(self._writer(target), self._elements(source), DTYPES[unsigned(type_name)])
        read, write = self._reader(source, type_name), self._writer(target)
        return lambda group, threads: write(group, threads, read(group, threads))

    def _unpack(self, targets: list[str], read: Reader) -> Callable:
        writers = [self._writer(target) for target in targets]

        def run(group, threads):
            values = read(group, threads)
            bits = 8 * values.dtype.itemsize // len(writers)
            for i, write in enumerate(writers):
                write(group, threads, (values >> values.dtype.type(i * bits)).astype(f"u{bits // 8}"))

        return run

    def _pack(self, write: Writer, sources: list[str], dtype: np.dtype) -> Callable:
        bits = 8 * dtype.itemsize // len(sources)
        readers = [self._reader(source, f"u{bits}") for source in sources]

        def run(group, threads):
            values = np.zeros(1, dtype)
            for i, read in enumerate(readers):
                values = values | (read(group, threads).astype(dtype) << dtype.type(i * bits))
            write(group, threads, values)

        return run

    def _window(self) -> Callable:
        is_to = self._parts[0] == "to"
        space = self._parts[1] if is_to else self._parts[0]
        window = np.array([_WINDOWS[space]], np.uint64)
        read, write = self._reader(self._operands[1], "u64"), self._writer(self._operands[0])
        if is_to:
            return lambda group, threads: write(group, threads, read(group, threads) - window)
        return lambda group, threads: write(group, threads, read(group, threads) + window)

    def _nothing(self) -> Callable:
        return lambda group, threads: None

    def _trap(self) -> Callable:
        from emulated_gpu.ptx_memory import EmulatorFault

        def run(group, threads):
            raise EmulatorFault("trap")

        return run

    # -- memory --------------------------------------------------------------------------------------------------------

    def _access(self) -> tuple[str, str, int]:
        """Space, element type and number of elements of a load or store."""
        *words, type_name = self._parts
        words = [word.removesuffix("::cta").removesuffix("::entry") for word in words]
        space = next((word for word in words if word in _SPACES), "generic")
        lanes = next((int(word[1:]) for word in words if word in ("v2", "v4")), 1)
        unknown = [w for w in words if w not in _SPACES and w not in _CACHE_WORDS and w not in ("v2", "v4") and not w.startswith(("L1::", "L2::"))]
        if unknown or type_name not in DTYPES:
            raise Unsupported(self._statement.opcode)
        return space, type_name, lanes

    def _places(self, operand: str, space: str, num_bytes: int) -> Callable:
        address = self._address(operand)
        low_bits = np.uint64(num_bytes - 1)

        def places(group, threads):
            addresses = address(group, threads)
            if (addresses & low_bits).any():
                wrong = int(addresses[(addresses & low_bits) != 0][0])
                raise MisalignedAddress(f"{space} address {wrong:#x} is no multiple of {num_bytes}")
            return group.space(space, addresses, num_bytes, threads)

        return places

    def _load(self) -> Callable:
        space, type_name, lanes = self._access()
        dtype, size = DTYPES[type_name], DTYPES[type_name].itemsize
        writers = [self._writer(target) for target in self._elements(self._operands[0])]
        places = self._places(self._operands[1], space, size * lanes)

        def run(group, threads):
            memory, addresses = places(group, threads)
            # All are read before one is written: a target may hold the address.
            values = [memory.load(addresses + np.uint64(i * size), dtype) for i in range(lanes)]
            for write, loaded in zip(writers, values, strict=True):
                write(group, threads, loaded)

        return run

    def _store(self) -> Callable:
        space, type_name, lanes = self._access()
        size = DTYPES[type_name].itemsize
        readers = [self._reader(source, unsigned(type_name)) for source in self._elements(self._operands[1])]
        places = self._places(self._operands[0], space, size * lanes)

        def run(group, threads):
            memory, addresses = places(group, threads)
            for i, read in enumerate(readers):
                values = read(group, threads)
                memory.store(addresses + np.uint64(i * size), values if len(values) <= len(addresses) else values[-1:])

        return run

    # -- control -------------------------------------------------------------------------------------------------------

    def _label(self, name: str) -> int:
        place = self._scope.find("labels", name)
        if place is None:
            raise PtxError(f"no label {name}")
        return place

    def _branch(self) -> Callable:
        target = self._label(self._operands[0])
        return lambda group, threads, place: target

    def _branch_table(self) -> Callable:
        names = self._scope.find("tables", self._operands[1])
        if names is None:
            raise PtxError(f"no .branchtargets {self._operands[1]}")
        targets = [self._label(name) for name in names]
        read = self._reader(self._operands[0], "u32")

        def run(group, threads, place):
            indices = read(group, threads)
            if int(indices.max()) >= len(targets):
                raise PtxError(f"{self._statement}: index {int(indices.max())} of {len(targets)} targets")
            if len(indices) == 1 or (indices == indices[0]).all():
                return targets[int(indices[0])]
            threads = np.arange(group.num_threads) if threads is None else threads
            for index in np.unique(indices):
                group.add(targets[int(index)], threads[indices == index])
            return None

        return run

    def _leave(self) -> Callable:
        def run(group, threads, place):
            group.leave(threads)
            return None

        return run

    def _barrier(self) -> Callable:
        words = [word for word in self._parts if word not in ("cta", "aligned")]
        if words == ["warp", "sync"]:
            members = self._reader(self._operands[0], "u32")
            return self._in_warp(members, lambda group, threads: None)
        if words != ["sync"]:
            raise Unsupported(self._statement.opcode)
        barrier = parse_constant(self._operands[0], "u32")
        count = parse_constant(self._operands[1], "u32") if len(self._operands) > 1 else None
        if barrier is None or (len(self._operands) > 1 and count is None):
            raise Unsupported(f"{self._statement.opcode} with operands in registers")
        return lambda group, threads, place: group.wait_at_barrier(threads, place, barrier, count)

    def _in_warp(self, members: Reader, function: Callable) -> Callable:
        """What all members of a warp do together, when all have come."""

        def run(group, threads, place):
            together = group.with_parked(threads, place)
            ready = group.meet_in_warp(together, place, members(group, together))
            if ready is not None and len(ready) == 0:
                return None
            function(group, ready)
            if ready is threads:
                return place + 1
            group.add(place + 1, ready)
            return None

        return run

    def _shuffle(self) -> Callable:
        if self._parts[0] != "sync" or self._parts[-1] != "b32":
            raise Unsupported(self._statement.opcode)
        mode = self._parts[1]
        target, *flag = [part.strip() for part in self._operands[0].split("|")]
        write, write_flag = self._writer(target), self._writer(flag[0]) if flag else None
        value, b, c, members = (self._reader(operand, "u32") for operand in self._operands[1:])

        def shuffle(group, threads):
            lane = group.lane if threads is None else group.lane[threads]
            amount, clamp = b(group, threads).astype(np.int64) & 31, c(group, threads).astype(np.int64)
            segment = clamp >> 8 & 31
            clamp = clamp & 31
            highest, lowest = (lane & segment) | (clamp & ~segment), lane & segment
            source = {"up": lane - amount, "down": lane + amount, "bfly": lane ^ amount, "idx": lowest | (amount & ~segment)}[mode]
            is_inside = source >= highest if mode == "up" else source <= highest
            result = group.from_lanes(value(group, threads), threads, np.where(is_inside, source, lane))
            write(group, threads, result)
            if write_flag:
                write_flag(group, threads, is_inside)

        return self._in_warp(members, shuffle)

    def _vote(self) -> Callable:
        if self._parts[0] != "sync" or self._parts[1] not in ("ballot", "any", "all"):
            raise Unsupported(self._statement.opcode)
        mode = self._parts[1]
        write, predicate = self._writer(self._operands[0]), self._reader(self._operands[1], "pred")
        members = self._reader(self._operands[2], "u32")

        def vote(group, threads):
            chosen = predicate(group, threads)
            if mode == "all":
                write(group, threads, group.ballot(~chosen, threads) == 0)
            else:
                votes = group.ballot(chosen, threads)
                write(group, threads, votes if mode == "ballot" else votes != 0)

        return self._in_warp(members, vote)

    def _active(self) -> Callable:
        write = self._writer(self._operands[0])
        return lambda group, threads: write(group, threads, group.ballot(np.ones(1, bool), threads))
