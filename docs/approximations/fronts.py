"""Makes the tables of docs/approximations.md, its picture, and docs/examples/approximations, from searches with the shipped seed.

    python docs/approximations/fronts.py FOLDER [--only-proven]

FOLDER keeps runs, tuned programs, proofs and yardsticks (some hours of one core); what is there already is taken from it; with
--only-proven no proofs are added. Needs the extra
`test`, gcc, a CPU with AVX2, and Sollya.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from cases import BF16, CASES, Case
from rivals import minimax, rivals, sampled

from evo.approximation.certificate import Certificate, certified, read_certificate
from evo.approximation.functions import Function
from evo.approximation.header import cuda_header
from evo.approximation.prove import tuned
from evo.evaluate.slots import slots_of
from evo.instructions import open_instruction_set
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine
from evo.report.pareto import front_of
from evo.run.run import Run

mpl.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[1]
EXAMPLE = DOCS / "examples" / "approximations"
WORST = {"ulp": 5000.0, "absolute": 2e-3}  # of elites that are proven
NUM_HALF = 1 << 16
TITLE = """\
// Approximations that `evo run approximation` found and `evo prove` has proven: see docs/approximations.md.
// Bounds hold for each value of the format in the interval: on any GPU that keeps the PTX ISA's bounds, or as they say."""


@dataclass(frozen=True)
class Point:
    """A program: its issue slots, largest error with the CPU's arithmetic, and bound on any GPU; None: not known. sampled: the
    largest error of samples.
    """

    slots: float
    error: float
    any_gpu: float | None = None
    found: Certificate | None = None
    sampled: float = math.inf

    def is_as_good(self, other: Point) -> bool:
        """By samples."""
        return self.slots <= other.slots and self.sampled <= other.sampled


# ---- searches and proofs -----------------------------------------------------------------------------------------------------


def searched(case: Case, folder: Path) -> Run:
    """The run for a case, with all defaults but the task's options."""
    runs = folder / f"runs_{case.name}"
    if not runs.exists():
        options = case.options() | ({} if case.format == "f32" else {"num_points": NUM_HALF})
        sets = (f"task_options={json.dumps(options)}", f"output.runs={runs}", "output.plots=[]", "evaluation.threads=1")
        subprocess.run(["evo", "run", "approximation", *(word for each in sets for word in ("--set", each))], check=True)
    [run] = runs.glob("*/*")
    return Run.view(run)[0]


def elites(case: Case, folder: Path, bars: list[tuple[float, float]], *, only_proven: bool) -> list[Point]:
    """The elites of a case's front whose errors matter, tuned as `evo prove --tune` does, with the errors where `sampled` looks.

    Args:
        bars: slots and errors. Of each, the cheapest elite that costs less and is no worse is proven.
        only_proven: do without the proofs that are not there.
    """
    run, kept = searched(case, folder), folder / "tuned" / f"{case.name}.npy"
    problem, largest = run.search.problem, sampled(case)
    machine = VirtualMachine(problem.language.lowering)
    unused = [None] * (len(problem.language.registers) - 1)

    def error(program: np.ndarray) -> float:
        return largest(lambda x: case.form.round(machine.store(program[None], [x, *unused])[0, 0]))[case.error]

    if not kept.exists():
        words = run.search.elites().solution[front_of(run).rows]
        words = words[[error(program) <= WORST[case.error] for program in words]]
        kept.parent.mkdir(exist_ok=True)
        np.save(kept, tuned(problem.language, problem.task, words))
    programs = np.load(kept)
    slots = problem.language.lowering.sums(programs, slots_of(problem.language.instruction_set, "sm_90"))
    points = [Point(float(cost), math.inf, sampled=error(program)) for cost, program in zip(slots, programs, strict=True)]
    instruction_set = problem.config.program.instruction_set

    def proven(number: int) -> Point:
        point = points[number]
        path = folder / "proofs" / f"{case.name}_{point.slots:g}.json"
        if not point.found and not path.exists() and not only_proven:
            arguments = problem.language, programs[number], Function(case.function), case.form, case.interval
            path.parent.mkdir(exist_ok=True)
            path.write_text(certified(*arguments, instruction_set=instruction_set, target="sm_90", state=path).text())
        if not point.found and path.exists():
            points[number] = replace(point_of(case, read_certificate(path)), sampled=point.sampled)
        return points[number]

    for most_slots, most_error in bars:
        hopeful = [i for i, point in enumerate(points) if point.slots < most_slots and point.sampled <= most_error]
        next((i for i in hopeful if proven(i).error <= most_error), None)
    return points


