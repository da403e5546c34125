"""Several equal GPUs of a machine: one run feeds them all, or each of several processes takes one.

Owns which GPUs a process uses, and the evaluator that hands parts of a batch to the next free one. Results are those of one GPU,
since they depend on the program alone. Knows nothing of how a GPU runs programs.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.request import CompileExecutor
from evo.errors import UserError
from evo.evaluate import Evaluation, Stats, join
from evo.evaluate.compilers import open_compilers
from evo.evaluate.cuda.device import MIN_CAPABILITY, DeviceInfo, Probe, choose_device
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.language.batch import Batch
from evo.storage.disk_cache import cache_folder
from evo.storage.files import try_lock
from evo.task import Task
from evo.workers import WAKE_S

# A batch is cut into this many parts for each GPU, since programs differ in length, unless they get too small.
_PARTS_EACH = 2
_MIN_PROGRAMS = 256

_taken: dict[str, IO[bytes]] = {}  # locks that this process holds, as long as it lives, by the UUID of a GPU


def chosen_devices(probed: Probe, device: int | str | Sequence[int] | None, *, is_shared: bool) -> list[DeviceInfo]:
    """The GPUs that this process uses.

    Args:
        device: `evaluation.device` of a config.
        is_shared: other processes beside this one use them too, so it takes the next one that none of them has.

    Raises:
        UserError: one cannot be used, or they are not equal.
    """
    first = choose_device(probed, None)
    devices = [first]
    if isinstance(device, str) or (device is None and is_shared):
        usable = [info for info in probed.devices if info.capability >= MIN_CAPABILITY]
        devices = [info for info in usable if device or _kind(info) == _kind(first)]
    elif device is not None:
        devices = [choose_device(probed, ordinal) for ordinal in dict.fromkeys([device] if isinstance(device, int) else device)]
    kinds = list(dict.fromkeys(map(_kind, devices)))
    if len(kinds) > 1:
        raise UserError(f"{kinds[0]} and {kinds[1]} differ in last bits; give the numbers of equal GPUs", "evaluation.device")
    return [_next_free(devices)] if is_shared and len(devices) > 1 else devices


def _kind(info: DeviceInfo) -> str:
    return f"{info.name} ({info.architecture})"


def _next_free(devices: list[DeviceInfo]) -> DeviceInfo:
    """The first that no other process of this machine has taken; if all are, one of them."""
    folder = cache_folder() / "gpus"
    folder.mkdir(parents=True, exist_ok=True)
    for info in sorted(devices, key=lambda device: device.uuid not in _taken):
        if info.uuid not in _taken:
            lock = open(folder / f"{info.uuid}.lock", "wb")  # noqa: SIM115 - held until the process ends
            if not try_lock(lock):
                lock.close()
                continue
            _taken[info.uuid] = lock
        return info
    return devices[os.getpid() % len(devices)]


class SeveralEvaluator:
    """An evaluator of each of several equal GPUs, as one.

    Args:
        task: whose programs they run.
        settings: with what they share.
        devices: the GPUs.
        make: the evaluator of a GPU, given its settings and what compiles for all of them.

    Raises:
        UserError: one of them cannot be used.
    """

    uses_lowered = True

    def __init__(
        self,
        task: Task,
        settings: EvaluationOptions,
        devices: Sequence[DeviceInfo],
        make: Callable[[EvaluationOptions, CompileExecutor], CudaEvaluator],
    ):
        self._task = task
        num_threads = max(1, (settings.threads or len(os.sched_getaffinity(0))) // len(devices))
        with ExitStack() as opened:  # closes them if a later step fails
            self._executor = open_compilers(settings)
            opened.callback(self._executor.shutdown, cancel_futures=True)
            self._evaluators: list[CudaEvaluator] = []
            for info in devices:
                device_settings = settings.model_copy(update={"device": info.ordinal, "threads": num_threads})
                self._evaluators.append(make(device_settings, self._executor))
                opened.callback(self._evaluators[-1].close)
            self._threads = opened.enter_context(ThreadPoolExecutor(len(devices), "gpu"))
            self._opened = opened.pop_all()

    @property
    def device(self) -> str:
        """The name that all of them have."""
        return self._evaluators[0].device

    def evaluate(self, batch: Batch) -> Evaluation:
        """As `Evaluator.evaluate`. Seconds of a stage are the mean of the GPUs'."""
        count = len(self._evaluators)
        size = max(_MIN_PROGRAMS, -(-len(batch) // (_PARTS_EACH * count)))
        # A list's iterator is safe in threads.
        waiting = iter([slice(first, first + size) for first in range(0, max(1, len(batch)), size)])
        evaluations: dict[int, Evaluation] = {}

        def work(evaluator: CudaEvaluator) -> None:
            try:
                while (part := next(waiting, None)) is not None:
                    evaluations[part.start] = evaluator.evaluate(batch[part])
            except BaseException:
                list(waiting)  # stops all GPUs
                raise

        futures = [self._threads.submit(work, evaluator) for evaluator in self._evaluators]
        try:
            while wait(futures, WAKE_S).not_done:  # without a limit, Ctrl-C in another thread would not wake this one
                pass
        finally:
            list(waiting)
        for future in futures:
            future.result()
        whole = join([evaluations[first] for first in sorted(evaluations)], len(self._task.measures))
        sums = ("_threads", "_workers")
        times_s = {name: seconds if name.endswith(sums) else seconds / count for name, seconds in whole.stats.times_s.items()}
        return replace(whole, stats=Stats(times_s, whole.stats.lanes, self._executor.status()))

    def outputs(self, words: NDArray[np.uint64], points: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """As `Evaluator.outputs`, on the first GPU."""
        return self._evaluators[0].outputs(words, points)

    def environment(self) -> dict[str, str | int]:
        """Facts of one GPU, and the number of GPUs."""
        return {**self._evaluators[0].environment(), "gpus": len(self._evaluators)}

    def close(self) -> None:
        """Ends the workers and frees the devices."""
        self._opened.close()
