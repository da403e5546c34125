"""The cost of a program over points, by lane: draws the measurements of tests/gpu/report.py.

    python tests/bench/plot_lanes.py docs/h200.json docs/lanes.svg

Owns the picture. Prints its points as a table.
"""

import json
import re
import sys
from pathlib import Path

import matplotlib as mpl

WAYS = {"cpu": ("CPU", "#1f77b4"), "interpret": ("GPU, interpreted", "#2ca02c"), "compile": ("GPU, compiled", "#d62728")}


def seconds_a_program(report: dict) -> dict[str, dict[int, float]]:
    """For each way, by the number of points: seconds of the largest batch, divided by its programs."""
    found: dict[str, dict[int, float]] = {way: {} for way in WAYS}
    rows = [row for part in report["parts"] if part["part"] == "throughput" for row in part["rows"] if row["at"]]
    for row in rows:  # batches ascend
        points, way = re.fullmatch(r"([\d,]+) points, (\w+)", row["what"]).groups()
        found[way][int(points.replace(",", ""))] = row["seconds"] / int(re.sub(r"\D", "", row["at"]))
    return found


def main() -> None:
    """Prints and draws."""
    report = json.loads(Path(sys.argv[1]).read_text())
    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "lanes", "svg.fonttype": "none", "font.size": 9}
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    for way, costs in seconds_a_program(report).items():
        name, color = WAYS[way]
        print(f"{name:18}" + "".join(f"{points:>12,}: {seconds:.1e} s" for points, seconds in sorted(costs.items())))
        axes.plot(list(costs), [seconds * 1e6 for seconds in costs.values()], color=color, marker="o")
        points, seconds = max(costs.items())
        axes.annotate(name, (points, seconds * 1e6), xytext=(6, 0), textcoords="offset points", color=color, va="center")
    axes.set(xscale="log", yscale="log", xlabel="points", ylabel="a program of 32 instructions, us", xlim=(700, 3e7))
    axes.grid(alpha=0.3)
    figure.savefig(sys.argv[2], metadata={"Date": None})


if __name__ == "__main__":
    main()
