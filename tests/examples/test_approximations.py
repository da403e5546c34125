"""The header of approximations: CUDA compiles it, and it says what its certificates say."""

import re
from pathlib import Path

import pytest

from evo.approximation.certificate import check_certificate, read_certificate
from evo.kernel import nvrtc

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "approximations"
HEADER = (EXAMPLE / "approximations.cuh").read_text()
CERTIFICATES = sorted((EXAMPLE / "certificates").glob("*.json"))
NATIVE_HEADER = (EXAMPLE / "native_halves.cuh").read_text()
NATIVE = sorted((EXAMPLE / "certificates" / "native").glob("*.json"))
CHEAP = [path for path in CERTIFICATES if "bf16" in path.name]  # of 65,280 inputs


def test_each_certificate_has_its_function_with_its_bound_and_no_function_lacks_one():
    told = {}
    for head, name in re.findall(r"((?://.*\n)+)__device__ __forceinline__ float (\w+)\(float x\)", HEADER):
        told[name] = set(re.findall(r"error at most (\S+) (\w+)", head))
    assert len(told) == len(CERTIFICATES) >= 15
    for path in CERTIFICATES:
        found = read_certificate(path)
        errors = found.any_gpu or found.cpu
        assert told[f"{found.function}_{found.format}_{float(found.slots):g}"] == {
            (e.at_most(), kind) for kind, e in errors.items()
        }


def test_nvrtc_compiles_the_header_and_keeps_each_function_apart():
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    names = re.findall(r"float (\w+)\(float x\)", HEADER)
    uses = "\n".join(f'extern "C" __global__ void use_{name}(float *p) {{ *p = {name}(*p); }}' for name in names)
    ptx = nvrtc.compile(f"{HEADER}\n{uses}".encode(), "header.cu", {}, ["--gpu-architecture=compute_90"]).decode()
    assert set(re.findall(r"\.entry use_(\w+)\(", ptx)) == set(names)


@pytest.mark.parametrize("path", CHEAP, ids=lambda path: path.stem)
def test_a_certificate_of_half_precision_holds(path):
    found = check_certificate(path)
    assert float(found.cpu["ulp"].bound) < 2.0 and found.enclosure == "rigorous"
    error = found.any_gpu["ulp"]
    assert float(error.bound) < 2.0 or (path.stem, float(error.at)) == ("silu_bf16_24", 2.0**-125)
    assert found.num_inputs > 65_000


def test_each_native_certificate_has_its_two_functions_which_nvrtc_compiles():
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    told = {}
    for head, name in re.findall(
        r"((?://.*\n)+)__device__ __forceinline__ unsigned short (\w+)\(unsigned short x\)", NATIVE_HEADER
    ):
        told[name] = set(re.findall(r"error at most (\S+) (\w+)", head))
    assert len(told) == len(NATIVE) > 0
    for path in NATIVE:
        found = read_certificate(path)
        name = f"{found.function}_native_{found.format}_{float(found.slots):g}".replace(".", "_")
        assert told[name] == {(error.at_most(), kind) for kind, error in found.any_gpu.items()}
        assert f"unsigned int {name}_x2(unsigned int x)" in NATIVE_HEADER
    uses = "\n".join(
        f'extern "C" __global__ void use_{name}(unsigned *p, unsigned short *q) {{ *p = {name}_x2(*p); *q = {name}(*q); }}'
        for name in told
    )
    ptx = nvrtc.compile(f"{NATIVE_HEADER}\n{uses}".encode(), "header.cu", {}, ["--gpu-architecture=compute_90"]).decode()
    assert set(re.findall(r"\.entry use_(\w+)\(", ptx)) == set(told)


@pytest.mark.parametrize("path", NATIVE[::6], ids=lambda path: path.stem)
def test_a_native_certificate_holds(path):
    found = check_certificate(path)
    assert found.arithmetic == "native" and float(found.any_gpu["absolute"].bound) < 0.5
