"""Makes the table of native halves in docs/approximations.md, and what of docs/examples/approximations is native.

    python docs/approximations/halves.py FOLDER

FOLDER keeps runs and their proofs (a minute and a half of two cores for each of 20 searches); what is there already is taken from
it. Needs the extra `test`, gcc and a CPU with AVX2.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cases import BEFORE, CASES, LIBRARIES
from cuda_code import Rival, kernel, ptx_of
from fronts import DOCS, EXAMPLE, header, language_of, number

from evo.approximation.certificate import Certificate, read_certificate
from evo.approximation.intervals import IntervalProgram, interval_program
from evo.approximation.task import ApproximationTask
from evo.instructions import open_instruction_set
from evo.language.program import parse_program
from evo.native.proof import intervals
from evo.native.ptx_vm import VirtualMachine

FUNCTIONS = ("tanh", "sigmoid", "silu", "gelu", "gelu_grad")
INTERVAL = (-8.0, 8.0)
BARS = {"bf16": (0.06, 0.03, 0.015, 0.008, 0.0045), "f16": (0.03, 0.01, 0.003, 0.001, 0.0006)}  # errors on any GPU
CONVERSIONS = {"bf16": ("cvt_f32_bf16", "cvt_rn_bf16_f32"), "f16": ("f16_to_f32", "cvt_rn_f16_f32")}  # of what is in f32 inside


@dataclass(frozen=True)
class Point:
    """A proven program. slots: of a value, with the conversions of one that is in f32 inside. error: on any GPU, over every
    input, absolute, or relative to results above 1.
    """

    slots: float
    error: float
    found: Certificate


def proofs(function: str, form: str, arithmetic: str, folder: Path) -> list[Path]:
    """The certificates of the front of a search with the shipped defaults, tuned."""
    runs = folder / f"{form}_{arithmetic}_{function}" / "runs"
    if not runs.exists():
        config = f"approximation_{form}" if arithmetic == "native" else "approximation"
        options = {"function": function, "format": form, "error": "mixed"}
        sets = [*(f"task_options.{key}={value}" for key, value in options.items()), f"output.runs={runs}"]
        subprocess.run(["evo", "run", config, *(word for each in sets for word in ("--set", each))], check=True)
    [run] = runs.glob("*/*")
    if not (run / "proofs").exists():
        subprocess.run(["evo", "prove", run, "--front", "--tune"], check=True)
    return sorted((run / "proofs").glob("*.json"))


def slots_of_conversions(form: str) -> float:
    instructions = {each.name: each for each in open_instruction_set("halves").instructions}
    return sum(instructions[name].semantics.slots_on("sm_90") or 0.0 for name in CONVERSIONS[form])


def points_of(task: ApproximationTask, paths: list[Path]) -> list[Point]:
    x, found = task.points()["x"], []
    for each in map(read_certificate, paths):
        language = language_of(each)
        words = parse_program(language, each.program, "certificate", 4096)
        program = interval_program(language, words)
        if not isinstance(program, IntervalProgram):
            continue
        if program.is_exact:
            results = [VirtualMachine(language.lowering).store(words[None], [x, None])[0, 0]]
        else:
            results = list(intervals(program.steps, program.constants, x))
        error = max(float(task.errors(y).max()) for y in results)
        more = 0.0 if each.arithmetic == "native" else slots_of_conversions(each.format)
        found.append(Point(float(each.slots) + more, error, each))
    return sorted(found, key=lambda point: point.slots)


def rivals(function: str, task: ApproximationTask, folder: Path) -> str:
    """PyTorch's formulas: slots and errors with the CPU's arithmetic."""
    cuda = next(case.cuda for case in CASES if case.function == "sigmoid")
    known = LIBRARIES.get(function, {"PyTorch": (cuda, False)})
    texts = []
    for name, (expression, fast) in known.items():
        if name.startswith("PyTorch"):
            rival = Rival(ptx_of(kernel(expression, BEFORE), fast), folder / "code")
            error = float(task.errors(rival.results(task.points()["x"])).max())
            label = name.removeprefix("PyTorch")
            texts.append(f"{rival.least + slots_of_conversions(task.format.name):g}{label}: {number(error)}")
    return "; ".join(texts)


def main(folder: Path) -> None:
    rows, chosen = [], dict[str, list[Certificate]]()
    for form, bars in BARS.items():
        titles = (f"{form}, error at most", *(f"{bar:g}" for bar in bars), "PyTorch")
        rows += ["", f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
        for function in FUNCTIONS:
            task = ApproximationTask(function, INTERVAL, form, "mixed", num_points=1 << 16)
            native, single = (points_of(task, proofs(function, form, kind, folder)) for kind in ("native", "f32"))
            cells = []
            for bar in bars:
                best = next((point for point in native if point.error <= bar), None)
                other = next((point for point in single if point.error <= bar), None)
                cells.append(f"{f'{best.slots:g}' if best else 'none'} ({f'{other.slots:g}' if other else 'none'})")
                saves = best and (other is None or best.slots < other.slots)
                if best and saves and best.found not in chosen.setdefault(function, []):
                    chosen[function].append(best.found)
            rows.append(f"| {function} | {' | '.join(cells)} | {rivals(function, task, folder)} |")
    body = "\n".join(rows[1:])
    print(body)
    page = DOCS / "approximations.md"
    pattern = re.compile(r"(<!-- halves -->\n).*?(<!-- end -->)", re.DOTALL)
    page.write_text(pattern.sub(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", page.read_text()))
    proven = [each for function in FUNCTIONS for form in BARS for each in chosen.get(function, ()) if each.format == form]
    for each in proven:
        path = EXAMPLE / "certificates" / "native" / f"{each.function}_{each.format}_{float(each.slots):g}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(each.text())
    (EXAMPLE / "native_halves.cuh").write_text(header(proven))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
