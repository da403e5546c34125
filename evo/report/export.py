"""Elites as PTX, CUDA, C, Python, SymPy, LaTeX and JSON, each compared with the archive before it is written.

Owns the formats, what each comparison is made with, and its tolerance. Knows nothing of how programs become expressions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.assembler import assembler_options, compiler_options
from evo.compile.language import encode_language
from evo.compile.request import CompileRequest, pack_programs, render
from evo.errors import UserError
from evo.evaluate import Evaluation
from evo.evaluate.backends import CPU, CUDA, why_no_compiler
from evo.evaluate.chunks import ChunkScorer
from evo.evaluate.cpu import without_cpu_meaning
from evo.kernel import nvrtc
from evo.language.batch import Batch
from evo.language.expression import Expression, Unsupported, expression_of, infix
from evo.language.program import Language, format_program, word
from evo.language.source import c_source, cuda_source, python_source
from evo.native import ptx_vm
from evo.native.stack_ptx import NodeKind, WordType
from evo.report import run_export
from evo.report.check import TOLERANCE
from evo.report.show import row_of_elite
from evo.report.sympy_text import latex_text, run_sympy, sympy_text
from evo.run.problem import Problem, load_problem
from evo.run.run import Run
from evo.storage.files import write_outputs

# Relative to max(1, |objective|), or to a measure's range. Exports that compute what the archive was made with may differ in the
# last bits of the task's own arithmetic, which another machine or version of NumPy changes.
EXACT_TOLERANCE = 1e-9

_OPT_LEVEL = 3


@dataclass(frozen=True)
class Export:
    """Texts by file name, and lines that say what could not be checked here. is_list: one text holds all programs."""

    texts: dict[str, str]
    notes: list[str]
    is_list: bool = False


@dataclass(frozen=True)
class _Elite:
    """A row of the archive."""

    name: str
    batch: Batch
    objective: float
    measures: NDArray[np.float64]
    expression: Expression

    @property
    def num_instructions(self) -> int:
        return int(self.batch.num_instructions[0])


class _Job:
    """The elites of a run and what their exports are compared with."""

    def __init__(self, run: Run, arch: str):
        self.run = run
        self.arch = arch
        self.problem: Problem = run.search.problem
        self.notes: dict[str, None] = {}
        self._scorer: ChunkScorer | None = None
        self.instructions = {i.name for i in self.problem.language.instruction_set.instructions}
        self.unsupported = set(without_cpu_meaning(self.problem.language, sorted(self.instructions)))

    @property
    def scorer(self) -> ChunkScorer:
        self._scorer = self._scorer or ChunkScorer(self.problem.language, self.problem.task)
        return self._scorer

    def elite(self, row: int) -> _Elite:
        elites, language = self.run.search.elites(), self.problem.language
        batch = Batch(elites.solution, elites.hash, elites.num_instructions)[row : row + 1]
        name = self.run.search.layout.cell_name(int(elites.cell[row]))
        expression = expression_of(language, batch.words[0])
        return _Elite(name, batch, float(elites.objective[row]), elites.measures[row], expression)

    def front(self) -> list[int]:
        """Rows of the elites that no other beats in objective with as few instructions, fewest first."""
        elites = self.run.search.elites()
        rows: list[int] = []
        for row in np.lexsort((elites.cell, -elites.objective, elites.num_instructions)):
            if not rows or elites.objective[row] > elites.objective[rows[-1]]:
                rows.append(int(row))
        return rows

    def inputs(self) -> tuple[list[NDArray[Any]], int]:
        """Each input at the task's points."""
        points = self.scorer.points
        arrays = [array for array in points.inputs if array is not None]
        return [np.broadcast_to(array, points.num_points) for array in arrays], points.num_points

    def score(self, elite: _Elite, outputs: list[NDArray[Any]]) -> Evaluation:
        """What the task gives for an export's outputs, one array for each."""
        num_points = self.scorer.points.num_points
        stored = ptx_vm.empty((1, len(outputs), num_points), np.float32)
        for i, output in enumerate(outputs):
            is_float = self.problem.language.outputs[i][1] == "f32"
            values = np.asarray(output, np.float32).view(np.uint32) if is_float else np.asarray(output).view(np.uint32)
            stored[0, i] = np.broadcast_to(values, num_points).view(np.float32)
        targets = self.scorer.points.targets
        if targets is not None:
            return self.scorer.judge(self._sums(stored[0], targets), elite.batch.num_instructions)
        return self.scorer.judge(stored, elite.batch.num_instructions)

    def _sums(self, outputs: NDArray[Any], targets: NDArray[np.float32]) -> NDArray[np.void]:
        """The reduction's sums, by a program that copies its inputs: the same arithmetic as in a search."""
        language = self.problem.language
        copies = Language(language.instruction_set, language.outputs, language.outputs, language.limits)
        words = [word(WordType.INPUT, payload=i) for i in reversed(range(len(outputs)))] + [word(WordType.RETURN)]
        machine = ptx_vm.VirtualMachine(copies.lowering)
        return machine.reduce(np.array([words], np.uint64), list(outputs), targets)

    def compare(self, elite: _Elite, scores: Evaluation, tolerance: float, format_name: str) -> None:
        """Raises UserError if scores are not those of the archive."""
        pairs = [("objective", float(scores.objective[0]), elite.objective, max(1.0, abs(elite.objective)))]
        for i, (name, (low, high)) in enumerate(self.problem.task.measures.items()):
            pairs.append((name, float(scores.measures[0, i]), float(elite.measures[i]), high - low))
        for name, found, archived, scale in pairs:
            if not abs(found - archived) <= tolerance * scale:
                raise UserError(
                    f"{self.run.run_dir.path}: cell {elite.name}: the {format_name} export has {name} {found:.9g}, the archive "
                    f"{archived:.9g}; they may differ by {tolerance * scale:.3g}; nothing was written"
                )

    @property
    def exact_tolerance(self) -> float:
        """Of exports that compute what the virtual machine computes."""
        return EXACT_TOLERANCE if self.problem.backend is CPU else TOLERANCE

    def own_scores(self, elite: _Elite) -> None:
        """Compares the program itself: on a GPU if there is one, otherwise on the CPU if it can run it."""
        if CUDA.why_unusable() is None:
            on_gpu = load_problem(self.problem.config, CUDA)
            try:
                self.compare(elite, on_gpu.evaluator.evaluate(elite.batch), TOLERANCE, "PTX")
            finally:
                on_gpu.close()
        elif elite.expression.instructions().keys() & self.unsupported:
            self.notes["not run: this needs a GPU, and none can be used here"] = None
        else:
            self.notes["assembled but not run on a GPU: none can be used here; the CPU ran the program itself"] = None
            scores = self.scorer.score(elite.batch.words, elite.batch.num_instructions)
            self.compare(elite, scores, self.exact_tolerance, "PTX")

    def assemble(self, ptx: bytes) -> None:
        if reason := why_no_compiler():
            self.notes[f"not assembled: {reason}"] = None
            return
        from evo.native import nvptxcompiler

        try:
            nvptxcompiler.compile(ptx, compiler_options(self.arch, assembler_options(_OPT_LEVEL)))
        except nvptxcompiler.CompileError as error:
            raise UserError(f"--arch {self.arch}: the PTX does not assemble: {error}") from error

    def comment(self, elite: _Elite) -> str:
        """What the head of an export says."""
        measures = zip(self.problem.task.measures, elite.measures, strict=True)
        text = "".join(f"\n{name} {value:.9g}" for name, value in [("objective", elite.objective), *measures])
        lines = infix(elite.expression).rstrip("\n")
        return f"Cell {elite.name} of a run of evo, {elite.num_instructions} instructions.\n{text}\n\n{lines}\n"


