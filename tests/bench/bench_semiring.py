"""Semirings on the CPU against PyTorch, SciPy, NumPy and, if installed, KeOps, all cores of each: 2,048 x 2,048 x 256, float32.

    python tests/bench/run.py semiring        needs PyTorch and 20 seconds on two cores; KeOps compiles for a minute

KeOps gives sums over one side and no matrix: its rows compare sums of rows. kermac and genbmm need a GPU, where
`python tests/gpu/report.py gpu.json --part semirings` measures evo.
PyTorch has a minimum or a log-sum-exp of sums only by broadcasting: here in blocks of rows, of the faster of two sizes.
"""

import time
import tracemalloc

import numpy as np

SIZE, DEPTH = 2048, 256


def seconds(function, num_rounds=3):
    """The best of several times, after one round outside the timed part."""
    function()
    times = []
    for _ in range(num_rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def fastest(*functions):
    """The best time of the fastest way; slow ones run once."""
    return min(seconds(function, 1) for function in functions)


def in_blocks(reduce, a, b, size):
    """A reduction over the last axis of a[:, None] + b, some rows at a time."""
    import torch

    def run():
        return torch.cat([reduce(a[first : first + size, None] + b) for first in range(0, len(a), size)])

    return run


def rows():
    """Ratios of time, theirs by ours; then backward by forward, and memory beyond inputs and output."""
    import torch
    from scipy.spatial.distance import cdist

    from evo.semiring import zoo

    torch.manual_seed(0)
    a, b = torch.randn(SIZE, DEPTH), torch.randn(SIZE, DEPTH)
    x, y = a.numpy(), b.numpy()

    def row(name, theirs, ours, at_least, aim):
        return f"{name}: {theirs * 1e3:,.0f} ms by {ours * 1e3:,.0f} ms", f"{theirs / ours:.1f}x", at_least, aim

    for name, semiring, p, metric in (("L1", zoo.l1, 1.0, "cityblock"), ("Chebyshev", zoo.chebyshev, float("inf"), "chebyshev")):
        theirs = fastest(lambda p=p: torch.cdist(a, b, p=p), lambda metric=metric: cdist(x, y, metric))
        yield row(f"{name}, best of torch.cdist and SciPy", theirs, seconds(lambda s=semiring: s(a, b)), "2x", "6x")
    start = time.perf_counter()
    torch.cdist(a, b, p=3.0)
    yield row("Lp, p = 3, torch.cdist", time.perf_counter() - start, seconds(lambda: zoo.lp(a, b, p=3.0)), "2x", "6x")
    theirs = fastest(*(in_blocks(lambda each: each.amin(-1), a, b, size) for size in (4, 16)))
    yield row("min-plus, torch in blocks", theirs, seconds(lambda: zoo.min_plus(a, b)), "8x", "25x")
    theirs = fastest(*(in_blocks(lambda each: each.logsumexp(-1), a, b, size) for size in (1, 4)))
    yield row("log-sum-exp, torch in blocks", theirs, seconds(lambda: zoo.log_sum_exp(a, b)), "8x", "25x")
    far = a.roll(1, 0) + 1000 * torch.eye(SIZE, DEPTH), b + 1000 * torch.eye(SIZE, DEPTH).roll(1, 1)  # exponentials underflow
    yield row("log-sum-exp, online", theirs, seconds(lambda: zoo.log_sum_exp(*far), 1), "-", "-")
    yield row("plus-times, torch.matmul", seconds(lambda: a @ b.T), seconds(lambda: zoo.plus_times(a, b)), "0.5x", "0.8x")
    for name, theirs, ours in _keops(x, y):
        yield row(f"{name}, rows' sums, KeOps", seconds(theirs), seconds(ours), "-", "-")
    for name, semiring in (("L1", zoo.l1), ("min-plus", zoo.min_plus), ("log-sum-exp", zoo.log_sum_exp), ("L2", zoo.l2)):
        left, right = a.clone().requires_grad_(), b.clone().requires_grad_()
        forward = seconds(lambda s=semiring, left=left, right=right: s(left, right), 1)
        found, weights = semiring(left, right), torch.randn(SIZE, SIZE)
        backward = seconds(lambda found=found, weights=weights: found.backward(weights, retain_graph=True), 1)
        yield (
            f"{name}, backward {backward * 1e3:,.0f} ms by forward {forward * 1e3:,.0f} ms",
            f"{backward / forward:.1f}x",
            "3x",
            "2x",
        )
    for name in ("l1", "log_sum_exp"):
        yield f"memory beyond inputs and output, {name}", f"{_extra_mib(name):.0f} MiB", "64 MiB", "8 MiB"


def _keops(x, y):
    """Sums of rows by KeOps and by evo: of L1 distances and of a Gaussian kernel."""
    try:
        from pykeops.numpy import LazyTensor
    except ImportError:
        return
    from evo.semiring import zoo

    left, right = LazyTensor(x[:, None]), LazyTensor(y[None])
    yield "L1", lambda: (left - right).abs().sum(-1).sum(1), lambda: zoo.l1(x, y).sum(1)
    squares = ((left - right) ** 2).sum(-1)
    yield "Gaussian", lambda: (-squares * 2.0**-9).exp().sum(1), lambda: zoo.gaussian(x, y, gamma=2.0**-9).sum(1)


def _extra_mib(name):
    """The peak of what a call allocates in NumPy, which is all that it does, without the result."""
    from evo.semiring import zoo

    a = np.random.default_rng(0).normal(size=(SIZE, DEPTH)).astype(np.float32)
    tracemalloc.start()
    found = getattr(zoo, name)(a, a)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (peak - found.nbytes) / 2**20


if __name__ == "__main__":
    for each in rows():
        print(*each, sep=" | ", flush=True)
