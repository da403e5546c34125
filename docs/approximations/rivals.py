"""Measures the yardsticks, once: their slots and true largest errors are kept in FOLDER/rivals.json.

nice python docs/approximations/rivals.py FOLDER [NAME ...]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cases import BEFORE, BF16, CASES, LIBRARIES, Case
from cuda_code import Rival, kernel, ptx_of, swept
from minimax_code import bodies

from evo.approximation.formats import FORMATS
from evo.approximation.functions import Function
from evo.approximation.pieces import pieces_of
from evo.approximation.sweep import KINDS

NUM_GROUPS, GROUP = 4096, 64


def measured(case: Case, ptx: str, folder: Path) -> dict[str, object]:
    """Slots, and the largest errors over each number of the interval."""
    rival = Rival(ptx, folder / "code")
    started = time.perf_counter()
    found = swept(rival, Function(case.function), case.form, case.interval)
    errors = {kind: {"error": error, "at": at} for kind, error, at in zip(KINDS, found.cpu.errors, found.cpu.at, strict=True)}
    return {"least": rival.least, "most": rival.most, "errors": errors, "seconds": time.perf_counter() - started}


def rivals(folder: Path, names: list[str]) -> dict[str, dict[str, dict[str, object]]]:
    """Of each case by name: of each rival by name, what was measured."""
    path = folder / "rivals.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    cases = [case for case in (*CASES, *BF16) if not names or case.name in names]
    wanted = [(case, "CUDA, fast", case.cuda, True) for case in cases] + [(case, "CUDA", case.cuda, False) for case in cases]
    wanted += [(case, name, *rival) for case in BF16 if case in cases for name, rival in LIBRARIES[case.function].items()]
    for case, name, expression, fast in wanted:
        found = kept.setdefault(case.name, {})
        if name in found:
            continue
        ptx = ptx_of(kernel(expression, BEFORE), fast)
        twin = (
            found.get("CUDA, fast")
            if ptx.replace(".ftz", "") == ptx_of(kernel(case.cuda, BEFORE), True).replace(".ftz", "")
            else None
        )
        if twin:  # but for subnormal numbers, which neither the interval nor its results have
            rival = Rival(ptx, folder / "code")
            rival.results(FORMATS["f32"].of_keys(np.linspace(*case.form.keys_of(*case.interval), 1 << 16).astype(np.int64)))
            found[name] = {**twin, "least": rival.least, "most": rival.most}
        else:
            found[name] = measured(case, ptx, folder)
        path.write_text(json.dumps(kept, indent=1) + "\n")
        print(case.name, name, json.dumps(found[name]), flush=True)
    return kept


def sampled(case: Case) -> Callable[[Callable[[np.ndarray], np.ndarray]], dict[str, float]]:
    """Make the function that finds the largest errors at NUM_GROUPS groups of neighbours, spread over interval and floats."""
    first, last = case.form.keys_of(*case.interval)
    ends = np.linspace(*case.interval, NUM_GROUPS // 2)[1:-1]
    spread = np.concatenate([np.linspace(first, last, NUM_GROUPS // 2).astype(np.int64), [case.form.key(end) for end in ends]])
    starts = np.unique(np.where(spread < 0, np.minimum(spread, -GROUP), np.minimum(spread, last - GROUP)).clip(first))
    pieces = pieces_of(Function(case.function), case.form, first, last)
    rows = [case.form.of_keys(start + np.arange(GROUP)) for start in starts]
    exact = np.concatenate([pieces.exact(int(start), x)[0] for start, x in zip(starts, rows, strict=True)])
    x = np.concatenate(rows)
    return lambda results: dict(zip(KINDS, pieces.compare(np.ascontiguousarray(results(x)), exact)[0], strict=True))


def minimax(folder: Path, names: list[str]) -> dict[str, list[dict[str, object]]]:
    """Of each case of f32 by name: programs by Sollya, with slots and the largest errors where `sampled` looks."""
    path = folder / "minimax.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for case in CASES:
        if case.name in kept or (names and case.name not in names):
            continue
        largest = sampled(case)
        found = []
        for what, body in bodies(case.function):
            source = f'extern "C" __global__ void f(const float *in, float *out) {{ float x = *in, y; {body} *out = y; }}'
            rival = Rival(ptx_of(source, True), folder / "code")
            errors = largest(rival.results)
            found.append({"what": what, "least": rival.least, "most": rival.most, "errors": errors})
        kept[case.name] = found
        path.write_text(json.dumps(kept, indent=1) + "\n")
        print(case.name, [(each["most"], each["errors"][case.error]) for each in found], flush=True)
    return kept


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    rivals(Path(sys.argv[1]), sys.argv[2:])
    minimax(Path(sys.argv[1]), sys.argv[2:])