# ---- formats -------------------------------------------------------------------------------------------------------------


def _export_ptx(job: _Job, elite: _Elite) -> str:
    words, lengths, hashes = pack_programs(elite.batch.words, elite.batch.hashes)
    ptx = render(CompileRequest(words, lengths, hashes, encode_language(job.problem.language), job.arch, 1))
    job.assemble(ptx)
    job.own_scores(elite)
    head = "".join(f"// {line}".rstrip() + "\n" for line in job.comment(elite).splitlines())
    return head + ptx.decode()


def _export_cuda(job: _Job, elite: _Elite) -> str:
    text = cuda_source(elite.expression, job.comment(elite))
    types = ["float" if kind == "f32" else "unsigned int" for _, kind in (*elite.expression.inputs, *elite.expression.outputs)]
    num_inputs = len(elite.expression.inputs)
    arguments = [f"{'*' if i < num_inputs else ''}({kind} *)a[{i}]" for i, kind in enumerate(types)]
    kernel = f'extern "C" __global__ void use(void **a) {{ program({", ".join(arguments)}); }}\n'
    options = [f"--gpu-architecture={job.arch.replace('sm_', 'compute_')}", "--fmad=false"]
    try:
        job.assemble(nvrtc.compile(f"{text}\n{kernel}".encode(), "export.cu", {}, options))
    except nvrtc.NvrtcMissing as error:
        job.notes[f"CUDA not compiled: {error}"] = None
        _export_ptx(job, elite)
    except nvrtc.CompileError as error:
        raise UserError(f"cell {elite.name}: NVRTC rejects the CUDA export: {error}") from error
    job.own_scores(elite)
    return text


def _export_c(job: _Job, elite: _Elite) -> str:
    text = c_source(elite.expression, job.comment(elite))
    inputs, num_points = job.inputs()
    outputs = run_export.run_c(text, inputs, num_points, len(elite.expression.outputs))
    if outputs is None:
        job.notes["C not compiled: no cc, gcc or clang here; install one to have the export checked"] = None
    else:
        job.compare(elite, job.score(elite, outputs), job.exact_tolerance, "c")
    return text


