"""The interpreter whose values stay in registers, over a stand-in: it gives the bits of the CPU and of the other kernel."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

import evo
from evo.evaluate.cpu import CpuEvaluator
from evo.evaluate.cuda.agreement import EDGES, NAMES, different_rows, results_of
from evo.evaluate.cuda.choice import COMPILE, INTERPRET
from evo.evaluate.cuda.device_tests import random_programs
from evo.evaluate.cuda.evaluator import CudaEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language, parse_program
from evo.native.stack_ptx import NodeKind

DEFAULT = shipped_instruction_set("default")
MIX_A = tuple(f"{name}_ftz_f32" for name in ("add", "sub", "mul", "fma_rn", "min", "max", "neg", "abs"))
CONSTANTS = ("0x00000001", "0x7fc00000", "0x7f800000", "0x80000000", "0x3fc00000", "0xff800000")


class Sums(evo.Task):
    """Inputs whose values are edges, such as NaN and subnormals, and plain numbers; sums that scores show, if asked for."""

    measures = dict.fromkeys(("y", "t", "yy", "tt", "yt", "worst", "nonfinite"), (-1.0, 1.0))

    def __init__(self, num_points: int, inputs: str, outputs: str, *, reduces: bool = True, is_weighted: bool = False):
        self.inputs, self.outputs = dict.fromkeys(inputs, "f32"), dict.fromkeys(outputs, "f32")
        self.reduction = "regression" if reduces else None
        rng = np.random.default_rng(num_points)
        self.values = rng.normal(size=(9, num_points)).astype(np.float32)
        self.values[:, 1100:] = rng.choice(EDGES, self.values[:, 1100:].shape).view(np.float32)
        self.values[5:, :] = np.nan_to_num(rng.normal(size=(4, num_points)))
        self.values[5, 40::900] = np.inf
        self.is_weighted = is_weighted

    def points(self):
        return dict(zip(self.inputs, self.values, strict=False))

    def targets(self):
        return dict(zip(self.outputs, self.values[5:], strict=False))

    def weights(self):
        return np.abs(self.values[8]) if self.is_weighted else None

    def score(self, sums, programs):
        columns = (sums.sum_y, sums.sum_t, sums.sum_yy, sums.sum_tt, sums.sum_yt, sums.max_abs_error, sums.num_nonfinite)
        total, *measures = (column @ np.arange(1.0, 1.0 + len(self.outputs)) for column in (sums.sum_squared_error, *columns))
        return evo.Scores(total, np.stack(measures, axis=1))


@pytest.fixture
def evaluators(emulated_gpu):
    """Gives for a task and its instructions the language and evaluators with vectors in registers and in shared memory."""
    made = []

    def make(task: evo.Task, names) -> tuple[Language, CudaEvaluator, CudaEvaluator]:
        language = Language(DEFAULT, tuple(task.inputs.items()), tuple(task.outputs.items()))
        for registers in (True, False):
            options = EvaluationOptions(compile_workers=1, threads=2, lane=INTERPRET, registers=registers)
            made.append(CudaEvaluator(language, task, options, instructions=names))
        return language, made[-2], made[-1]

    yield make
    for evaluator in made:
        evaluator.close()
    assert not any(emulated_gpu.leaked().values())


def programs(language: Language, names, count: int) -> np.ndarray:
    """Random ones, whose every fifth word is a constant."""
    words = random_programs(language, names, count)
    drawn = np.random.default_rng(3)
    bits = np.array([int(text, 16) for text in CONSTANTS], np.uint64)
    constant = parse_program(language, "0.5", "test", 4)[0] & np.uint64(0xFFFFFFFF)
    chosen = (words != words[0, -1]) & (drawn.random(words.shape) < 0.2) & (np.arange(words.shape[1]) < 20)
    return np.where(chosen, constant | bits[drawn.integers(0, len(bits), words.shape)] << np.uint64(32), words)


@pytest.mark.parametrize(
    ("num_points", "inputs", "outputs", "reduces"),
    [(1, "a", "f", True), (33, "ab", "fg", True), (1025, "abc", "f", True), (2300, "abcd", "f", True), (70, "ab", "fgh", False)],
)
def test_programs_give_the_bits_of_the_cpu(evaluators, emulated_gpu, monkeypatch, num_points, inputs, outputs, reduces):
    """Also of programs that a block runs one after the other, more than are summed at once."""
    monkeypatch.setattr("evo.evaluate.cuda.interpreter_kernels.THREADS_PER_MULTIPROCESSOR", 1)
    emulated_gpu.order = "warps reversed"
    task = Sums(num_points, inputs, outputs, reduces=reduces, is_weighted=num_points == 33)
    language, registers, _ = evaluators(task, MIX_A)
    assert registers._interpreter._kernel.layout.in_registers
    words = programs(language, MIX_A, 21)
    if not reduces:
        found, expected = (one.outputs(words, task.points()) for one in (registers, CpuEvaluator(language, task, 1)))
        assert not different_rows(found.values(), expected.values()).size
        return
    batch = Batch.analyze(language.lowering, words)
    found, expected = registers.evaluate(batch), CpuEvaluator(language, task, 1).evaluate(batch)
    assert found.stats.lanes == {INTERPRET: len(batch), COMPILE: 0} and (expected.status == 0).any()
    assert not different_rows(results_of(found), results_of(expected)).size


class Mixed(evo.Task):
    """Floats and integers, in and out, most of them edges."""

    inputs = {"x": "f32", "y": "f32", "i": "u32"}
    outputs = {"f": "f32", "u": "u32"}
    measures = {"unused": (0.0, 1.0)}

    def points(self):
        x, y = (grid.ravel()[::9] for grid in np.meshgrid(EDGES, EDGES))
        return {"x": x.view(np.float32), "y": y.view(np.float32), "i": np.arange(len(x), dtype=np.uint32) * np.uint32(0x9E3779B9)}


def test_every_instruction_in_registers_gives_the_bits_of_the_other_kernel(evaluators):
    task = Mixed()
    default = {instruction.name for instruction in DEFAULT.instructions}
    names = [name for name in NAMES if name in default and "philox" not in name]
    language, registers, shared = evaluators(task, names)
    words = programs(language, names, 500)
    live = {
        DEFAULT.instructions[node["payload"]].name
        for row in words
        for node in language.lowering.lower(row).nodes
        if node["kind"] == NodeKind.PTX
    }
    assert live == set(names)
    assert [one._interpreter._kernel.layout.in_registers for one in (registers, shared)] == [True, False]
    found, expected = (one.outputs(words, task.points()) for one in (registers, shared))
    assert not different_rows(found.values(), expected.values()).size


def test_no_programs_have_no_results(evaluators):
    language, registers, _ = evaluators(Sums(8, "ab", "f"), MIX_A)
    evaluation = registers.evaluate(Batch.analyze(language.lowering, np.zeros((0, 10), np.uint64)))
    assert evaluation.status.shape == (0,) and evaluation.measures.shape == (0, 7)


@pytest.mark.parametrize("inputs", ["abcd", "abcde"])
def test_more_vectors_than_registers_have_room_for_are_in_shared_memory(evaluators, inputs):
    language, registers, shared = evaluators(Sums(40, inputs, "f"), MIX_A)
    assert registers._interpreter._kernel.layout.in_registers == (len(inputs) == 4)
    batch = Batch.analyze(language.lowering, programs(language, MIX_A, 9))
    assert not different_rows(*(results_of(one.evaluate(batch)) for one in (registers, shared))).size