def point_of(case: Case, found: Certificate) -> Point:
    bound = found.any_gpu.get(case.error)
    any_gpu = float(bound.bound) if bound else None
    return Point(float(found.slots), float(found.cpu[case.error].worst), any_gpu, found)


def front_points(points: list[Point]) -> list[Point]:
    """Points that no cheaper one beats, by samples."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda each: (each.slots, each.sampled)):
        if not kept or point.sampled < kept[-1].sampled:
            kept.append(point)
    return kept


# ---- comparisons -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """A case and all that is known of it."""

    case: Case
    evo: list[Point]
    fast: Point
    fast_most: float
    precise: Point
    minimax: list[Point]

    def cheaper_than(self, rival: Point) -> Point | None:
        """The cheapest proven elite that is cheaper than a rival and at least as accurate."""
        return next((each for each in self.proven if each.slots < rival.slots and each.error <= rival.error), None)

    @property
    def proven(self) -> list[Point]:
        return [each for each in self.evo if each.found]

    def beaten(self) -> tuple[int, int]:
        """Count the minimax programs that matter and that some elite equals, and all that matter."""
        known = [each for each in self.minimax if each.sampled <= WORST[self.case.error]]
        return sum(any(elite.is_as_good(each) for elite in self.evo) for each in known), len(known)


def compared(case: Case, folder: Path, cuda: dict, sollya: dict, *, only_proven: bool) -> Compared:
    def point(known: dict) -> Point:
        error = known["errors"][case.error]["error"]
        return Point(known["least"], error)

    programs = [Point(each["most"], math.inf, sampled=each["errors"][case.error]) for each in sollya.get(case.name, ())]
    fast, precise = cuda[case.name]["CUDA, fast"], cuda[case.name]["CUDA"]
    libraries = [point(fast), point(precise)]
    bars = [(each.slots, each.error) for each in libraries] if case.format == "f32" else [(math.inf, 1.0), (math.inf, 0.9)]
    found = elites(case, folder, bars, only_proven=only_proven)
    return Compared(case, found, libraries[0], fast["most"], libraries[1], front_points(programs))


def bits(case: Case, error: float) -> float:
    """Of accuracy, as the task's objective counts them."""
    return case.form.digits - 1 - np.log2(max(error, 0.5)) if case.error == "ulp" else -np.log2(error)


# ---- what is written ---------------------------------------------------------------------------------------------------------


def number(error: float | None) -> str:
    return "unknown" if error is None or not np.isfinite(error) else f"{error:.3g}"


def cell(point: Point | None) -> str:
    if point is None:
        return "none"
    gpu = "" if point.found is None else f" ({number(point.any_gpu)})"
    return f"{point.slots:g}: {number(point.error)}{gpu}"


def rows_of_functions(everything: list[Compared]) -> list[str]:
    names = ("function, interval, error", "CUDA fast", "evo: cheaper, as accurate", "CUDA", "evo: cheaper, as accurate")
    rows = [f"| {' | '.join((*names, 'evo: most accurate', 'minimax'))} |", "|---|---|---|---|---|---|---|"]
    for each in everything:
        low, high = (f"{end:.3g}" for end in each.case.interval)
        done, total = each.beaten()
        most = f" to {each.fast_most:g}" if each.fast_most > each.fast.slots else ""
        columns = (
            f"{each.case.function}, [{low}, {high}], {each.case.error}",
            f"{each.fast.slots:g}{most}: {number(each.fast.error)}",
            cell(each.cheaper_than(each.fast)),
            cell(each.precise),
            cell(each.cheaper_than(each.precise)),
            cell(min(each.proven, key=lambda point: point.error, default=None)),
            f"{done} of {total}",
        )
        rows.append(f"| {' | '.join(columns)} |")
    return rows


