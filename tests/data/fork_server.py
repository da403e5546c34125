"""Runs `evo` commands, each in a fork of itself, so that none of them waits for the imports.

Reads a request a line and answers with a line; both are JSON. {"args", "folder", "environment", "stdout", "stderr"} starts a
command and is answered with the number of its process. {"process", "wait"} is answered with that process's exit code; unless
"wait" is true, with null while it runs. A command with EVO_EMULATED_GPU in its environment has the stand-in for a GPU
(emulator/).

This process runs nothing: a process that has used OpenMP (as scikit-learn does) must not fork.
"""

import contextlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path

import evo.cli
import evo.compile.compiler
import evo.evaluate.cpu
import evo.report.plots
import evo.report.progress
import evo.report.show
import evo.run.run
from evo.compile.request import CompileExecutor, InLine
from evo.evaluate import compilers

sys.path.append(str(Path(__file__).parents[2] / "emulator"))
with contextlib.suppress(ImportError):  # optional parts of an installation
    import emulated_gpu.__main__

    import evo.evaluate.cuda.evaluator
LIMIT_S = 300  # far beyond what any command takes: it ends one that hangs


def open_compilers(options) -> CompileExecutor:
    """As that of `evo.evaluate.compilers`, but what one compile worker would do is done here: it takes a second to start."""
    is_here = options.farm is None and options.compile_workers == 1
    return InLine() if is_here else compilers.open_compilers(options)


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
        del sys.modules["__main__"].__file__  # compile workers would import this file with all that it imports
        if "EVO_EMULATED_GPU" in request["environment"]:
            emulated_gpu.__main__.prepare()
            evo.evaluate.cuda.evaluator.open_compilers = open_compilers
        sys.argv = ["evo", *request["args"]]
        evo.cli.main(prog_name="evo")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - a command's traceback is printed as at the end of a process of its own
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def answer(request: dict) -> int | None:
    """The number of the process that was started, or the exit code of one that has ended."""
    if "process" in request:
        ended, status = os.waitpid(request["process"], 0 if request["wait"] else os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if ended else None
    child = os.fork()
    if child == 0:
        execute(request)
    return child


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


main()
