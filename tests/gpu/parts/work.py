"""The common part of the works of the GPU's report: their extent, rows and evaluators.

A work is a generator of rows, given a device's number and how much to do. What is wrong it raises.
"""

import json
from contextlib import closing
from importlib import import_module
from types import SimpleNamespace

from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.kernel import nvrtc

# Exact instructions of formulas and three approximate ones: what is timed.
MIX = tuple(f"{name}_ftz_f32" for name in ("add", "sub", "mul", "fma_rn", "min", "max", "sin_approx", "ex2_approx", "rcp_approx"))


# How much is done: points beside the edges for each instruction; random programs of a check, and points at which they run;
# points and instructions of timed kernels, and rounds of a figure; programs and points of batches from end to end, and most
# seconds of a figure; rows of each side of a timed semiring, and their length.
FULL = SimpleNamespace(
    num_random=1 << 20, num_programs=2_000, points=(1, 31, 1023, 1024, 1025, 100_001),
    timed_points=(20, 1 << 10, 1 << 16, 1 << 20, 1 << 24), lengths=(10, 32, 100), rounds=5,
    batches=(1 << 12, 1 << 14, 1 << 16, 1 << 18), batch_points=(1_000, 16_384, 262_144, 2_500_000), cell_s=1.5,
    semiring=(2048, 256),
)  # fmt: skip
# Each case once, small: for a GPU that is emulated.
SHORT = SimpleNamespace(
    num_random=1 << 12, num_programs=24, points=(1, 31, 1023, 1024, 1025, 5_001),
    timed_points=(20, 1 << 10), lengths=(10,), rounds=1, batches=(16,), batch_points=(20, 1_025), cell_s=60.0,
    semiring=(20, 9),
)  # fmt: skip


def run(given, report):
    """Does a work in the process of a `device_child`: its name, the device's number, and whether it is to be short."""
    work, ordinal, is_short = given
    module, _, name = work.partition(":")
    for step in getattr(import_module(f"{__package__}.{module}"), name)(ordinal, SHORT if is_short else FULL):
        report(step)


def row(what, text, at="", **figures):
    """A row of the report. `at` is its column in a table; figures go to the file alone."""
    return json.dumps({"what": what, "at": at, "text": text, **figures})


def gpu_evaluator(ordinal, language, task, lane, names, cache=None, **options):
    """A CUDA evaluator of this lane, for programs of these instructions, to be used in a `with`."""
    given = EvaluationOptions.model_validate({"device": ordinal, "lane": lane, **options})
    return closing(CudaEvaluator(language, task, given, cache, instructions=names))


def has_nvrtc():
    """Return whether tasks' own kernels can be compiled here."""
    try:
        nvrtc.version()
    except nvrtc.NvrtcMissing:
        return False
    return True
