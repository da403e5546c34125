"""Fixtures of all folders: languages, task folders, small configs, disassembly and the `evo` command."""

import json
import os
import random
import shutil
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import blas_threads  # noqa: F401 - before NumPy
import hypothesis
import numpy as np
import pytest
import yaml
from emulated_gpu.fixtures import emulated_gpu, run_emulated  # noqa: F401
from processes import LIMIT_S
from sass import disassembled, disassembler

REPOSITORY = Path(__file__).parent.parent
# The same examples in every run, and none fails for being slow on a busy machine.
hypothesis.settings.register_profile("evo", derandomize=True, deadline=None)
hypothesis.settings.load_profile("evo")
# Of all processes of all tests, which have cache folders of their own: numba takes seconds to compile the functions of pyribs.
os.environ.setdefault("NUMBA_CACHE_DIR", str(REPOSITORY / ".pytest_cache" / "numba"))
# The interpreter's kernels, which dozens of tests over the emulated GPU share, take the assembler seconds.
os.environ.setdefault("EVO_EMULATED_GPU_CUBINS", str(REPOSITORY / ".pytest_cache" / "cubins"))

# Parts that are optional for a user but not in CI, where a test that skips for want of one would pass unseen.
NEEDED_IN_CI = (
    "evo.native.nvptxcompiler cuda.bindings.nvrtc nvidia.cu13 cutlass_library zmq msgpack distributed auditwheel build twine "
    "playwright axe_playwright_python mpmath torch"
).split()
COMMANDS_NEEDED_IN_CI = ("gcc", "g++", "clang", "clang++", "nm", "make", "cmake", "chromium", "soffice")

PLANE = Path(__file__).parent / "data" / "plane"


def pytest_sessionstart() -> None:
    if os.environ.get("CI"):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        missing = [name for name in NEEDED_IN_CI if find_spec(name) is None]
        missing += [name for name in COMMANDS_NEEDED_IN_CI if shutil.which(name, path=path) is None]
        if missing:
            pytest.exit(f"CI lacks {', '.join(missing)}", returncode=1)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Seed the global generators, which a test may draw from without a seed of its own."""
    random.seed(0)
    np.random.seed(0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The source folder: tasks/ and configs/ lie there."""
    return REPOSITORY


@pytest.fixture(scope="session")
def nvrtc():
    """The module `evo.kernel.nvrtc`. Skips the test if NVRTC is missing, but never in CI."""
    from evo.kernel import nvrtc

    try:
        nvrtc.version()
    except nvrtc.NvrtcMissing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return nvrtc


@pytest.fixture(scope="session")
def plane_folder() -> Path:
    """The folder of the tests' own small task with pictures."""
    return PLANE


@pytest.fixture(scope="session")
def language():
    """Programs with inputs t, x, y and outputs f, g, all f32."""
    from evo.instructions import shipped_instruction_set
    from evo.language.program import Language

    inputs = (("t", "f32"), ("x", "f32"), ("y", "f32"))
    return Language(shipped_instruction_set("default"), inputs, (("f", "f32"), ("g", "f32")))


@pytest.fixture
def make_task(tmp_path):
    """Writes a task folder with this task.py and gives its path."""

    def make(source: str, name: str = "a_task") -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "task.py").write_text(source)
        return folder

    return make


@pytest.fixture(scope="session")
def disassemble(tmp_path_factory):
    """Gives for a cubin the SASS of each kernel, by its name: instructions without addresses, and labels."""
    tool = disassembler()
    if tool is None:
        assert not os.environ.get("CI"), "in CI a missing disassembler is a failure: pip install '.[test]'"
        pytest.skip("the wheel nvidia-cuda-nvdisasm is not installed")
    folder = tmp_path_factory.mktemp("cubins")

    def run(cubin: bytes) -> dict[str, list[str]]:
        path = folder / "module.cubin"
        path.write_bytes(cubin)
        return disassembled(tool, path)

    return run


