"""`evo gpu-report`: all that there is to know of a GPU from one command, in parts.

Owns which parts there are, their order and time limits, the file that grows with them, and the page at the end. A part's work
runs in a process of its own (`evo.evaluate.cuda.device_child`), so that no failure of the device ends the report.
"""

import json
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evo.about import VERSION
from evo.cli.gpu_report.work import FULL, SHORT, Order
from evo.errors import UserError, os_errors_as
from evo.escape import echo
from evo.evaluate.backends import why_no_compiler
from evo.evaluate.cuda.device import DeviceInfo, choose_device, probe
from evo.evaluate.cuda.device_child import run_in_child
from evo.evaluate.cuda.self_test import run_self_test
from evo.storage.files import write_atomically

SELF_TEST = "device_tests:run"
# The works of each part, by their place in this package, and the seconds that each may take: ten minutes with the self-test.
PARTS: dict[str, list[tuple[str, float]]] = {
    "device": [("driver:device", 15.0)],
    "self-test": [(SELF_TEST, 0.0)],
    "checks": [(f"checks:{name}", 24.0) for name in ("instructions", "programs", "sums", "own_kernel", "schedules")],
    "kernels": [("kernels:alone", 85.0)],
    "driver": [("driver:calls", 15.0)],
    "throughput": [("kernels:end_to_end", 75.0)],
    "semirings": [("semirings:agreement", 30.0), ("semirings:speed", 30.0)],
    "faults": [
        ("faults:illegal_address", 30.0),
        ("faults:still_there", 10.0),
        ("faults:endless_kernel", 40.0),
        ("faults:still_there", 10.0),
        ("faults:no_memory", 10.0),
    ],
}


@dataclass
class Part:
    """What became of a part's work: `problem` in one line, None: none so far; is_over: whether it has ended."""

    part: str
    work: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    problem: str | None = None
    is_over: bool = False

    @property
    def verdict(self) -> str:
        """`passed`, or how it failed, or that it has not ended."""
        if not self.is_over:
            return "not finished"
        return "passed" if self.problem is None else f"FAILED: {self.problem}"


def report(path: Path | None, ordinal: int | None, wanted: Collection[str] = (), *, short: bool = False) -> bool:
    """Makes the report; prints each part as it ends, and then the page, also if it is interrupted. Gives whether all passed.

    Args:
        path: of the JSON file; None: none is written.
        ordinal: of the device; None: the first that can be used.
        wanted: parts; none: all of them.

    Raises:
        UserError: there is no such GPU or part, or the file cannot be written.
    """
    if unknown := sorted(set(wanted) - set(PARTS)):
        raise UserError(f"--part {unknown[0]}: no such part, one of: {', '.join(PARTS)}")
    if problem := why_no_compiler():
        raise UserError(problem)
    info = choose_device(probe(), ordinal, "--device")
    order = Order(info.ordinal, SHORT if short else FULL)
    made: list[Part] = []

    def save() -> None:
        if path:
            facts = {"evo": VERSION, "device": info.name, "uuid": info.uuid, "extent": "short" if short else "full"}
            parts = [{**vars(part), "verdict": part.verdict} for part in made]
            with os_errors_as(f"{path}: cannot be written"):
                write_atomically(path, json.dumps({**facts, "parts": parts}, indent=1).encode() + b"\n")

    save()
    try:
        for name, works in PARTS.items():
            if wanted and name not in wanted:
                continue
            for work, limit_s in works:
                part = Part(name, work)
                made.append(part)
                start = time.monotonic()
                if work == SELF_TEST:
                    outcome = run_self_test(info)
                    part.problem = outcome.problem
                    part.rows.append({"what": "lanes", "at": "", "text": outcome.lanes_problem or "give the same bits"})
                else:

                    def told(step: str, part: Part = part) -> None:
                        part.rows.append(json.loads(step))
                        save()

                    place = f"{__name__}.{work}"
                    part.problem = run_in_child(place, order, limit_s * order.extent.patience, told=told).problem
                part.seconds, part.is_over = round(time.monotonic() - start, 3), True
                save()
                echo(f"{name}, {work.rpartition(':')[2].replace('_', ' ')}: {part.verdict} ({part.seconds:.0f} s)")
    finally:  # what has been measured is told also after Ctrl-C, or if the disk is full
        echo("\n" + page(info, made), nl=False)
    return all(part.problem is None for part in made)


def page(info: DeviceInfo, made: list[Part]) -> str:
    """The report as text: a table for each work whose rows have columns, and lines of the others."""
    lines = []
    for part in made:
        lines.append(f"## {part.part}, {part.work.rpartition(':')[2].replace('_', ' ')}, on {info.name}: {part.verdict}")
        columns = list(dict.fromkeys(row["at"] for row in part.rows if row["at"]))
        whats = list(dict.fromkeys(row["what"] for row in part.rows if row["at"]))
        lines += [f"{row['what']}: {row['text']}" for row in part.rows if not row["at"]]
        cells = {(row["what"], row["at"]): row["text"] for row in part.rows}
        table = [["", *columns], *([what, *(cells.get((what, at), "-") for at in columns)] for what in whats)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        if columns:
            lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
        lines.append("")
    return "\n".join(lines)
