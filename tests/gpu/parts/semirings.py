"""Semirings on a GPU: whether they compute what the CPU does, and what they cost.

Owns which are tried. PyTorch, where it is installed with CUDA, is what they are compared with.
"""

from contextlib import suppress

import numpy as np

from evo.evaluate.cuda.agreement import different_rows, scrambled
from evo.evaluate.cuda.device import Device
from evo.semiring import zoo
from evo.semiring.contraction import run, shape_of
from evo.semiring.device_fold import Launcher, Operand
from evo.semiring.fold_kernel import elements_of, tile_size
from evo.semiring.folds import Axes, Sums, sizes_of

from .work import row

_EXACT = ("l1", "squared_l2", "min_plus", "max_times", "hamming")
_OTHERS = ("l2", "log_sum_exp")
_SHAPES = (1, 1, 1), (3, 70, 9), (130, 200, 17)  # M, N and K
_MOST_WRONG = 1e-5  # relative, of those with approximate functions


class Gpu:
    """Folds of NumPy's arrays on a device, whose memory is freed when the process ends."""

    def __init__(self, ordinal, cache=None):
        self.device = Device(ordinal)
        self.launcher = Launcher(self.device, cache)
        self.stream = self.device.stream()

    def run(self, fold, arrays, elements=None):
        """As `contraction.run`."""
        launch, results = self._prepared(fold, arrays)
        launch(elements)
        for address, host in results:
            self.device.copy_to_host(host, address, self.stream)
        event = self.device.event()
        self.device.record(event, self.stream)
        self.device.wait(event, lambda: False)
        return [host for _, host in results]

    def seconds(self, fold, arrays, elements):
        """The shortest time of some calls after the first."""
        launch, _ = self._prepared(fold, arrays)
        return self.launcher._seconds(launch, elements, self.stream)

    def _prepared(self, fold, arrays):
        batch, sizes = sizes_of(fold.arrays, [array.shape for array in arrays])
        hosts = [np.empty(shape_of(axes, batch, sizes), np.float32) for axes in fold.results]
        results = [int(self.device.allocate(host.nbytes)) for host in hosts]
        operands = [self._operand(array) if array.ndim else Operand(0, (), (), array.dtype, float(array)) for array in arrays]

        def launch(elements):
            self.launcher.run(fold, operands, results, batch, sizes, self.stream, elements=elements)

        return launch, [*zip(results, hosts, strict=True)]

    def _operand(self, array):
        """The launcher's description of an array, whose base is copied so that its strides stay."""
        base = array if array.base is None else array.base
        offset = array.ctypes.data - base.ctypes.data
        return Operand(int(self.device.upload(base)) + offset, array.shape, array.strides, array.dtype)


def _values(rows, columns, seed):
    """Numbers from -1 to 1."""
    bits = scrambled(rows * columns, seed).reshape(rows, columns)
    return (bits / 2**31 - 1).astype(np.float32)


def agreement(ordinal, extent):
    """Results and places against the CPU's: equal bits of exact semirings, and others within a bound."""
    gpu = Gpu(ordinal)
    for name in (*_EXACT, *_OTHERS):
        semiring, worst = getattr(zoo, name), 0.0
        fold = semiring.fold if name in _EXACT else semiring.whole
        for m, n, k in _SHAPES:
            arrays = [_values(m, k, 0), _values(n, k, 1)]
            wanted = run(fold, arrays)
            for elements in elements_of(fold):
                found, case = gpu.run(fold, arrays, elements), f"{name}, {m} x {n} x {k}, tiles of {tile_size(elements)}"
                assert name in _OTHERS or not len(different_rows(found, wanted)), f"{case}: other bits than on the CPU"
                errors = (np.abs(a - b) / np.maximum(np.abs(b), 1e-3) for a, b in zip(found, wanted, strict=True))
                worst = max(worst, *(float(np.max(each)) for each in errors))
        assert worst <= _MOST_WRONG, f"{name}: {worst:.1e} from the CPU's, at most {_MOST_WRONG:.0e}"
        yield row(name, "equal bits" if name in _EXACT else f"within {worst:.1e}")


def speed(ordinal, extent):
    """Times of a call for each tile, and those of PyTorch for the same."""
    size, depth = extent.semiring
    a, b, g = _values(size, depth, 0), _values(size, depth, 1), _values(size, size, 2)
    l1 = Sums(zoo.l1.fold.operands, zoo.l1.multiply, (Axes.PAIR,)).gradient.parts[0]
    calls = {name: (getattr(zoo, name).whole, [a, b]) for name in ("plus_times", "l1", "min_plus", "log_sum_exp")}
    calls |= {"min_plus with places": (zoo.min_plus.fold, [a, b]), "lp, p = 3": (zoo.lp.whole, [a, b, np.full(1, 3, np.float32)])}
    calls |= {"l1, gradient by a": (l1, [a, b, g])}
    yield row("size", f"{size} x {size} x {depth}, float32")
    gpu = Gpu(ordinal)
    for name, (fold, arrays) in calls.items():
        for elements in elements_of(fold):
            ms = gpu.seconds(fold, arrays, elements) * 1e3
            yield row(name, f"{ms:.3f} ms", f"tiles of {tile_size(elements)}", ms=ms)
    for name, call in _theirs(ordinal, a, b):
        call()  # starts libraries
        yield row(name, f"{min(_torch_ms(call) for _ in range(extent.rounds)):.3f} ms", "PyTorch")


def _theirs(ordinal, a, b):
    """The same of PyTorch."""
    with suppress(ImportError):
        import torch

        if torch.cuda.is_available():
            x, y = (torch.from_numpy(each).to(f"cuda:{ordinal}") for each in (a, b))
            blocks = [x[first : first + 16, None] for first in range(0, len(x), 16)]
            yield "plus_times", lambda: x @ y.T
            yield "l1", lambda: torch.cdist(x, y, p=1.0)
            yield "lp, p = 3", lambda: torch.cdist(x, y, p=3.0)
            yield "min_plus", lambda: [(each + y).amin(-1) for each in blocks]
            yield "log_sum_exp", lambda: [(each + y).logsumexp(-1) for each in blocks]


def _torch_ms(call):
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)