def rows_of_halves(everything: list[Compared], cuda: dict) -> list[str]:
    rows = ["| function | PyTorch | CUTLASS, fast | evo: at most 1 ulp |", "|---|---|---|---|"]
    for each in everything:
        known = cuda[each.case.name]
        libraries = []
        for library in ("PyTorch", "CUTLASS"):
            found = [(name, value) for name, value in known.items() if name.startswith(library)]
            texts = [
                f"{value['least']:g}{name.removeprefix(library).replace(', fast', '')}: {number(value['errors']['ulp']['error'])}"
                for name, value in found
            ]
            libraries.append("; ".join(texts).replace("unknown", "NaN somewhere") or "none")
        best = next((point for point in each.proven if (point.any_gpu or np.inf) <= 1.0), None)
        best = best or next((point for point in each.proven if point.error <= 1.0), None)
        rows.append(f"| {each.case.function} | {libraries[0]} | {libraries[1]} | {cell(best)} |")
    return rows


def picture(everything: list[Compared], path: Path) -> None:
    figure, axes = plt.subplots(4, 4, figsize=(13, 11), constrained_layout=True)
    for axis, each in zip(axes.flat, everything, strict=True):
        case = each.case
        for points, style, label in (
            (each.minimax, {"color": "#888888", "marker": ".", "linestyle": ":"}, "minimax"),
            (front_points(each.evo), {"color": "#0b62a4", "marker": ".", "linestyle": "-", "zorder": 5}, "evo"),
        ):
            rows = [(point.slots, bits(case, point.sampled)) for point in points]
            axis.plot([slots for slots, _ in rows], [value for _, value in rows], drawstyle="steps-post", label=label, **style)
        for point, marker, color, label in (
            (each.fast, "s", "#d1495b", "CUDA, --use_fast_math"),
            (each.precise, "D", "#e9a03b", "CUDA"),
        ):
            axis.plot([point.slots], [bits(case, point.error)], marker=marker, color=color, linestyle="", label=label)
        rows = [(point.slots, bits(case, point.error)) for point in each.proven]
        style = {"color": "#0b62a4", "marker": "o", "linestyle": ""}
        axis.plot([slots for slots, _ in rows], [value for _, value in rows], label="evo, proven", **style)
        axis.set_title(f"{case.function}, [{case.interval[0]:.3g}, {case.interval[1]:.3g}], {case.error}", fontsize=10)
        axis.set_ylim(6, 25)
        axis.set_xlim(0, 60)
        axis.grid(alpha=0.25)
    for axis in axes[-1]:
        axis.set_xlabel("issue slots on sm_90")
    for axis in axes[:, 0]:
        axis.set_ylabel("bits of accuracy")
    axes[0, 0].legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=80)


def language_of(found: Certificate) -> Language:
    kind = found.format if found.arithmetic == "native" else "f32"
    return Language(open_instruction_set(found.instruction_set), (("x", kind),), (("y", kind),))


def header(found: list[Certificate]) -> str:
    """The functions of certificates, in their order."""
    texts = []
    for one in found:
        language = language_of(one)
        text = cuda_header(language, [(one, parse_program(language, one.program, "certificate", 4096))])
        texts.append(text.split("#pragma once\n", 1)[1].strip())
    return "\n".join([TITLE, "#pragma once", "", "\n\n".join(texts), ""])


def main(folder: Path) -> None:
    cuda, sollya = rivals(folder, []), minimax(folder, [])
    only_proven = "--only-proven" in sys.argv
    functions, halves = (
        [compared(case, folder, cuda, sollya, only_proven=only_proven) for case in cases] for cases in (CASES, BF16)
    )
    tables = {"functions": rows_of_functions(functions), "bf16": rows_of_halves(halves, cuda)}
    page = DOCS / "approximations.md"
    text = page.read_text()
    for name, rows in tables.items():
        body = "\n".join(rows)
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda match, body=body: f"{match[1]}\n{body}\n\n{match[2]}",
            text,
            flags=re.S,
        )
        print(body)
    page.write_text(text)
    print("cheaper than CUDA's fast:", sum(each.cheaper_than(each.fast) is not None for each in functions))
    print("cheaper than CUDA:", sum(each.cheaper_than(each.precise) is not None for each in functions))
    print("as good as all of minimax:", sum(done == total for done, total in (each.beaten() for each in functions)))
    picture(functions, DOCS / "approximations" / "fronts.png")
    (EXAMPLE / "certificates").mkdir(parents=True, exist_ok=True)
    proven = [point.found for each in (*functions, *halves) for point in each.proven if point.found]
    (EXAMPLE / "approximations.cuh").write_text(header(proven))
    for each in (*functions, *halves):
        for point in each.proven:
            (EXAMPLE / "certificates" / f"{each.case.name}_{point.slots:g}.json").write_text(point.found.text())


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    main(Path(sys.argv[1]))
