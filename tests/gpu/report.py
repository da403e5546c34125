"""Proves that a GPU computes what it should, and measures it: `python tests/gpu/report.py OUT.json`. docs/gpu.md has the parts.

Owns the parts and their time limits. A part's works run each in a process of its own (`evo.evaluate.cuda.device_child`), so that
no failure of the device ends the report; OUT.json has what is known so far.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

from evo.about import VERSION
from evo.errors import UserError
from evo.evaluate.backends import why_no_compiler
from evo.evaluate.cuda.device import choose_device, probe
from evo.evaluate.cuda.device_child import run_in_child
from evo.evaluate.cuda.self_test import run_self_test

SELF_TEST = "device_tests:run"
# Each part's works, and the seconds that each may take: ten minutes with the self-test.
PARTS: dict[str, list[tuple[str, float]]] = {
    "device": [("driver:device", 15.0)],
    "self-test": [(SELF_TEST, 0.0)],
    "checks": [(f"checks:{name}", 30.0) for name in ("instructions", "programs", "sums", "own_kernel", "schedules")],
    "kernels": [("kernels:alone", 110.0)],
    "throughput": [("kernels:end_to_end", 100.0)],
    "semirings": [("semirings:agreement", 35.0), ("semirings:speed", 35.0)],
}
SHORT_PATIENCE = 5.0  # factor of the limits over an emulated GPU


def main() -> int:
    """The exit code: 0 if all passed, 1 if a work failed, 2 without a usable GPU."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("output", metavar="OUT.json", type=Path)
    parser.add_argument("--device", type=int, help="number of the GPU; default: the first that can be used")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part; may be given several times")
    parser.add_argument("--short", action="store_true", help="each case once, small: for an emulated GPU")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        if problem := why_no_compiler():
            raise UserError(problem)
        info = choose_device(probe(), given.device, "--device")
    except UserError as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    facts = {"evo": VERSION, "device": info.name, "uuid": info.uuid, "extent": "short" if given.short else "full"}
    made: list[dict] = []
    for name in given.part or PARTS:
        for work, limit_s in PARTS[name]:
            start = time.monotonic()
            if work == SELF_TEST:
                outcome = run_self_test(info)
                problem = outcome.problem
                rows = [{"what": "lanes", "at": "", "text": outcome.problem or "give the same bits"}]
            else:
                patience = SHORT_PATIENCE if given.short else 1.0
                done = run_in_child("parts.work:run", (work, info.ordinal, given.short), limit_s * patience)
                problem, rows = done.problem, [json.loads(step) for step in done.steps]
            verdict, seconds = f"FAILED: {problem}" if problem else "passed", round(time.monotonic() - start, 3)
            made.append({"part": name, "work": work, "seconds": seconds, "problem": problem, "verdict": verdict, "rows": rows})
            given.output.write_text(json.dumps({**facts, "parts": made}, indent=1) + "\n")
            print(f"\n## {name}, {work.rpartition(':')[2]}, on {info.name}: {verdict} ({seconds:.0f} s)")
            for row in rows:
                print(f"{row['what']}{row['at'] and ', '}{row['at']}: {row['text']}", flush=True)
    return int(any(each["problem"] for each in made))


if __name__ == "__main__":
    sys.exit(main())
