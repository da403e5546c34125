"""The shipped domain colouring run: its time, and the share that is neither evaluation nor scoring."""

import json
import subprocess
import tempfile
from pathlib import Path

CONFIG = Path(__file__).parents[2] / "configs" / "domain_coloring.yaml"


def rows():
    """Rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        overrides = ["--set", f"output.runs={folder}", "--set", "output.plots=[]"]
        subprocess.run(["evo", "run", str(CONFIG), *overrides], check=True, stdout=subprocess.DEVNULL)
        (metrics_path,) = Path(folder).glob("*/*/metrics.jsonl")
        metrics = [json.loads(line) for line in metrics_path.read_text().splitlines()]
    last = metrics[-1]
    evaluation_s = sum(row["times_s"]["evaluation"] for row in metrics)
    rest = 1.0 - evaluation_s / last["elapsed_s"]
    yield "domain colouring run, all cores", f"{last['elapsed_s']:.1f} s", "120 s", ""
    yield "evaluations a second, all cores", f"{last['evaluations'] / last['elapsed_s']:,.0f}", "", ""
    yield "coverage", f"{last['coverage']:.1%}", "half of the reachable cells", ""
    yield "share neither evaluation nor scoring", f"{rest:.1%}", "15 %", "5 %"
    for stage in ("variation", "archive", "statistics", "previous_save"):
        share = sum(row["times_s"][stage] for row in metrics) / last["elapsed_s"]
        yield f"share of {stage.replace('previous_save', 'checkpoints')}", f"{share:.1%}", "", ""
