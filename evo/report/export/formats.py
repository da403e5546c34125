"""Elites as PTX, CUDA, programs and formulas of other languages, each compared with the archive before it is written.

Owns the formats. Knows nothing of how programs become expressions, and of scores (`verify.py`).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from evo.compile.assembler import assembler_options, compiler_options
from evo.compile.language import encode_language
from evo.compile.request import CompileRequest, pack_programs, render
from evo.errors import UserError
from evo.escape import comment_lines
from evo.evaluate.backends import why_no_compiler
from evo.instructions import HALVES
from evo.kernel import nvrtc
from evo.language.dag import REAL, Dag, Node, number_of
from evo.language.formula import evaluate, formula_of
from evo.language.formula_source import excel_source
from evo.language.formula_text import display_note, infix, plain_constant, rounded
from evo.language.printer import Unsupported
from evo.language.source import c_source, cuda_source, python_source
from evo.language.tensor_source import torch_source, triton_source
from evo.native.stack_ptx import NodeKind
from evo.report.elites import program_lines
from evo.report.export.sympy_text import latex_text, sympy_text
from evo.report.export.verify import Elite, Verifier
from evo.report.pareto import file_names, front_of, row_of_elite
from evo.report.ptx_text import with_values
from evo.report.recompute import is_real, problem_here
from evo.run.run import Run

_OPT_LEVEL = 3
_LARGEST_ANGLE = 2.0**27  # in Excel


@dataclass(frozen=True)
class Export:
    """Texts by file name, and lines that say what could not be checked here. is_list: one text holds all programs."""

    texts: dict[str, str]
    notes: list[str]
    is_list: bool = False


# ---- formats -------------------------------------------------------------------------------------------------------------


def _assemble(ptx: bytes, job: Verifier) -> None:
    if reason := why_no_compiler():
        job.notes[f"not assembled: {reason}"] = None
        return
    from evo.native import nvptxcompiler

    try:
        nvptxcompiler.compile(ptx, compiler_options(job.arch, assembler_options(_OPT_LEVEL)))
    except nvptxcompiler.CompileError as error:
        raise UserError(f"--arch {job.arch}: the PTX does not assemble: {error}") from error


def _export_ptx(job: Verifier, elite: Elite) -> str:
    words, lengths, hashes = pack_programs(elite.batch.words, elite.batch.hashes)
    rendered = render(CompileRequest(words, lengths, hashes, encode_language(job.problem.language), job.arch, 1))
    ptx = with_values(rendered.decode())
    _assemble(ptx.encode(), job)
    job.own_scores(elite)
    lines = job.comment(elite).splitlines()
    lines += [
        f"The kernel reads the program's own {name}: give it ({name} - {offset!r}) / {scale!r}."
        for name, (offset, scale) in job.problem.task.input_scaling().items()
    ]
    lines += [
        f"The kernel stores the program's own {name}, in float32: use {offset!r} + {scale!r} * {name}."
        for name, (offset, scale) in elite.scaling.items()
    ]
    if elite.scaling:
        lines.append(f"At the task's points that is within {job.float32_error(elite):.1e} standard deviations of the formula.")
    return "".join(f"{line}\n" for line in comment_lines("\n".join(lines), "// ")) + ptx


def _export_cuda(job: Verifier, elite: Elite) -> str:
    expression = elite.expression
    text = cuda_source(expression, job.comment(elite))
    kinds = [kind for _, kind in (*expression.inputs, *expression.outputs)]
    types = [{"f32": "float", REAL: "double"}.get(kind, "unsigned int") for kind in kinds]
    num_inputs = len(expression.inputs)
    arguments = [f"{'*' if i < num_inputs else ''}({kind} *)a[{i}]" for i, kind in enumerate(types)]
    kernel = f'extern "C" __global__ void use(void **a) {{ program({", ".join(arguments)}); }}\n'
    options = [f"--gpu-architecture={job.arch.replace('sm_', 'compute_')}", "--fmad=false"]
    try:
        _assemble(nvrtc.compile(f"{text}\n{kernel}".encode(), "export.cu", {}, options), job)
    except nvrtc.NvrtcMissing as error:
        job.notes[f"CUDA not compiled: {error}"] = None
        _export_ptx(job, elite)
    except nvrtc.CompileError as error:
        raise UserError(f"cell {elite.name}: NVRTC rejects the CUDA export: {error}") from error
    if is_real(expression):
        job.compare_formula(elite)
    job.own_scores(elite)
    return text


def graph_of(expression: Dag) -> dict[str, Any]:
    """An expression as JSON holds it. Raises Unsupported."""
    values: list[dict[str, Any]] = []
    for value in expression.nodes:
        if value.kind == NodeKind.INPUT:
            values.append({"input": value.name, "type": value.type})
        elif value.kind == NodeKind.CONSTANT and value.type == REAL:
            values.append({"value": number_of(value.payload), "type": REAL})
        elif value.kind == NodeKind.CONSTANT:
            values.append({"bits": value.payload, "value": plain_constant(value.type, value.payload), "type": value.type})
        elif value.kind == NodeKind.PTX and not value.ptx:
            values.append({"formula": value.semantics.infix, "operands": value.operands, "type": value.type})
        elif value.kind == NodeKind.PTX and not value.row.has_vectors:
            values.append({"ptx": value.ptx, "operands": value.operands, "type": value.type})
        else:
            raise Unsupported(value.name)
    outputs = {name: result for (name, _), result in zip(expression.outputs, expression.results, strict=True)}
    return {"inputs": dict(expression.inputs), "values": values, "outputs": outputs}


def _check_cells(job: Verifier, expression: Dag) -> None:
    """Raises UserError if a spreadsheet has an error in place of an output."""
    formula = expression if is_real(expression) else formula_of(expression, {}, {}, usual_names=False)

    def as_cell(value: Node, part: Any, operands: list[Any]) -> Any:
        infix = value.semantics.infix
        read = operands[2:] if infix == "select(c, a, b)" else operands
        is_number = reduce(np.logical_and, map(np.isfinite, (part, *read)))
        if infix in ("sin(a)", "cos(a)"):
            is_number = is_number & (np.abs(operands[0]) < _LARGEST_ANGLE)
        elif infix in ("exp2(a)", "pow(a, b)"):  # LibreOffice has no 0 for them
            is_number = is_number & (part != 0.0)
        return np.where(is_number, part, np.nan)

    pairs = zip(evaluate(formula, job.inputs, as_cell), evaluate(formula, job.inputs), strict=True)
    if any(np.any(np.isnan(cells) & np.isfinite(values)) for cells, values in pairs):
        raise UserError(
            "--format excel: at a point of the task, a part of the formula is infinite, a power that is 0, or an angle beyond "
            "2^27, which is an error in a sheet; export another elite"
        )


# A program's record; several are joined by `export_elites`.
def _record(job: Verifier, elite: Elite, expression: Dag) -> str:
    record = {
        "cell": elite.name,
        "objective": elite.objective,
        "measures": dict(zip(job.problem.task.measures, elite.measures.tolist(), strict=True)),
        "facts": {name: value if np.isfinite(value) else None for name, value in elite.facts.items()},
        "num_instructions": elite.num_instructions,
        "program": program_lines(job.problem.language, elite.batch.words)[0],
        "infix": infix(expression).splitlines(),
    }
    return json.dumps(record | graph_of(expression))


def _latex(job: Verifier, _elite: Elite, expression: Dag) -> str:
    note = display_note(job.precision)
    return (f"%{note}\n" if note else "") + latex_text(expression, job.precision, job.problem.task.column_names)


_Write = Callable[[Verifier, Elite, Dag], str]


def _headed(job: Verifier, elite: Elite, expression: Dag) -> tuple[Dag, str]:
    """An expression, and the comment at its head."""
    return expression, job.comment(elite)


def _checked(write: _Write, *, is_exact: bool = True) -> Callable[[Verifier, Elite], str]:
    """An export whose program is compared with the archive. is_exact: the format has the arithmetic of programs; otherwise that
    of real numbers.
    """

    def export(job: Verifier, elite: Elite) -> str:
        text = write(job, elite, elite.expression if job.precision is None else rounded(elite.expression, job.precision))
        job.verify(elite, is_exact=is_exact)
        return text

    return export


def _excel(job: Verifier, elite: Elite, expression: Dag) -> str:
    _check_cells(job, expression)
    return excel_source(*_headed(job, elite, expression))


@dataclass(frozen=True)
class _Format:
    suffix: str
    export: Callable[[Verifier, Elite], str]
    needs_cpu: bool = True  # its program is run on the CPU


FORMATS = {
    "ptx": _Format(".ptx", _export_ptx, needs_cpu=False),
    "cuda": _Format(".cu", _export_cuda, needs_cpu=False),
    "c": _Format(".c", _checked(lambda *args: c_source(*_headed(*args)))),
    "python": _Format(".py", _checked(lambda *args: python_source(*_headed(*args)))),
    "torch": _Format(".py", _checked(lambda *args: torch_source(*_headed(*args)), is_exact=False)),
    "triton": _Format(".py", _checked(lambda *args: triton_source(*_headed(*args)))),
    "excel": _Format(".txt", _checked(_excel, is_exact=False)),
    "sympy": _Format(".py", _checked(lambda *args: sympy_text(*_headed(*args)), is_exact=False)),
    "latex": _Format(".tex", _checked(_latex, is_exact=False)),
    "json": _Format(".json", _checked(_record)),
}


def export_elites(
    run: Run,
    format_name: str,
    *,
    name: str | None = None,
    front: bool = False,
    arch: str = "sm_90",
    precision: int | None = None,
) -> Export:
    """The text of an elite, or of each on the front, compared with the archive.

    Args:
        name: of the elite, as in `row_of_elite`.
        front: all elites of the run's front (`evo.report.pareto`).
        arch: GPU architecture of PTX and CUDA.
        precision: significant digits of a formula's numbers, for display, with `sympy` and `latex`; None: all.

    Raises:
        UserError: the archive is empty, the cell is, the run has no front, a program cannot be written in the format, or an
            export disagrees.
    """
    rows = front_of(run).rows.tolist() if front else [row_of_elite(run, name)]
    with problem_here(run) as (local, note):
        job = Verifier(run, local, note, arch, precision)
        elites = [job.elite(row) for row in rows]
        texts = [text for _, text in _export_all(job, elites, format_name)]
    suffix = FORMATS[format_name].suffix
    if format_name == "json":
        document = {"programs": [json.loads(text) for text in texts]}
        text = json.dumps(document, indent=1) + "\n"
        return Export({f"programs{suffix}": text}, list(job.notes), is_list=True)
    names = file_names([elite.name for elite in elites], suffix)
    return Export(dict(zip(names, texts, strict=True)), list(job.notes))


def _export_all(job: Verifier, elites: list[Elite], format_name: str) -> Iterator[tuple[Elite, str]]:
    chosen = FORMATS[format_name]
    for elite in elites:
        kinds = {kind for _, kind in (*elite.expression.inputs, *elite.expression.outputs)}
        if halves := sorted(kinds.intersection(HALVES)):
            raise UserError(f"--format {format_name}: not for programs of {halves[0]}; evo prove writes them as a CUDA header")
        lacking = sorted(elite.expression.ptx_by_name().keys() & job.unsupported)
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
