"""Proves each shipped program anew, and rewrites the certificates and headers of docs/examples/approximations.

    python docs/approximations/prove_again.py [--headers]

For a change of proofs alone: programs stay as they are. It prints each bound that changes; the tables of docs/approximations.md
have some. --headers writes headers from the certificates as they are. Takes half an hour of two cores.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from fronts import EXAMPLE, header, language_of, number

from evo.approximation.certificate import Certificate, certified, read_certificate
from evo.approximation.formats import FORMATS
from evo.approximation.functions import Function
from evo.approximation.header import function_name
from evo.language.program import parse_program

FOLDERS = {"approximations.cuh": EXAMPLE / "certificates", "native_halves.cuh": EXAMPLE / "certificates" / "native"}


def again(path: Path) -> None:
    before = json.loads(path.read_text())
    told = Certificate.model_construct(**before)
    language = language_of(told)
    found = certified(
        language,
        parse_program(language, told.program, str(path), 4096),
        Function(told.function),
        FORMATS[told.format],
        (float(told.interval[0]), float(told.interval[1])),
        instruction_set=told.instruction_set,
        target=told.target,
    )
    for figure in ("cpu", "any_gpu"):
        for kind, error in getattr(found, figure).items():
            old, new = number(float(before[figure][kind]["bound"])), number(float(error.bound))
            if old != new:
                print(f"{path.stem}: {figure} {kind} {old} -> {new} at {error.at}", flush=True)
    path.write_text(found.text())


def main() -> None:
    if "--headers" not in sys.argv:
        for folder in FOLDERS.values():
            for path in sorted(folder.glob("*.json")):
                again(path)
    for name, folder in FOLDERS.items():
        found = {function_name(each): each for each in map(read_certificate, folder.glob("*.json"))}
        order = re.findall(r"^__device__.* (\w+)\(", (EXAMPLE / name).read_text(), re.MULTILINE)
        (EXAMPLE / name).write_text(header([found[each] for each in order if each in found]))


if __name__ == "__main__":
    main()