def merge(base: dict, changes: dict) -> dict:
    """`base` with `changes` written over it, section by section; neither is changed."""
    merged = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else value
    return merged


SMALL_CONFIG = {
    "task": str(PLANE),
    "seed": 7,
    "program": {
        "max_length": 24,
        "vocabulary": {"instructions": ["add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "rcp_approx_ftz_f32", "sin_approx_ftz_f32"]},
    },
    "search": {
        "archive": {"type": "GridArchive", "dims": [6, 5]},
        "batch_size": 64,
        "initial": {"num_programs": 96, "min_length": 4, "max_length": 16},
    },
    # The same tests on a machine with a GPU. Workers take a second to start, and have tests of their own.
    "evaluation": {"backend": "cpu", "executor": "threads"},
    "stop": {"generations": 6},
    "output": {"checkpoint_seconds": 0.0},
}


@pytest.fixture(scope="session")
def small_config_in():
    """Writes a small config of the plane task with changes merged in, and gives its path; runs go to runs/ beside it."""

    def make(folder: Path, changes: dict | None = None, name: str = "small") -> Path:
        config = merge(merge(SMALL_CONFIG, {"output": {"runs": str(folder / "runs")}}), changes or {})
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config))
        return path

    return make


@pytest.fixture
def small_config(small_config_in, tmp_path):
    """As `small_config_in`, in tmp_path."""
    return partial(small_config_in, tmp_path)


@pytest.fixture(scope="session")
def evo_command() -> Path:
    """The installed `evo` command of this Python."""
    command = Path(sys.executable).with_name("evo")
    assert command.is_file(), f"evo is not installed in this Python ({sys.executable}): pip install '.[test]'"
    return command


@pytest.fixture
def run_evo(evo_command, tmp_path):
    """Runs the `evo` command in tmp_path to its end and gives the completed process, output as text."""

    def run(*args, timeout_s: float = LIMIT_S, env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        return subprocess.run(
            [evo_command, *map(str, args)],
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run


class ForkServer:
    """A process that has imported everything and forks for each command (data/fork_server.py)."""

    def __init__(self):
        script = Path(__file__).parent / "data" / "fork_server.py"
        self._process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, args: list[str], folder: Path, environment: dict[str, str], stdout: Path, stderr: Path) -> int:
        """Starts an `evo` command in `folder` with its output in files; gives the number of its process."""
        paths = {"folder": str(folder), "stdout": str(stdout), "stderr": str(stderr)}
        return self._ask({"args": args, "environment": environment, **paths})

    def wait(self, process: int) -> int:
        """The exit code of a process, once it has ended; may be asked for once."""
        return self._ask({"process": process, "wait": True})

    def poll(self, process: int) -> int | None:
        """As `wait`, but None while the process runs."""
        return self._ask({"process": process, "wait": False})

    def close(self) -> None:
        self._process.stdin.close()
        assert self._process.wait() == 0

    def _ask(self, request: dict) -> int | None:
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@pytest.fixture(scope="session")
def fork_server():
    """This process's fork server."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def fork_evo_in(fork_server, tmp_path_factory):
    """Runs the `evo` command in a folder, in a fork of a process that has done the two seconds of imports."""
    outputs = [tmp_path_factory.mktemp("outputs") / name for name in ("stdout", "stderr")]

    def run(cwd: Path, *args, env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        arguments = [str(arg) for arg in args]
        code = fork_server.wait(fork_server.start(arguments, cwd, env or {}, *outputs))
        return subprocess.CompletedProcess(["evo", *arguments], code, *(path.read_text() for path in outputs))

    return run


@pytest.fixture
def fork_evo(fork_evo_in, tmp_path):
    """As `fork_evo_in`, in tmp_path or another folder `cwd`."""
    return lambda *args, env=None, cwd=tmp_path: fork_evo_in(cwd, *args, env=env)
