"""The stand-in driver in this process: builds it, loads it, and runs its kernels.

Owns the library and what modules mean. cuda.bindings finds the library by its name when it is loaded first, so `install` must
come before the first call of cuda.bindings.driver; a process has one driver for its whole life.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import struct
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

from emulated_gpu.ptx_decode import Code
from emulated_gpu.ptx_machine import MAX_STEPS, Deadlock, Timeout, launch
from emulated_gpu.ptx_memory import EmulatorFault, IllegalAddress, Memory, MisalignedAddress, process_area
from emulated_gpu.ptx_text import Module, PtxError

SOURCE = Path(__file__).with_name("libcuda.c")
OBJECTS = ("streams", "events", "modules", "device memory", "host memory")

_FLAGS = ("-std=gnu99", "-O1", "-fPIC", "-shared", "-pthread", "-Wl,-soname,libcuda.so.1")
_ERRORS = {IllegalAddress: 700, Timeout: 702, Deadlock: 702, MisalignedAddress: 716}
_LAUNCH_FAILED, _UNKNOWN = 719, 999
_JIT_REGISTERS = 32  # of a kernel that the driver would assemble
_NO_BINARY_FOR_GPU, _NOT_FOUND, _INVALID_IMAGE = 209, 500, 200


class _Function(ctypes.Structure):
    _fields_ = [
        ("num_parameters", ctypes.c_uint32),
        ("static_shared_bytes", ctypes.c_uint32),
        ("num_registers", ctypes.c_uint32),
        ("offsets", ctypes.c_uint32 * 256),
        ("sizes", ctypes.c_uint32 * 256),
    ]


_U32S = ctypes.POINTER(ctypes.c_uint32)
_U64, _ADDRESS = ctypes.c_uint64, ctypes.c_void_p
_LOAD = ctypes.CFUNCTYPE(ctypes.c_int, _U64, _ADDRESS, _U64, ctypes.c_int, _ADDRESS, _U64)
_UNLOAD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64)
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.POINTER(_Function))
_VARIABLE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)
)
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, _U32S, _U32S, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32
)


def register_counts(cubin: bytes) -> dict[str, int]:
    """Kernel -> registers of a thread: attributes EIATTR_REGCOUNT (0x2f), which name symbols of the ELF file by index."""
    num_sections = int.from_bytes(cubin[60:62], "little")
    start = int.from_bytes(cubin[40:48], "little")
    headers = [struct.unpack_from("<IIQQQQII", cubin, start + 64 * i) for i in range(num_sections)]
    names: list[str] = []
    for _, kind, _, _, offset, num_bytes, link, _ in headers:
        if kind == 2:  # the table of symbols; `link` is the section of its names
            strings = headers[link][4]
            places = (strings + struct.unpack_from("<I", cubin, at)[0] for at in range(offset, offset + num_bytes, 24))
            names = [cubin[place : cubin.index(b"\0", place)].decode() for place in places]
    found: dict[str, int] = {}
    for symbol, count in re.findall(rb"\x04\x2f\x08\x00(....)(....)", cubin, re.DOTALL):
        index, registers = int.from_bytes(symbol, "little"), int.from_bytes(count, "little")
        if index < len(names):
            found[names[index]] = max(registers, found.get(names[index], 0))
    return found


class _Callbacks(ctypes.Structure):
    _fields_ = [("load", _LOAD), ("unload", _UNLOAD), ("function", _FUNCTION), ("variable", _VARIABLE), ("launch", _LAUNCH)]


def build() -> Path:
    """The library, built once for each text of its source. Needs gcc."""
    text = SOURCE.read_bytes() + " ".join(_FLAGS).encode()
    folder = Path(tempfile.gettempdir()) / f"evo-emulated-gpu-{os.getuid()}" / hashlib.sha256(text).hexdigest()[:16]
    library = folder / "libcuda.so.1"
    if not library.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        partial = folder / f"{os.getpid()}.partial"
        subprocess.run(["gcc", *_FLAGS, str(SOURCE), "-o", str(partial)], check=True)
        os.replace(partial, library)
    return library


def has_real_driver() -> bool:
    """Return whether this machine has a CUDA driver of its own."""
    script = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    return subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=False).returncode == 0


class StandIn:
    """The driver that this process has instead of a real one.

    Attributes:
        max_steps, order: of `ptx_machine.launch`.
        is_null: kernels end without having done anything.
        fatal_text: kernels of modules whose PTX contains this, such as a program's own constant, access an illegal address. It is
            kept in the environment, as EVO_EMULATED_GPU_FATAL, and holds for the processes that this one starts.
        messages: what kernels failed of, in order.
    """

    def __init__(self):
        self._library = ctypes.CDLL(str(build()), mode=ctypes.RTLD_GLOBAL)
        self._library.evo_emulated_calls.restype = ctypes.c_long
        self._library.evo_emulated_areas.restype = ctypes.c_uint64
        self._library.evo_emulated_cubin_bytes.restype = ctypes.c_uint64
        self._modules: dict[int, Module] = {}
        self._registers: dict[int, dict[str, int]] = {}  # of a thread, by module and kernel
        self._areas: dict[tuple[int, int], object] = {}
        self.max_steps, self.order, self.is_null = int(os.environ.get("EVO_EMULATED_GPU_MAX_STEPS", MAX_STEPS)), "together", False
        self._fatal: set[int] = set()
        self.messages: list[str] = []
        self._callbacks = _Callbacks(
            _LOAD(self._guarded(self._load)),
            _UNLOAD(self._guarded(self._unload)),
            _FUNCTION(self._guarded(self._function)),
            _VARIABLE(self._guarded(self._variable)),
            _LAUNCH(self._guarded(self._launch)),
        )
        self._library.evo_emulated_set_callbacks(ctypes.byref(self._callbacks))

    @property
    def fatal_text(self) -> bytes | None:
        return os.environ.get("EVO_EMULATED_GPU_FATAL", "").encode() or None

    @fatal_text.setter
    def fatal_text(self, text: bytes | None) -> None:
        os.environ["EVO_EMULATED_GPU_FATAL"] = (text or b"").decode()

    def configure(self, options: str) -> None:
        """Options as in the environment, such as `fault=launch:2:719,deferred=1`; counts of faults start now."""
        if self._library.evo_emulated_configure(options.encode()):
            raise ValueError(f"emulated GPU: a wrong option in '{options}'")

    def reset(self) -> None:
        """Forgets all contexts, errors, counts, messages and options, those of the environment too."""
        self._library.evo_emulated_reset()
        self.max_steps, self.order, self.is_null, self.fatal_text = MAX_STEPS, "together", False, None
        self.messages.clear()

    def alive(self) -> dict[str, int]:
        """Number of OBJECTS that exist now."""
        return self._objects()[0]

    def leaked(self) -> dict[str, int]:
        """Number of OBJECTS that existed when a context last ended."""
        return self._objects()[1]

    def num_calls(self, name: str) -> int:
        """Number of calls, by the names that faults have: launch, load, alloc, copy, synchronize, ..."""
        return self._library.evo_emulated_calls(name.encode())

    def _objects(self) -> tuple[dict[str, int], dict[str, int]]:
        counts = [(ctypes.c_uint64 * len(OBJECTS))() for _ in range(2)]
        self._library.evo_emulated_alive(*counts)
        return tuple(dict(zip(OBJECTS, count, strict=True)) for count in counts)

    def _memory(self) -> Memory:
        count = self._library.evo_emulated_areas(None, ctypes.c_uint64(0))
        table = (ctypes.c_uint64 * (2 * count))()
        self._library.evo_emulated_areas(table, ctypes.c_uint64(count))
        keys = list(zip(table[::2], table[1::2], strict=True))
        self._areas = {key: self._areas.get(key) or process_area(*key) for key in keys}
        return Memory(areas=tuple(self._areas.values()))

    def _guarded(self, function):
        def call(*args) -> int:
            try:
                return function(*args)
            except EmulatorFault as error:
                self._note(f"{type(error).__name__}: {error}")
                return next((code for kind, code in _ERRORS.items() if isinstance(error, kind)), _LAUNCH_FAILED)
            except BaseException:  # noqa: BLE001 - nothing can pass through the C frames above: it is printed, and the call fails
                self._note(traceback.format_exc())
                return _UNKNOWN

        return call

    def _note(self, message: str) -> None:
        self.messages.append(message)
        print(f"emulated GPU: {message}", file=sys.stderr)

    def _load(self, number: int, text: int, num_bytes: int, capability: int, cubin: int | None, cubin_bytes: int) -> int:
        ptx = ctypes.string_at(text, num_bytes)
        try:
            module = Module(ptx)
        except PtxError as error:
            self._note(str(error))
            return _INVALID_IMAGE
        target = int(module.target.removeprefix("sm_").rstrip("af"))
        if (cubin and target // 10 != capability // 10) or target > capability:
            return _NO_BINARY_FOR_GPU
        self._modules[number] = module
        self._registers[number] = register_counts(ctypes.string_at(cubin, cubin_bytes)) if cubin else {}
        if self.fatal_text and self.fatal_text in ptx:
            self._fatal.add(number)
        return 0

    def _unload(self, number: int) -> int:
        del self._modules[number], self._registers[number]
        return 0

    def _function(self, number: int, name: bytes, out) -> int:
        module = self._modules[number]
        if name.decode() not in module.kernel_names:
            return _NOT_FOUND
        code = Code.of(module, name.decode())
        out[0].num_parameters = len(code.kernel.parameters)
        out[0].static_shared_bytes = code.shared_bytes
        out[0].num_registers = self._registers[number].get(name.decode(), _JIT_REGISTERS)
        for i, parameter in enumerate(code.kernel.parameters):
            out[0].offsets[i], out[0].sizes[i] = parameter.offset, parameter.num_bytes
        return 0

    def _variable(self, number: int, name: bytes, address, num_bytes) -> int:
        area = Code.variable(self._modules[number], name.decode())
        if area is None:
            return _NOT_FOUND
        address[0], num_bytes[0] = area.address, len(area.data)
        return 0

    def _launch(self, number: int, name: bytes, grid, block, shared_bytes: int, parameters: int, num_bytes: int) -> int:
        if self.is_null:
            return 0
        if number in self._fatal:
            raise IllegalAddress(f"a module with {self.fatal_text.decode()}")
        launch(
            self._modules[number],
            name.decode(),
            grid[:3],
            block[:3],
            ctypes.string_at(parameters, num_bytes),
            self._memory(),
            shared_bytes=shared_bytes,
            max_steps=self.max_steps,
            order=self.order,
        )
        return 0


@cache
def install() -> StandIn:
    """Makes the stand-in this process's driver. Called again it gives the same.

    Raises:
        RuntimeError: cuda.bindings may have loaded a real driver already.
    """
    loaded = [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libcuda.so" in line]
    if loaded:
        raise RuntimeError(f"a CUDA driver is loaded already: {loaded[0]}")
    return StandIn()
