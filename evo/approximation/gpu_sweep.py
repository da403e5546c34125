"""A sweep on a GPU: what this one gives at every number, compared with the function by the kernel that runs the program.

Owns the kernel's argument, its launches and how their results join; `gpu_sweep.cu` is the kernel. Knows nothing of certificates.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.approximation.formats import FORMATS, Format
from evo.approximation.sweep import Found
from evo.compile.targets import architecture
from evo.errors import UserError
from evo.evaluate.cuda.device import Device, choose_device, driver_name, probe
from evo.evaluate.cuda.interpreter_kernels import cubin_of
from evo.evaluate.cuda.self_test import why_untrusted
from evo.kernel.cuda_source import compiled
from evo.kernel.pointwise import site_lowering
from evo.language.program import Language
from evo.native.proof import Pieces
from evo.ptx_inject import PTXInject, process_cuda

KEYS = 1 << 27  # of a launch, which takes some milliseconds
MAX_THREADS = 1 << 18  # of a launch
BLOCK_SIZE = 128
_SOURCE = Path(__file__).with_name("gpu_sweep.cu")
_MINUS_ZERO = -(1 << 63)
_CALL = np.dtype(
    [
        *((name, "<u8") for name in ("first_keys", "centres", "inverses", "coefficients", "bounds", "results")),
        *((name, "<i8") for name in ("first", "last")),
        ("overflow", "<f8"),
        *((name, "<i4") for name in ("num_pieces", "run", "form", "digits", "least")),
        ("minus_zero", "<f4"),
    ]
)
_RESULT = np.dtype([("worst", "<f8", 3), ("at", "<i8", 3), ("counts", "<i8", 3)])


class GpuSweep:
    """Sweeps on one GPU, whose context is current on the calling thread.

    Args:
        ordinal: which, as in `Device`.

    Raises:
        UserError: it cannot be used or trusted, or NVRTC is missing.
    """

    def __init__(self, ordinal: int | None = None):
        self.info = choose_device(probe(), ordinal)
        if problem := why_untrusted(self.info):
            raise UserError(problem)
        self._template = _template(architecture(self.info.target))
        self._device, self.driver = Device(self.info.ordinal), driver_name()

    def close(self) -> None:
        """Frees the device."""
        self._device.close()

    def run(self, language: Language, words: NDArray[np.uint64], pieces: Pieces, form: Format) -> Found:
        """Compares a program of `(max_length,)` words, with input x and output y, with the function at all keys of the
        pieces. `cpu` of what is returned has the GPU's errors.
        """
        device, stream = self._device, self._device.stream()
        ptx = self._template.render({"program": site_lowering(language).emit(words[None])[0]})
        module = device.load(cubin_of(ptx, self.info.target, None))
        tables = [device.upload(table) for table in pieces.tables]
        results = device.allocate(MAX_THREADS * _RESULT.itemsize)
        host, done = device.pinned(MAX_THREADS * _RESULT.itemsize), device.event()
        first, end = int(pieces.tables[0][0]), int(pieces.tables[0][-1])
        found = Found()
        for start in range(first, end, KEYS):
            last = min(start + KEYS, end) - 1
            run = -(-(last - start + 1) // MAX_THREADS)
            num_threads = -(-(last - start + 1) // run)
            call = np.zeros(1, _CALL)
            call[0] = (
                *map(int, (*tables, results)),
                *(start, last, form.overflow, len(pieces.tables[0]) - 1, run),
                *(list(FORMATS).index(form.name), form.digits, form.least, -0.0),
            )
            device.launch(device.function(module, "sweep"), (-(-num_threads // BLOCK_SIZE), 1), BLOCK_SIZE, [call], stream)
            device.copy_to_host(host, results, stream)
            device.record(done, stream)
            device.wait(done, lambda: False)
            _join(found, host.view(_RESULT)[:num_threads], form)
        found.num_inputs = end - first
        for address in (*tables, results):
            device.free(address)
        device.free_pinned(host)
        device.destroy_event(done)
        device.destroy_stream(stream)
        device.unload(module)
        return found


def _join(found: Found, results: NDArray[Any], form: Format) -> None:
    """Joins what threads have found, in the order of their keys."""
    rows = results["worst"].argmax(axis=0)
    errors, keys = (results[name][rows, range(3)] for name in ("worst", "at"))
    x = [-0.0 if key == _MINUS_ZERO else float(form.of_keys(np.array([key]))[0]) for key in keys.tolist()]
    found.cpu.take(errors.tolist(), x)
    nans, signs, falls = results["counts"].sum(axis=0).tolist()
    found.num_nans += nans
    found.num_wrong_signs += signs
    found.num_falls += falls


@cache
def _template(target: str) -> PTXInject:
    options = (f"--gpu-architecture={target.replace('sm_', 'compute_')}", "--fmad=false")
    return PTXInject(compiled(_SOURCE, process_cuda(_SOURCE.read_bytes()), {}, options, None))
