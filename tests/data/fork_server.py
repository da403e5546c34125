"""Runs `evo` commands, each in a fork of itself, so that none of them waits for the imports.

With EVO_EMULATED_GPU in its environment a command has the stand-in for a GPU (tests/emulated_gpu).

Reads a request a line, {"args", "folder", "environment", "stdout", "stderr"}, and answers with the exit code. It never runs
anything itself: a process that has used OpenMP (as scikit-learn does) must not fork.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path

import evo.cli
import evo.report.plot
import evo.report.progress
import evo.report.show
import evo.run.run

LIMIT_S = 300  # far beyond what any command takes: one that hangs is ended


def execute(request: dict) -> None:
    """Becomes the command; never returns."""
    signal.alarm(LIMIT_S)
    code = 1
    try:
        files = [os.open(os.devnull, os.O_RDONLY)]
        files += [os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) for name in ("stdout", "stderr")]
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.chdir(request["folder"])
        os.environ.update(request["environment"])
        if "EVO_EMULATED_GPU" in request["environment"]:
            sys.path.insert(0, str(Path(__file__).parents[1]))
            from emulated_gpu.__main__ import prepare

            prepare()
            del sys.modules["__main__"].__file__  # compile workers would import this file with all that it imports
        sys.argv = ["evo", *request["args"]]
        evo.cli.main(prog_name="evo")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the command's own end is printed as Python does it
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            execute(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


main()
