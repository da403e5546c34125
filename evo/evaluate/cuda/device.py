"""One NVIDIA GPU through the CUDA driver API: discovery, memory, streams, modules, launches.

Owns the device; no other module opens one. Knows nothing of programs, tasks or compilers. Importing it loads no CUDA library.
`probe` and `Device` load the driver, which may be missing.
"""

import ctypes
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from evo.compile.targets import target_for
from evo.errors import DeviceFailure, UserError

# Cubins of the pinned CUDA 13.0 run on drivers of that version or newer. Its assembler supports GPUs since Turing; newer ones
# than it knows get what `evo.compile.targets` says.
MIN_DRIVER = (13, 0)
MIN_CAPABILITY = (7, 5)

OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
INVALID_VALUE = "CUDA_ERROR_INVALID_VALUE"

MODULE_LOADING = "CUDA_MODULE_LOADING"
DRIVER_MODULE = Path("/sys/module/nvidia/version")

MOST_SHARED = 100  # percent, of `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`

POLL_S = (20e-6, 1e-3)  # first and longest pause between two queries of an event


class CudaError(DeviceFailure):
    """A failed call of the driver. Most kernel errors destroy the context, after which this process cannot use the device.

    Attributes:
        name: such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    """

    def __init__(self, call: str, name: str):
        super().__init__(f"{call}: {name}")
        self.name = name

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceFailure, (str(self),)


@dataclass(frozen=True)
class DeviceInfo:
    """A GPU of this machine. capability: (major, minor); num_bytes: its memory; uuid: no other GPU has it."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    num_bytes: int
    uuid: str

    @property
    def architecture(self) -> str:
        """Architecture, such as `sm_90`."""
        return "sm_{}{}".format(*self.capability)

    @property
    def target(self) -> str:
        """Target of `evo.compile.targets` to compile for."""
        return target_for(self.capability)


@dataclass(frozen=True)
class Probe:
    """GPU of this machine. problem: why no GPU is usable, or None; driver: the CUDA version that it supports, or None."""

    problem: str | None
    driver: tuple[int, int] | None = None
    devices: tuple[DeviceInfo, ...] = ()


def probe() -> Probe:
    """Looks for a driver and devices. Opens no context."""
    try:
        from cuda.bindings import driver as cuda
    except ImportError:
        return Probe("the package cuda-bindings is missing: pip install 'cuda-bindings==13.0.*'")
    try:
        initialised = _initialise(cuda)
    except RuntimeError:  # cuda.bindings raises it if it finds no libcuda.so.1
        return Probe("no NVIDIA driver")
    version = _version(_ask(cuda.cuDriverGetVersion))
    if version < MIN_DRIVER:
        # Checked before the result of cuInit: an old driver fails there on a new device, and an update mends that as well.
        return Probe(
            f"the NVIDIA driver supports CUDA {_dotted(version)}, but evo needs CUDA {_dotted(MIN_DRIVER)}: update the driver",
            version,
        )
    if initialised != cuda.CUresult.CUDA_SUCCESS:
        return Probe(f"the NVIDIA driver finds no usable GPU ({initialised.name})", version)
    devices = tuple(_device_info(ordinal) for ordinal in range(_ask(cuda.cuDeviceGetCount)))
    if not devices:
        return Probe("the NVIDIA driver finds no GPU", version)
    if all(device.capability < MIN_CAPABILITY for device in devices):
        names = ", ".join(f"{device.name} ({device.architecture})" for device in devices)
        return Probe(f"{names}: too old, evo needs compute capability {_dotted(MIN_CAPABILITY)}", version, devices)
    return Probe(None, version, devices)


def _initialise(cuda: Any) -> Any:
    """Call cuInit. Modules are loaded whole unless the user chooses otherwise."""
    is_chosen = MODULE_LOADING in os.environ
    if not is_chosen:
        # Every kernel of a module is launched once: loading it then would make that launch wait. Only cuInit reads the variable,
        # and the user's own code, which may use the GPU too, starts other processes without it.
        os.environ[MODULE_LOADING] = "EAGER"
    try:
        return cuda.cuInit(0)[0]
    finally:
        if not is_chosen:
            del os.environ[MODULE_LOADING]


def choose_device(probed: Probe, ordinal: int | None, key: str = "evaluation.device:") -> DeviceInfo:
    """The device with this ordinal; None: the first usable one. key: what names it.

    Raises:
        UserError: there is no such device, or it is not usable.
    """
    if probed.problem:
        raise UserError(f"no GPU is usable: {probed.problem}")
    usable = [device for device in probed.devices if device.capability >= MIN_CAPABILITY]
    chosen = usable[:1] if ordinal is None else [device for device in usable if device.ordinal == ordinal]
    if not chosen:
        listed = ", ".join(f"{device.ordinal} ({device.name})" for device in usable)
        raise UserError(f"{key} {ordinal} is not a usable GPU, one of: {listed}")
    return chosen[0]


def driver_name() -> str:
    """The driver's version: the CUDA version that it supports and, where Linux tells it, the version of the kernel module."""
    from cuda.bindings import driver as cuda

    name = f"CUDA {_dotted(_version(_ask(cuda.cuDriverGetVersion)))}"
    try:
        return f"{name} {DRIVER_MODULE.read_text().strip()}"
    except OSError:
        return name


