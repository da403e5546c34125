"""Elites as PTX, CUDA, programs and formulas of other languages, each compared with the archive before it is written.

Owns the formats and how each one is run here. Knows nothing of how programs become expressions, and of scores (`verify.py`).
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evo.compile.assembler import assembler_options, compiler_options
from evo.compile.language import encode_language
from evo.compile.request import CompileRequest, pack_programs, render
from evo.errors import UserError
from evo.escape import comment_lines
from evo.evaluate.backends import why_no_compiler
from evo.instructions import HALVES
from evo.kernel import nvrtc
from evo.language.expression import REAL, Expression, Unsupported, number_of
from evo.language.formula import display_note, rounded
from evo.language.formula_source import excel_source, jax_source, julia_source
from evo.language.formula_text import infix, plain_constant
from evo.language.source import c_source, cuda_source, python_source
from evo.language.tensor_source import torch_source, triton_source
from evo.native.stack_ptx import NodeKind
from evo.report.elites import program_lines
from evo.report.export import run_export
from evo.report.export.sympy_text import latex_text, run_sympy, sympy_text
from evo.report.export.verify import Elite, Verifier
from evo.report.pareto import file_names, front_of, row_of_elite
from evo.report.ptx_text import with_values
from evo.report.recompute import is_real, problem_here
from evo.run.run import Run
from evo.task import DTYPES

_OPT_LEVEL = 3
_C_HEAD = "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n"  # with which CUDA without instructions is C


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
    if is_real(expression):
        c_text = _C_HEAD + text.replace("__device__ __forceinline__", "inline")
        job.verify(elite, lambda each: _run_c(job, each, c_text), "cuda")
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
    job.own_scores(elite)
    return text


_EXPORT_DTYPES = {**DTYPES, REAL: np.float64}


def _inputs(job: Verifier, expression: Expression) -> list[NDArray[Any]]:
    return [array.astype(_EXPORT_DTYPES[kind]) for array, (_, kind) in zip(job.inputs, expression.inputs, strict=True)]


def _run_c(job: Verifier, expression: Expression, text: str) -> list[NDArray[Any]] | None:
    dtypes = [_EXPORT_DTYPES[kind] for _, kind in expression.outputs]
    outputs = run_export.run_c(text, _inputs(job, expression), job.num_points, dtypes)
    if outputs is None:
        job.notes["C not compiled: no cc, gcc or clang here; install one to have the export checked"] = None
    return outputs


def _run_torch(job: Verifier, _: Expression, text: str) -> list[NDArray[Any]] | None:
    outputs = run_export.run_torch(text, job.inputs)
    if outputs is None:
        job.notes["not run: PyTorch is missing; install it to have the export checked"] = None
    return outputs


def _run_triton(job: Verifier, expression: Expression, text: str) -> list[NDArray[Any]]:
    job.notes["run by evo's stand-in for Triton, which computes each PTX instruction as the CPU does, and not by Triton"] = None
    return run_export.run_triton(text, _inputs(job, expression))


def _run_sympy(job: Verifier, _: Expression, text: str) -> list[NDArray[Any]]:
    return [*run_sympy(text, job.inputs, job.num_points)]


def _run_latex(job: Verifier, expression: Expression, _: str) -> list[NDArray[Any]]:
    return _run_sympy(job, expression, sympy_text(expression, ""))  # which is what is set as LaTeX


# A program's record; several are joined by `export_elites`.
def _record(job: Verifier, elite: Elite, expression: Expression) -> dict[str, Any]:
    values: list[dict[str, Any]] = []
    for value in expression.values:
        if value.kind == NodeKind.INPUT:
            values.append({"input": value.name, "type": value.type})
        elif value.kind == NodeKind.CONSTANT and value.type == REAL:
            values.append({"value": number_of(value.bits), "type": REAL})
        elif value.kind == NodeKind.CONSTANT:
            values.append({"bits": value.bits, "value": plain_constant(value.type, value.bits), "type": value.type})
        elif value.kind == NodeKind.PTX and not value.ptx:
            values.append({"formula": value.semantics.infix, "operands": value.operands, "type": value.type})
        elif value.kind == NodeKind.PTX and not value.has_vectors:
            values.append({"ptx": value.ptx, "operands": value.operands, "type": value.type})
        else:
            raise Unsupported(value.name)
    return {
        "cell": elite.name,
        "objective": elite.objective,
        "measures": dict(zip(job.problem.task.measures, elite.measures.tolist(), strict=True)),
        "facts": {name: value if np.isfinite(value) else None for name, value in elite.facts.items()},
        "num_instructions": elite.num_instructions,
        "program": program_lines(job.problem.language, elite.batch.words)[0],
        "infix": infix(expression).splitlines(),
        "inputs": dict(expression.inputs),
        "values": values,
        "outputs": {name: result for (name, _), result in zip(expression.outputs, expression.results, strict=True)},
    }


def _latex(job: Verifier, _elite: Elite, expression: Expression) -> str:
    note = display_note(job.precision)
    return (f"%{note}\n" if note else "") + latex_text(expression, job.precision)


_Write = Callable[[Verifier, Elite, Expression], str]
_Run = Callable[[Verifier, Expression, str], list[NDArray[Any]] | None]


def _checked(name: str, write: _Write, run: _Run, *, is_exact: bool = True) -> Callable[[Verifier, Elite], str]:
    """An export that is checked by running what is written here."""

    def export(job: Verifier, elite: Elite) -> str:
        job.verify(elite, lambda each: run(job, each, write(job, elite, each)), name, is_exact=is_exact)
        return write(job, elite, rounded(elite.expression, job.precision))

    return export


def _by_numpy(
    name: str, write: _Write, run: Callable[[str, list[NDArray[Any]]], list[NDArray[Any]]]
) -> Callable[[Verifier, Elite], str]:
    """An export of real numbers that is checked by NumPy's functions in place of the language's."""

    def outputs(job: Verifier, _: Expression, text: str) -> list[NDArray[Any]]:
        job.notes[f"run by NumPy in place of {name}, with the same functions"] = None
        return [np.broadcast_to(each, job.num_points) for each in run(text, job.inputs)]

    return _checked(name, write, outputs, is_exact=False)


@dataclass(frozen=True)
class _Format:
    suffix: str
    export: Callable[[Verifier, Elite], str]
    needs_cpu: bool = True  # checked by running it on the CPU


FORMATS = {
    "ptx": _Format(".ptx", _export_ptx, needs_cpu=False),
    "cuda": _Format(".cu", _export_cuda, needs_cpu=False),
    "c": _Format(".c", _checked("c", lambda job, elite, each: c_source(each, job.comment(elite)), _run_c)),
    "python": _Format(
        ".py",
        _checked(
            "python",
            lambda job, elite, each: python_source(each, job.comment(elite)),
            lambda job, _, text: run_export.run_python(text, job.inputs),
        ),
    ),
    "torch": _Format(
        ".py", _checked("PyTorch", lambda job, elite, each: torch_source(each, job.comment(elite)), _run_torch, is_exact=False)
    ),
    "jax": _Format(".py", _by_numpy("JAX", lambda job, elite, each: jax_source(each, job.comment(elite)), run_export.run_jax)),
    "julia": _Format(
        ".jl", _by_numpy("Julia", lambda job, elite, each: julia_source(each, job.comment(elite)), run_export.run_julia)
    ),
    "excel": _Format(
        ".txt", _by_numpy("Excel", lambda job, elite, each: excel_source(each, job.comment(elite)), run_export.run_excel)
    ),
    "triton": _Format(".py", _checked("Triton", lambda job, elite, each: triton_source(each, job.comment(elite)), _run_triton)),
    "sympy": _Format(
        ".py", _checked("SymPy", lambda job, elite, each: sympy_text(each, job.comment(elite)), _run_sympy, is_exact=False)
    ),
    "latex": _Format(".tex", _checked("LaTeX", _latex, _run_latex, is_exact=False)),
    "json": _Format(
        ".json",
        _checked(
            "json",
            lambda job, elite, each: json.dumps(_record(job, elite, each)),
            lambda job, _, text: run_export.run_json(text, job.inputs),
        ),
    ),
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


def export_if_sound(job: Verifier, row: int, formats: Iterable[str]) -> dict[str, str]:
    """The texts of the elite of a row by format, without those that cannot hold it or disagree with the archive."""
    elite, found = job.elite(row), {}
    for name in formats:
        with suppress(UserError):
            [(_, found[name])] = _export_all(job, [elite], name)
    return found


def _export_all(job: Verifier, elites: list[Elite], format_name: str) -> Iterator[tuple[Elite, str]]:
    chosen = FORMATS[format_name]
    for elite in elites:
        kinds = {kind for _, kind in (*elite.expression.inputs, *elite.expression.outputs)}
        if halves := sorted(kinds.intersection(HALVES)):
            raise UserError(f"--format {format_name}: not for programs of {halves[0]}; evo prove writes them as a CUDA header")
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
