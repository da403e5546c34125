"""Statements to functions of a group of threads: memory accesses, moves, branches, barriers and shuffles.

Owns the meaning of every instruction but the arithmetic ones. Knows nothing of how threads are scheduled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from emulated_gpu.ptx_arithmetic import operation
from emulated_gpu.ptx_memory import WINDOWS, Area, EmulatorFault, MisalignedAddress
from emulated_gpu.ptx_operands import Operands, Reader, Writer
from emulated_gpu.ptx_text import Kernel, Module, PtxError, Scope, Statement, Unsupported, Variable, parse_constant
from emulated_gpu.ptx_values import DTYPES, unsigned

_SPACES = ("global", "shared", "local", "const", "param")
# Of loads and stores: how they are cached and ordered, which changes nothing here.
_CACHE_WORDS = ("nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "volatile", "weak", "relaxed", "cta", "gpu", "sys", "L1", "L2")


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
        addresses: of parameters and variables, each in its space.
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
        self.addresses: dict[str, int] = {parameter.name: parameter.offset for parameter in kernel.parameters}
        sizes = {"shared": 0, "local": 0}
        # Arrays of a size that the launch decides come last.
        for variable in sorted(kernel.variables.values(), key=lambda variable: variable.num_bytes == 0):
            if variable.space in sizes:
                start = -(-sizes[variable.space] // variable.alignment) * variable.alignment
                self.addresses[variable.name] = start
                sizes[variable.space] = start + variable.num_bytes
                continue
            self.addresses[variable.name] = self._place(module, variable).address
        self.areas = list(own.values())
        self.shared_bytes, self.local_bytes = sizes["shared"], sizes["local"]

    @classmethod
    def of(cls, module: Module, kernel_name: str) -> Code:
        """The code of a kernel; the same object for the same module and name. Raises KeyError."""
        known = cls._known.setdefault(module, {})
        if kernel_name not in known:
            known[kernel_name] = cls(module, module.kernel(kernel_name))
        return known[kernel_name]

    @classmethod
    def variable(cls, module: Module, name: str) -> Area | None:
        """A module's variable in global or constant memory that others may see, or None."""
        variable = module.variables.get(name)
        is_known = variable is not None and variable.is_visible and variable.space in ("global", "const")
        return cls._place(module, variable) if is_known else None

    @classmethod
    def _place(cls, module: Module, variable: Variable) -> Area:
        own = cls._variables.setdefault(module, {})
        if variable.name not in own:
            num_bytes = max(variable.num_bytes, len(variable.initial))
            data = np.zeros(num_bytes + 256, np.uint8)
            data = data[-data.ctypes.data % 256 :][:num_bytes]
            data[: len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
            own[variable.name] = Area(data.ctypes.data, data)
        return own[variable.name]

    def register_name(self, slot: int) -> str:
        """The name of a register, for messages."""
        scopes = {id(statement.scope): statement.scope for statement in self.statements}.values()
        for innermost in scopes:
            scope = innermost
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


class _Decoder:
    def __init__(self, code: Code, statement: Statement):
        self._code, self._statement, self._scope = code, statement, statement.scope
        self._name, *self._parts = statement.opcode.split(".")
        self._operands = statement.operands
        self._at = Operands(statement.scope, code.kernel.register_types, code.addresses)

    def decode(self) -> Instruction:
        guard = None
        if self._statement.guard:
            guard = self._at.slot(self._statement.guard)
        control = {"bra": self._branch, "brx": self._branch_table, "ret": self._leave, "exit": self._leave}
        control |= {"bar": self._barrier, "barrier": self._barrier}
        control |= {"shfl": self._shuffle, "vote": self._vote}
        if self._name in control:
            return Instruction(control[self._name](), guard, self._statement.is_negated, True)
        others = {"ld": self._load, "ldu": self._load, "st": self._store, "mov": self._move, "cvta": self._window}
        others |= {"activemask": self._active, "membar": self._nothing, "fence": self._nothing, "trap": self._trap}
        function = others.get(self._name, self._arithmetic)()
        return Instruction(function, guard, self._statement.is_negated, False)

    # -- arithmetic and moves ------------------------------------------------------------------------------------------

    def _arithmetic(self) -> Callable:
        meaning = operation(self._statement.opcode, len(self._operands))
        results = [part.strip() for part in self._operands[0].split("|")]
        writers = [self._at.writer(name) for name in results]
        if len(self._operands) != 1 + len(meaning.sources):
            raise PtxError(f"expected {1 + len(meaning.sources)} operands")
        readers = [
            self._at.reader(operand, type_name) for operand, type_name in zip(self._operands[1:], meaning.sources, strict=True)
        ]
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
            return self._unpack(self._at.elements(target), self._at.reader(source, unsigned(type_name)))
        if source.startswith("{"):
            return self._pack(self._at.writer(target), self._at.elements(source), DTYPES[unsigned(type_name)])
        read, write = self._at.reader(source, type_name), self._at.writer(target)
        return lambda group, threads: write(group, threads, read(group, threads))

    def _unpack(self, targets: list[str], read: Reader) -> Callable:
        writers = [self._at.writer(target) for target in targets]

        def run(group, threads):
            values = read(group, threads)
            bits = 8 * values.dtype.itemsize // len(writers)
            for i, write in enumerate(writers):
                write(group, threads, (values >> values.dtype.type(i * bits)).astype(f"u{bits // 8}"))

        return run

    def _pack(self, write: Writer, sources: list[str], dtype: np.dtype) -> Callable:
        bits = 8 * dtype.itemsize // len(sources)
        readers = [self._at.reader(source, f"u{bits}") for source in sources]

        def run(group, threads):
            values = np.zeros(1, dtype)
            for i, read in enumerate(readers):
                values = values | (read(group, threads).astype(dtype) << dtype.type(i * bits))
            write(group, threads, values)

        return run

    def _window(self) -> Callable:
        is_to = self._parts[0] == "to"
        space = self._parts[1] if is_to else self._parts[0]
        window = np.array([WINDOWS[space]], np.uint64)
        read, write = self._at.reader(self._operands[1], "u64"), self._at.writer(self._operands[0])
        if is_to:
            return lambda group, threads: write(group, threads, read(group, threads) - window)
        return lambda group, threads: write(group, threads, read(group, threads) + window)

    def _nothing(self) -> Callable:
        return lambda group, threads: None

    def _trap(self) -> Callable:
        def run(group, threads):
            raise EmulatorFault("trap")

        return run

    # -- memory --------------------------------------------------------------------------------------------------------

    def _access(self) -> tuple[str, str, int]:
        """Space, element type and number of elements of a load or store."""
        *words, type_name = self._parts
        words = [word.partition("::")[0] for word in words]
        space = next((word for word in words if word in _SPACES), "generic")
        lanes = next((int(word[1:]) for word in words if word in ("v2", "v4")), 1)
        if set(words) - {*_SPACES, *_CACHE_WORDS, "v2", "v4"} or type_name not in DTYPES:
            raise Unsupported(self._statement.opcode)
        return space, type_name, lanes

    def _places(self, operand: str, space: str, num_bytes: int) -> Callable:
        address = self._at.address(operand)
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
        writers = [self._at.writer(target) for target in self._at.elements(self._operands[0])]
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
        readers = [self._at.reader(source, unsigned(type_name)) for source in self._at.elements(self._operands[1])]
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
        read = self._at.reader(self._operands[0], "u32")

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
            return

        return run

    def _barrier(self) -> Callable:
        words = [word for word in self._parts if word not in ("cta", "aligned")]
        if words == ["warp", "sync"]:
            members = self._at.reader(self._operands[0], "u32")
            return self._in_warp(members, lambda group, threads: None)
        if words != ["sync"]:
            raise Unsupported(self._statement.opcode)
        barrier = parse_constant(self._operands[0], "u32")
        count = parse_constant(self._operands[1], "u32") if len(self._operands) > 1 else None
        if barrier is None or (len(self._operands) > 1 and count is None):
            raise Unsupported(f"{self._statement.opcode} with operands in registers")
        return lambda group, threads, place: group.wait_at_barrier(threads, place, barrier, count)

    def _in_warp(self, members: Reader, function: Callable) -> Callable:
        """Run the joint operation of a warp when all members have come."""

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
        write, write_flag = self._at.writer(target), self._at.writer(flag[0]) if flag else None
        value, b, c, members = (self._at.reader(operand, "u32") for operand in self._operands[1:])

        def shuffle(group, threads):
            lane = group.lane if threads is None else group.lane[threads]
            amount, clamp = b(group, threads).astype(np.int64) & 31, c(group, threads).astype(np.int64)
            segment = clamp >> 8 & 31
            clamp = clamp & 31
            highest, lowest = (lane & segment) | (clamp & ~segment), lane & segment
            source = {"up": lane - amount, "down": lane + amount, "bfly": lane ^ amount, "idx": lowest | (amount & ~segment)}[
                mode
            ]
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
        write, predicate = self._at.writer(self._operands[0]), self._at.reader(self._operands[1], "pred")
        members = self._at.reader(self._operands[2], "u32")

        def vote(group, threads):
            chosen = predicate(group, threads)
            if mode == "all":
                write(group, threads, group.ballot(~chosen, threads) == 0)
            else:
                votes = group.ballot(chosen, threads)
                write(group, threads, votes if mode == "ballot" else votes != 0)

        return self._in_warp(members, vote)

    def _active(self) -> Callable:
        write = self._at.writer(self._operands[0])
        return lambda group, threads: write(group, threads, group.ballot(np.ones(1, bool), threads))
