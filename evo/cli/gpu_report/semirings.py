"""Semirings on a GPU: whether they compute what the CPU does, and what they cost. A part of the report.

Owns which are tried. PyTorch, where it is installed with CUDA, is what they are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.cli.gpu_report.work import Order, Told, row
from evo.evaluate.cuda.agreement import scrambled
from evo.evaluate.cuda.device import Device
from evo.semiring import zoo
from evo.semiring.contraction import run, shape_of
from evo.semiring.device_fold import Launcher, Operand
from evo.semiring.fold_kernel import elements_of, tile_size
from evo.semiring.folds import Axes, Fold, Sums, sizes_of

_EXACT = ("l1", "squared_l2", "min_plus", "max_times", "hamming")
_OTHERS = ("l2", "log_sum_exp")
_MOST_WRONG = 1e-5  # relative, of those with approximate functions


def _values(shape: tuple[int, int], seed: int) -> NDArray[np.float32]:
    """Numbers from -1 to 1."""
    bits = scrambled(shape[0] * shape[1], seed).astype(np.uint32)
    return (bits.astype(np.float64) / 2**31 - 1).astype(np.float32).reshape(shape)


class _Gpu:
    """Arrays of NumPy on a device, and folds of them."""

    def __init__(self, ordinal: int):
        self.device = Device(ordinal)
        self.launcher = Launcher(self.device)
        self.stream = self.device.stream()
        self._addresses: list[Any] = []

    def call(self, fold: Fold, arrays: Sequence[NDArray[Any]], elements: int) -> tuple[Callable[[], None], list[Any]]:
        """What runs a fold, and the addresses of its results."""
        batch, sizes = sizes_of(fold.arrays, [array.shape for array in arrays])
        shapes = [shape_of(axes, batch, sizes) for axes in fold.results]
        results = [self.device.allocate(int(np.prod(shape)) * 4) for shape in shapes]
        inputs = [self.device.upload(array) for array in arrays]
        self._addresses += [*results, *inputs]
        operands = [
            Operand(int(address), array.shape, array.strides, array.dtype) for address, array in zip(inputs, arrays, strict=True)
        ]
        addresses = [int(result) for result in results]
        return lambda: self.launcher.run(fold, operands, addresses, batch, sizes, self.stream, elements=elements), [
            *zip(results, shapes, strict=True)
        ]

    def values(self, results: Sequence[tuple[Any, tuple[int, ...]]]) -> Iterator[NDArray[np.float32]]:
        """Results, when they are there."""
        for address, shape in results:
            host = self.device.pinned(int(np.prod(shape)) * 4)
            self.device.copy_to_host(host, address, self.stream)
            self.seconds(lambda: None, 1)
            yield host.view(np.float32).reshape(shape).copy()
            self.device.free_pinned(host)

    def seconds(self, call: Callable[[], None], rounds: int) -> float:
        """The shortest time of a call."""
        times = []
        for _ in range(rounds):
            events = [self.device.event() for _ in range(2)]
            self.device.record(events[0], self.stream)
            call()
            self.device.record(events[1], self.stream)
            self.device.wait(events[1], lambda: False)
            times.append(self.device.elapsed_s(*events))
            for event in events:
                self.device.destroy_event(event)
        return min(times)

    def free(self) -> None:
        """Frees the arrays."""
        for address in self._addresses:
            self.device.free(address)
        self._addresses.clear()


@contextmanager
def _opened(ordinal: int) -> Iterator[_Gpu]:
    gpu = _Gpu(ordinal)
    try:
        yield gpu
    finally:
        gpu.free()
        gpu.launcher.close()
        gpu.device.destroy_stream(gpu.stream)
        gpu.device.close()


def agreement(order: Order, told: Told) -> str | None:
    """Results and places against the CPU's: equal bits of exact semirings, and others within a bound."""
    with _opened(order.ordinal) as gpu:
        for name in (*_EXACT, *_OTHERS):
            semiring, worst = getattr(zoo, name), 0.0
            fold = semiring.fold if name in _EXACT else semiring.whole
            for m, n, k in order.extent.semiring_shapes:
                arrays = [_values((size, k), seed) for seed, size in enumerate((m, n))]
                wanted = run(fold, arrays)
                for elements in elements_of(fold):
                    call, results = gpu.call(fold, arrays, elements)
                    call()
                    for found, each in zip(gpu.values(results), wanted, strict=True):
                        if name in _EXACT and not np.array_equal(found, each):
                            return f"{name}, {m} x {n} x {k}, tiles of {tile_size(elements)}: other bits than on the CPU"
                        worst = max(worst, float(np.max(np.abs(found - each) / np.maximum(np.abs(each), 1e-3))))
                    gpu.free()
            if not worst <= _MOST_WRONG:
                return f"{name}: {worst:.1e} from the CPU's, at most {_MOST_WRONG:.0e}"
            told(row(name, "equal bits" if name in _EXACT else f"within {worst:.1e}"))
    return None


