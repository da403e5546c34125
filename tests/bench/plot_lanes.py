"""What a program costs over points, by what runs it: measures what needs no GPU, estimates the rest, and draws both.

    python tests/bench/plot_lanes.py docs/lanes.svg

Measured on one core of this machine: the CPU, and the assembler. Estimated for a machine with a GPU and NUM_CORES cores: a share
of that core's times, and what a GPU adds, by the constants below. Prints the points of the figure as a table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from bench_compile import TARGET, rounds
from bench_lowering import live_programs

from evo.cli.gpu_report.kernels import Probe
from evo.compile.packing import Packing
from evo.compile.request import InLine
from evo.evaluate.calibration import measure_cpu
from evo.evaluate.chunks import ChunkScorer
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language

NUM_INSTRUCTIONS = 32
NUM_POINTS = (1_000, 4_000, 16_000, 64_000, 250_000, 1_000_000, 4_000_000, 16_000_000)
NUM_CORES = 16
OPT_LEVEL = 1

# Estimates for an H200 (data sheet: 132 multiprocessors, 1.98 GHz at most): each multiprocessor issues four instructions of
# 32 threads a cycle.
SLOTS_PER_S = 132 * 4 * 32 * 1.98e9
UTILISATION = 0.5  # of these slots, by occupancy and memory
COMPILED_SLOTS = 1.0  # a live instruction is one of the machine
INTERPRETED_SLOTS = 5.0  # and four that fetch, decode, read, write and sum
HOST_S = 5e-6  # of the run's process for a program: encoding, launching, the rest of the batch


def break_even(points: Iterable[int], slow_s: Iterable[float], fast_s: Iterable[float]) -> float | None:
    """From how many points on `fast_s` is the lower of two costs, measured at ascending numbers of points, up to the last.
    Between two numbers both costs are taken to be powers of the points. None: it is not.
    """
    rows = list(zip(points, slow_s, fast_s, strict=True))
    if not rows or rows[-1][2] >= rows[-1][1]:
        return None
    later = rows[-1]
    for row in reversed(rows[:-1]):
        if row[2] >= row[1]:
            gap, later_gap = np.log(row[2] / row[1]), np.log(later[2] / later[1])
            share = gap / (gap - later_gap)
            return float(np.exp(np.log(row[0]) + share * np.log(later[0] / row[0])))
        later = row
    return float(rows[0][0])


def main() -> None:
    """Measures, prints, draws."""
    path = Path(sys.argv[1])
    task = Probe(8)
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    batch = Batch.analyze(language.lowering, live_programs(language, NUM_INSTRUCTIONS, 1, 128))
    cpu_s = [measure_cpu(ChunkScorer(language, Probe(count)), batch, 1)[0] for count in NUM_POINTS]
    with InLine() as executor:
        compile_s = min(cpu for _, _, cpu in rounds(language, batch, executor, Packing(), OPT_LEVEL)) / len(batch)
    kernels = {
        slots: [HOST_S + count * NUM_INSTRUCTIONS * slots / (SLOTS_PER_S * UTILISATION) for count in NUM_POINTS]
        for slots in (COMPILED_SLOTS, INTERPRETED_SLOTS)
    }
    lines = {
        "CPU, one core (measured)": cpu_s,
        f"CPU, {NUM_CORES} cores (estimated)": [seconds / NUM_CORES for seconds in cpu_s],
        "compiling, one core (measured)": [compile_s] * len(NUM_POINTS),
        f"GPU, compiled by {NUM_CORES} cores (estimated)": [
            max(compile_s / NUM_CORES, seconds) for seconds in kernels[COMPILED_SLOTS]
        ],
        "GPU, interpreted (estimated)": kernels[INTERPRETED_SLOTS],
    }
    print(f"{TARGET}, {batch.num_instructions.mean():.0f} live instructions, seconds a program")
    for name, seconds in lines.items():
        print(f"{name:42}" + "".join(f"{value:10.1e}" for value in seconds))
    cpu, compiled, interpreted = (list(lines.values())[i] for i in (1, 3, 4))
    for name, slow, fast in (("interpreted", cpu, interpreted), ("compiled", cpu, compiled), ("compiled", interpreted, compiled)):
        print(f"{name} pays from {break_even(NUM_POINTS, slow, fast)} points on")
    draw(lines, path)


def draw(lines: dict[str, list[float]], path: Path) -> None:
    """Draws measured lines solid, with their points, and estimated ones dashed."""
    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "lanes", "svg.fonttype": "none", "font.size": 9}
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    colors = ("#1f77b4", "#1f77b4", "#7f7f7f", "#d62728", "#2ca02c")
    for (name, seconds), color in zip(lines.items(), colors, strict=True):
        is_measured = "(measured)" in name
        axes.plot(
            NUM_POINTS, np.array(seconds) * 1e6, color=color, label=name, lw=1.6,
            ls="-" if is_measured else "--", marker="o" if is_measured and seconds[0] != seconds[-1] else "", ms=3.5,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="points", ylabel="a program of 32 instructions, us")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
