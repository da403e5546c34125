"""Every instruction of the wide set that has a meaning on the CPU, on CPU and GPU: edge values and many random points."""

import os

import numpy as np
import pytest
from float_edges import random_bits

from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.agreement import (
    BOUNDS,
    LANGUAGE,
    NAMES,
    Operands,
    compare,
    edge_columns,
    output_of,
    points_of,
    programs_of,
)
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions

# The emulator shares no code with either side, but is slow.
NUM_RANDOM = 1 << 18 if "EVO_EMULATED_GPU" in os.environ else 1 << 20


@pytest.fixture(scope="module")
def results():
    """name -> (points, bits on the CPU, bits on the GPU) of every instruction that the CPU knows."""
    points = points_of([np.concatenate([edges, random_bits(seed, NUM_RANDOM)]) for seed, edges in enumerate(edge_columns(), 1)])
    task = Operands({name: values[:64] for name, values in points.items()})
    found = {}
    cpu, gpu = CpuEvaluator(LANGUAGE, task), CudaEvaluator(LANGUAGE, task, EvaluationOptions())
    for first in range(0, len(NAMES), 32):  # a few at a time: each has three outputs at all points
        names = NAMES[first : first + 32]
        outputs = [evaluator.outputs(programs_of(names), points) for evaluator in (cpu, gpu)]
        for i, name in enumerate(names):
            found[name] = (points, *(each[output_of(name)][i].view(np.uint32).copy() for each in outputs))
    cpu.close()
    gpu.close()
    return found


@pytest.mark.parametrize("name", [name for name in NAMES if name not in BOUNDS])
def test_an_exact_instruction_has_the_same_bits(results, name):
    assert compare(name, *results[name]).problem is None


@pytest.mark.parametrize("name", BOUNDS)
def test_an_approximate_instruction_is_as_near_as_the_isa_promises(results, name):
    agreement = compare(name, *results[name])
    assert agreement.problem is None
    assert agreement.num_compared > NUM_RANDOM // 8
