"""PTX Inject in builds: the examples that process CUDA from CMake and make, and the one that compiles with OpenMP.

Knows nothing of nvcc: where an example calls it, a script stands in. In CI a missing tool is a failure, elsewhere a skip.
"""

import ctypes
import importlib
import os
import re
import shutil
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from evo.ptx_inject import PTXInject, process_cuda
from evo.ptx_inject.types import load_types

REPOSITORY = Path(__file__).parent.parent.parent
CSRC = REPOSITORY / "csrc"
EXAMPLES = REPOSITORY / "docs" / "examples"
# Elf64_Ehdr: 4 bytes of magic; at 18 the machine, EM_CUDA; at 48 the flags, which hold the architecture's number.
EM_CUDA = 190
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def need(found: object, what: str) -> None:
    if not found:
        if os.environ.get("CI"):
            pytest.fail(f"{what} is missing; in CI nothing is skipped for that")
        pytest.skip(f"{what} is missing")


def run(*command: str | Path, folder: Path, timeout_s: float = 300.0) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*map(str, command)], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout_s, check=False
    )


@pytest.fixture
def nvrtc():
    """The module cuda.bindings.nvrtc."""
    if not os.environ.get("CI"):
        pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    return importlib.import_module("cuda.bindings.nvrtc")


def compile_ptx(nvrtc, cuda: bytes) -> bytes:
    """The PTX that NVRTC makes of CUDA."""
    options = [b"--gpu-architecture=compute_80", f"--include-path={CSRC}".encode()]
    _, program = nvrtc.nvrtcCreateProgram(cuda, b"kernel.cu", 0, [], [])
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    assert result == nvrtc.nvrtcResult.NVRTC_SUCCESS
    _, num_bytes = nvrtc.nvrtcGetPTXSize(program)
    ptx = bytearray(num_bytes)
    nvrtc.nvrtcGetPTX(program, ptx)
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(ptx).rstrip(b"\0")


@pytest.fixture(params=["make", "cmake"])
def build(request, tmp_path):
    """A copy of the example in tmp_path/example; building it gives the completed process."""
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLES / "cmake_custom_command", folder)
    need(shutil.which("make"), "make")
    nvcc = tmp_path / "nvcc"
    nvcc.write_text('#!/bin/sh\n[ "$1" = -ptx ] && [ "$3" = -o ] && cat "$2" > "$4"\n')
    nvcc.chmod(0o755)
    if request.param == "make":
        return lambda: run("make", f"NVCC={nvcc}", "processed", "ptx", folder=folder)
    cmake = shutil.which("cmake", path=ENVIRONMENT["PATH"])
    need(cmake, "cmake")
    configured = run(cmake, "-B", "build", "-G", "Unix Makefiles", f"-DNVCC={nvcc}", folder=folder)
    assert configured.returncode == 0, configured.stderr
    return lambda: run(cmake, "--build", "build", folder=folder)


def test_a_build_processes_what_has_changed_and_stops_at_errors_with_their_place(build, tmp_path):
    folder = tmp_path / "example"
    types = load_types(folder / "types.json")
    done = build()
    assert done.returncode == 0, done.stdout + done.stderr
    names = {path.stem for path in (folder / "cuda").iterdir()}
    assert names == {"scale", "select"}
    outputs = {name: folder / "build" / "processed_cuda" / f"{name}.cu" for name in names}
    for name, output in outputs.items():
        assert output.read_text() == process_cuda((folder / "cuda" / f"{name}.cu").read_text(), types)
        assert f"PTX_INJECT_START {name}" in (folder / "build" / f"{name}.ptx").read_text()

    long_ago = 10**9
    for output in outputs.values():
        output.write_text("kept")
    assert build().returncode == 0
    assert {output.read_text() for output in outputs.values()} == {"kept"}, "nothing has changed: nothing is done"

    os.utime(outputs["scale"], (long_ago, long_ago))  # older than its source and its types
    assert build().returncode == 0
    assert "PTX_INJECT_START scale" in outputs["scale"].read_text()
    assert outputs["select"].read_text() == "kept"

    source = folder / "cuda" / "select.cu"
    source.write_text(source.read_text().replace("out mask chosen", "out f99 chosen"))
    os.utime(outputs["select"], (long_ago, long_ago))
    done = build()
    assert done.returncode != 0
    assert "cuda/select.cu:9:17: error: not one of the types that were given" in done.stdout + done.stderr
    assert outputs["select"].read_text() == "kept"


@pytest.mark.parametrize("name", ["scale", "select"])
def test_the_built_cuda_compiles_beside_the_names_of_libc(name, nvrtc):
    """nvcc compiles for the host, too, where its headers declare what libc's do: select() is one."""
    folder = EXAMPLES / "cmake_custom_command"
    processed = process_cuda((folder / "cuda" / f"{name}.cu").read_text(), load_types(folder / "types.json"))
    kernels = re.findall(r"__global__ void (\w+)", processed)
    assert len(kernels) == 1 and not hasattr(ctypes.CDLL(None), kernels[0])
    compile_ptx(nvrtc, processed.encode())


@pytest.fixture(scope="module")
def openmp_compile(tmp_path_factory):
    """The built OpenMP example."""
    need(shutil.which("make"), "make")
    need(find_spec("evo.native.nvptxcompiler"), "the wheel nvidia-nvptxcompiler")
    folder = tmp_path_factory.mktemp("openmp") / "example"
    shutil.copytree(EXAMPLES / "openmp_compile", folder)
    done = run("make", f"PYTHON={sys.executable}", f"CSRC={CSRC}", "CFLAGS=-O1 -Wall -Wextra -Werror", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "openmp_compile"


def test_openmp_example_compiles_every_program_to_a_cubin_and_prints_the_scaling(openmp_compile, tmp_path):
    done = run(openmp_compile, 20, 3, tmp_path, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rows, tail = [line.split() for line in done.stdout.splitlines()]
    assert head == ["threads", "programs/s", "speedup"]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert all(float(row[1]) > 0 and float(row[2]) > 0 for row in rows)
    assert tail == ["20", "of", "20", "programs", "compiled"]
    cubins = [path.read_bytes() for path in sorted(tmp_path.glob("*.cubin"))]
    assert len(cubins) == 20
    assert len(set(cubins)) > 14, "programs differ, though some may compute the same"
    for cubin in cubins:
        machine, flags = struct.unpack_from("<H", cubin, 18)[0], struct.unpack_from("<I", cubin, 48)[0]
        assert (cubin[:4], machine) == (b"\x7fELF", EM_CUDA)
        assert 90 in (flags & 0xFF, flags >> 8 & 0xFF), f"{flags:#x}"
        assert b".text.kernel\0" in cubin


def test_the_templates_ptx_is_that_of_its_cuda(nvrtc):
    folder = EXAMPLES / "openmp_compile"
    ptx = compile_ptx(nvrtc, (folder / "kernel.cu").read_bytes())
    made, kept = PTXInject(ptx), PTXInject((folder / "kernel.ptx").read_bytes())
    assert {name: (sites.num_sites, dict(sites)) for name, sites in made.items()} == {
        name: (sites.num_sites, dict(sites)) for name, sites in kept.items()
    }