class Device:
    """A device with its primary context, which becomes current on the calling thread.

    Args:
        ordinal: which device, in the driver's order; None: the first usable one.

    Raises:
        UserError: there is no such device, it is not usable, or it cannot be opened.
    """

    def __init__(self, ordinal: int | None = None):
        probed = probe()
        self.info = choose_device(probed, ordinal)
        from cuda.bindings import driver as cuda

        assert probed.driver, "a usable device has a driver"
        self.driver = probed.driver
        self._cuda = cuda
        self._handle = _ask(cuda.cuDeviceGet, self.info.ordinal)
        try:
            self._context = _ask(cuda.cuDevicePrimaryCtxRetain, self._handle)
        except CudaError as error:
            raise UserError(
                f"cannot be opened ({error.name}); another process may be using all of its memory", self.info.name
            ) from error
        self.make_current()
        self.num_multiprocessors = self.attribute("MULTIPROCESSOR_COUNT")

    def make_current(self) -> None:
        """Makes the context current on the calling thread. Every thread that uses the device calls this first."""
        _ask(self._cuda.cuCtxSetCurrent, self._context)

    def attribute(self, name: str) -> int:
        """`CU_DEVICE_ATTRIBUTE_name`."""
        attribute = getattr(self._cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(_ask(self._cuda.cuDeviceGetAttribute, attribute, self._handle))

    def free_bytes(self) -> int:
        """The device memory that is free now."""
        return int(_ask(self._cuda.cuMemGetInfo)[0])

    def close(self) -> None:
        """Releases the context, with everything allocated and loaded on it."""
        _ask(self._cuda.cuDevicePrimaryCtxRelease, self._handle)

    def allocate(self, num_bytes: int) -> Any:
        """Device memory, aligned to 256 bytes, to be freed by `free`. `int(...)` of it is its address.

        Raises:
            UserError: too little memory is free.
        """
        try:
            return _ask(self._cuda.cuMemAlloc, max(num_bytes, 1))
        except CudaError as error:
            if error.name != OUT_OF_MEMORY:
                raise
            raise UserError(
                f"cannot allocate {num_bytes / 2**20:,.1f} MiB, {self.free_bytes() / 2**20:,.1f} MiB are free; "
                "end other processes on the device, or use fewer points",
                self.info.name,
            ) from error

    def free(self, address: Any) -> None:
        """Frees device memory."""
        _ask(self._cuda.cuMemFree, address)

    def upload(self, array: NDArray[Any]) -> Any:
        """Device memory that holds the array's bytes."""
        array = np.ascontiguousarray(array)
        address = self.allocate(array.nbytes)
        _ask(self._cuda.cuMemcpyHtoD, address, array.ctypes.data, array.nbytes)
        # The copy may return before the bytes are on the device, and our streams do not wait for the default one.
        _ask(self._cuda.cuStreamSynchronize, 0)
        return address

    def pinned(self, num_bytes: int) -> NDArray[Any]:
        """Page-locked memory of this machine as `(num_bytes,)` uint8, to be freed by `free_pinned`.

        Raises:
            UserError: this machine has too little memory, or limits page-locked memory.
        """
        try:
            address = _ask(self._cuda.cuMemHostAlloc, max(num_bytes, 1), 0)
        except CudaError as error:
            if error.name != OUT_OF_MEMORY:
                raise
            raise UserError(f"cannot allocate {num_bytes / 2**20:,.1f} MiB of page-locked memory; use fewer points") from error
        return np.ctypeslib.as_array((ctypes.c_uint8 * num_bytes).from_address(int(address)))

    def free_pinned(self, array: NDArray[Any]) -> None:
        """Frees an array that `pinned` gave. It must not be used afterwards."""
        _ask(self._cuda.cuMemFreeHost, array.ctypes.data)

    def stream(self) -> Any:
        """A stream that does not wait for the default one."""
        return _ask(self._cuda.cuStreamCreate, self._cuda.CUstream_flags.CU_STREAM_NON_BLOCKING)

    def event(self) -> Any:
        """An event that records the time."""
        return _ask(self._cuda.cuEventCreate, self._cuda.CUevent_flags.CU_EVENT_DEFAULT)

    def destroy_stream(self, stream: Any) -> None:
        """Frees a stream."""
        _ask(self._cuda.cuStreamDestroy, stream)

    def destroy_event(self, event: Any) -> None:
        """Frees an event."""
        _ask(self._cuda.cuEventDestroy, event)

    def record(self, event: Any, stream: Any) -> None:
        """Makes the event happen when the stream has finished its work so far."""
        _ask(self._cuda.cuEventRecord, event, stream)

    def wait(self, event: Any, is_given_up: Callable[[], bool]) -> None:
        """Returns when the event has happened.

        Args:
            is_given_up: asked between two queries; true ends the wait.

        Raises:
            CudaError: the device failed, or `is_given_up` ended the wait.
        """
        not_ready, pause = self._cuda.CUresult.CUDA_ERROR_NOT_READY, POLL_S[0]
        # A kernel may never end, and a wait inside the driver could not be abandoned.
        while (result := self._cuda.cuEventQuery(event)[0]) == not_ready:
            if is_given_up():
                raise CudaError("cuEventQuery", "given up")
            time.sleep(pause)
            pause = min(pause * 2, POLL_S[1])
        if result != self._cuda.CUresult.CUDA_SUCCESS:
            raise CudaError("cuEventQuery", result.name)

    def elapsed_s(self, start: Any, end: Any) -> float:
        """Seconds on the device between two past events."""
        return float(_ask(self._cuda.cuEventElapsedTime, start, end)) / 1e3

    def copy_to_host(self, host: NDArray[Any], address: Any, stream: Any) -> None:
        """Queues a copy from device memory to pinned memory."""
        _ask(self._cuda.cuMemcpyDtoHAsync, host.ctypes.data, address, host.nbytes, stream)

    def copy_to_device(self, address: int, host: NDArray[Any], stream: Any) -> None:
        """Queues a copy to device memory. The driver copies an array that is not pinned before this returns."""
        _ask(self._cuda.cuMemcpyHtoDAsync, address, host.ctypes.data, host.nbytes, stream)

    def fill(self, address: int, byte: int, num_bytes: int, stream: Any) -> None:
        """Queues setting each byte of device memory."""
        _ask(self._cuda.cuMemsetD8Async, address, byte, num_bytes, stream)

    def load(self, cubin: bytes) -> Any:
        """Loads a module, a cubin or PTX that ends in NUL, onto the device, to be removed by `unload`."""
        return _ask(self._cuda.cuModuleLoadData, cubin)

    def unload(self, module: Any) -> None:
        """Removes a module from the device. None of its kernels may be running."""
        _ask(self._cuda.cuModuleUnload, module)

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module."""
        return _ask(self._cuda.cuModuleGetFunction, module, name.encode())

    def variable(self, module: Any, name: str) -> int:
        """The address of a variable in global memory of a module."""
        return int(_ask(self._cuda.cuModuleGetGlobal, module, name.encode())[0])

    def allow_shared_bytes(self, function: Any, num_bytes: int) -> None:
        """Lets a kernel be launched with so much dynamic shared memory, and asks for as little cache in its place as can be: by
        itself the driver may leave room for fewer blocks than a multiprocessor could run.
        """
        attributes = self._cuda.CUfunction_attribute
        _ask(self._cuda.cuFuncSetAttribute, function, attributes.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, num_bytes)
        carveout = attributes.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
        _ask(self._cuda.cuFuncSetAttribute, function, carveout, MOST_SHARED)

    def launch(
        self,
        function: Any,
        grid: tuple[int, int],
        block_size: int,
        params: Sequence[NDArray[Any] | np.generic],
        stream: Any,
        shared_bytes: int = 0,
    ) -> None:
        """Starts a kernel.

        Args:
            grid: blocks along x and y.
            shared_bytes: of dynamic shared memory.
            params: the kernel's parameters in order, each of the size that the kernel expects; addresses as uint64.
        """
        values = [np.atleast_1d(param) for param in params]
        addresses = np.array([value.ctypes.data for value in values], np.uint64)
        _ask(self._cuda.cuLaunchKernel, function, *grid, 1, block_size, 1, 1, shared_bytes, stream, addresses.ctypes.data, 0)


def _ask(function: Any, *args: Any) -> Any:
    """Calls the driver. Gives its result, or a tuple if there are several. Raises CudaError: the call failed."""
    result, *values = function(*args)
    if result.value != 0:
        raise CudaError(function.__name__, result.name)
    return values[0] if len(values) == 1 else tuple(values)


def _device_info(ordinal: int) -> DeviceInfo:
    from cuda.bindings import driver as cuda

    handle = _ask(cuda.cuDeviceGet, ordinal)
    attributes = cuda.CUdevice_attribute
    capability = (
        _ask(cuda.cuDeviceGetAttribute, attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle),
        _ask(cuda.cuDeviceGetAttribute, attributes.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle),
    )
    name = _ask(cuda.cuDeviceGetName, 256, handle).split(b"\0")[0].decode(errors="replace")
    # Of an instance of a GPU (MIG) it is the instance's.
    identity = str(UUID(bytes=bytes(_ask(cuda.cuDeviceGetUuid, handle).bytes)))
    return DeviceInfo(ordinal, name, capability, _ask(cuda.cuDeviceTotalMem, handle), identity)


def _version(number: int) -> tuple[int, int]:
    """Major and minor version; CUDA writes 13.0 as 13000."""
    return number // 1000, number % 1000 // 10


def _dotted(version: tuple[int, int]) -> str:
    return "{}.{}".format(*version)