def speed(order: Order, told: Told) -> str | None:
    """Times of a call for each tile, and those of PyTorch for the same."""
    size, depth = order.extent.semiring
    rounds = order.extent.rounds
    a, b, g = (_values(shape, seed) for seed, shape in enumerate(((size, depth), (size, depth), (size, size))))
    l1 = Sums(zoo.l1.fold.operands, zoo.l1.multiply, (Axes.PAIR,)).gradient.parts[0]
    assert l1 is not None, "L1 has a gradient"
    calls = {name: (getattr(zoo, name).whole, [a, b]) for name in ("plus_times", "l1", "min_plus", "log_sum_exp")}
    calls |= {"min_plus with places": (zoo.min_plus.fold, [a, b]), "lp, p = 3": (zoo.lp.whole, [a, b, np.full(1, 3, np.float32)])}
    calls |= {"l1, gradient by a": (l1, [a, b, g])}
    told(row("size", f"{size} x {size} x {depth}, float32"))
    with _opened(order.ordinal) as gpu:
        for name, (fold, arrays) in calls.items():
            for elements in elements_of(fold):
                call, _ = gpu.call(fold, arrays, elements)
                call()
                ms = gpu.seconds(call, rounds) * 1e3
                told(row(name, f"{ms:.3f} ms", f"tiles of {tile_size(elements)}", ms=ms))
                gpu.free()
    others = [name for name in ("kermac", "genbmm", "pykeops") if find_spec(name)]
    told(row("installed, but not compared", ", ".join(others) or "none of kermac, genbmm and KeOps"))
    for name, theirs in _theirs(order.ordinal, a, b):
        told(row(name, f"{theirs(rounds):.3f} ms", "PyTorch"))
    return None


def _theirs(ordinal: int, a: NDArray[Any], b: NDArray[Any]) -> Iterator[tuple[str, Callable[[int], float]]]:
    """Milliseconds of PyTorch for what has the same name."""
    with suppress(ImportError):
        import torch

        if torch.cuda.is_available():
            x, y = (torch.from_numpy(each).to(f"cuda:{ordinal}") for each in (a, b))

            def timed(call: Callable[[], Any]) -> Callable[[int], float]:
                def best(rounds: int) -> float:
                    times = []
                    for _ in range(rounds + 1):  # the first starts libraries
                        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                        events[0].record()
                        call()
                        events[1].record()
                        torch.cuda.synchronize()
                        times.append(events[0].elapsed_time(events[1]))
                    return float(min(times[1:]))

                return best

            yield "plus_times", timed(lambda: x @ y.T)
            yield "l1", timed(lambda: torch.cdist(x, y, p=1.0))
            yield "lp, p = 3", timed(lambda: torch.cdist(x, y, p=3.0))
            blocks = [x[first : first + 16, None] for first in range(0, len(x), 16)]
            yield "min_plus", timed(lambda: [(each + y).amin(-1) for each in blocks])
            yield "log_sum_exp", timed(lambda: [(each + y).logsumexp(-1) for each in blocks])