def _export_python(job: _Job, elite: _Elite) -> str:
    text = python_source(elite.expression, job.comment(elite))
    job.compare(elite, job.score(elite, run_export.run_python(text, job.inputs()[0])), job.exact_tolerance, "python")
    return text


def _export_sympy(job: _Job, elite: _Elite) -> str:
    _compare_sympy(job, elite)
    return sympy_text(elite.expression, job.comment(elite))


def _export_latex(job: _Job, elite: _Elite) -> str:
    _compare_sympy(job, elite)
    return latex_text(elite.expression)


def _compare_sympy(job: _Job, elite: _Elite) -> None:
    inputs, num_points = job.inputs()
    outputs = run_sympy(elite.expression, inputs, num_points)
    job.compare(elite, job.score(elite, [np.asarray(output) for output in outputs]), TOLERANCE, "SymPy")


def _export_json(job: _Job, elite: _Elite) -> str:
    """A program's record; several are joined by `export_elites`."""
    expression = elite.expression
    values: list[dict[str, Any]] = []
    for value in expression.values:
        if value.kind == NodeKind.INPUT:
            values.append({"input": value.name, "type": value.type})
        elif value.kind == NodeKind.CONSTANT:
            values.append({"bits": value.bits, "type": value.type})
        elif value.kind == NodeKind.PTX and not value.has_vectors:
            values.append({"ptx": value.ptx, "operands": value.operands, "type": value.type})
        else:
            raise Unsupported(value.name)
    record = {
        "cell": elite.name,
        "objective": elite.objective,
        "measures": dict(zip(job.problem.task.measures, elite.measures.tolist(), strict=True)),
        "num_instructions": elite.num_instructions,
        "program": " ".join(format_program(job.problem.language, elite.batch.words[0]).split()),
        "infix": infix(expression).splitlines(),
        "inputs": dict(expression.inputs),
        "values": values,
        "outputs": {name: result for (name, _), result in zip(expression.outputs, expression.results, strict=True)},
    }
    text = json.dumps(record)
    inputs, _ = job.inputs()
    job.compare(elite, job.score(elite, run_export.run_json(text, inputs)), job.exact_tolerance, "json")
    return text


@dataclass(frozen=True)
class _Format:
    suffix: str
    export: Callable[[_Job, _Elite], str]
    needs_cpu: bool  # checked by running it on the CPU


FORMATS = {
    "ptx": _Format(".ptx", _export_ptx, needs_cpu=False),
    "cuda": _Format(".cu", _export_cuda, needs_cpu=False),
    "c": _Format(".c", _export_c, needs_cpu=True),
    "python": _Format(".py", _export_python, needs_cpu=True),
    "sympy": _Format(".py", _export_sympy, needs_cpu=True),
    "latex": _Format(".tex", _export_latex, needs_cpu=True),
    "json": _Format(".json", _export_json, needs_cpu=True),
}


def export_elites(run: Run, format_name: str, *, cell: str | None = None, front: bool = False, arch: str = "sm_90") -> Export:
    """The text of an elite, or of each on the front, compared with the archive.

    Args:
        cell: of the elite; None: the best.
        front: all elites that no other beats in objective with as few instructions.
        arch: GPU architecture of PTX and CUDA.

    Raises:
        UserError: the archive is empty, the cell is, a program cannot be written in the format, or an export disagrees.
    """
    job = _Job(run, arch)
    if not len(run.search.elites()):
        raise UserError(f"{run.run_dir.path}: the archive is empty")
    elites = [job.elite(row) for row in (job.front() if front else [row_of_elite(run, cell)])]
    texts = {f"{e.num_instructions:03d}_instructions": text for e, text in _export_all(job, elites, format_name)}
    suffix = FORMATS[format_name].suffix
    if format_name == "json":
        document = {"programs": [json.loads(text) for text in texts.values()]}
        text = json.dumps(document, indent=1) + "\n"
        return Export({f"programs{suffix}": text}, list(job.notes), is_list=True)
    return Export({f"{name}{suffix}": text for name, text in texts.items()}, list(job.notes))


def _export_all(job: _Job, elites: list[_Elite], format_name: str) -> Iterator[tuple[_Elite, str]]:
    chosen = FORMATS[format_name]
    for elite in elites:
        lacking = sorted(elite.expression.instructions().keys() & job.unsupported)
        if chosen.needs_cpu and lacking:
            raise UserError(
                f"--format {format_name}: cell {elite.name} uses {lacking[0]}, which has no CPU semantics; use ptx or cuda"
            )
        try:
            yield elite, chosen.export(job, elite)
        except Unsupported as error:
            raise UserError(
                f"--format {format_name}: cell {elite.name} uses {error}, which this format has no text for"
            ) from error


def write_export(export: Export, output: Path, *, front: bool) -> list[Path]:
    """Writes an export's file, or the files of a front into a folder; gives their paths.

    Raises:
        UserError: a file cannot be written.
    """
    into_folder = output.is_dir() or (front and not export.is_list)
    paths = {(output / name if into_folder else output): text.encode() for name, text in export.texts.items()}
    write_outputs(paths, inputs=())
    return list(paths)
