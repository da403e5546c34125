"""nvPTXCompiler as a library: cubins for several targets, logs of failures, no driver."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

if not os.environ.get("CI"):  # in CI a build without the wheel is a failure
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

from evo.native.nvptxcompiler import CompileError, version
from evo.native.nvptxcompiler import compile as assemble

PTX = """
.version 8.0
.target sm_75
.address_size 64
.visible .entry double_it(.param .u64 pointer)
{
    .reg .u64 %p;
    .reg .f32 %a, %b, %c;
    ld.param.u64 %p, [pointer];
    ld.global.f32 %a, [%p];
    mul.f32 %b, %a, %a;
    add.f32 %c, %b, %a;
    st.global.f32 [%p], %c;
    ret;
}
"""
EM_CUDA = 190  # e_machine of cubins


def target(name: str, *others: str) -> tuple[str, ...]:
    return (f"--gpu-name={name}", *others)


def test_version_is_of_the_family_that_the_build_asks_for():
    assert version() == (13, 0)


@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_cubins_are_elf_files_for_cuda(name):
    cubin = assemble(PTX, target(name))
    assert cubin[:4] == b"\x7fELF"
    assert int.from_bytes(cubin[18:20], "little") == EM_CUDA
    assert b"double_it" in cubin


def test_target_and_options_change_the_cubin():
    cubins = [
        assemble(PTX, target(*options))
        for options in (("sm_80",), ("sm_90",), ("sm_90", "--opt-level=0"), ("sm_90", "--fmad=false"))
    ]
    assert len(set(cubins)) == len(cubins)


def test_default_target_is_sm_90():
    assert assemble(PTX) == assemble(PTX, target("sm_90"))


def test_text_and_bytes_and_every_call_give_the_same_cubin():
    assert assemble(PTX) == assemble(PTX.encode()) == assemble(PTX)


def test_threads_compile_at_once():
    names = ["sm_75", "sm_80", "sm_86", "sm_90"] * 4
    with ThreadPoolExecutor(4) as executor:
        cubins = list(executor.map(lambda name: assemble(PTX, target(name)), names))
    assert cubins == [assemble(PTX, target(name)) for name in names]


@pytest.mark.parametrize(
    ("ptx", "options", "reason", "log"),
    [
        (
            PTX.replace("mul.f32", "mull.f32"),
            target("sm_90"),
            "compilation failed",
            "line 11; error   : Not a name of any known instruction: 'mull'",
        ),
        (PTX.replace("%c;", "%d;"), target("sm_90"), "compilation failed", "Unknown symbol '%c'"),
        (
            PTX.replace("sm_75", "sm_90"),
            target("sm_80"),
            "compilation failed",
            "SM version specified by .target is higher",
        ),
        (PTX.replace("8.0", "99.0"), target("sm_90"), "unsupported PTX version", "99.0"),
        (PTX, target("sm_1"), "compilation failed", "'sm_1' is not defined for option 'gpu-name'"),
        (PTX, target("sm_90", "--no-such-option"), "compilation failed", "no-such-option"),
        ("", target("sm_90"), "invalid input", ""),
    ],
)
def test_failures_carry_the_log(ptx, options, reason, log):
    with pytest.raises(CompileError) as error:
        assemble(ptx, options)
    assert error.value.reason == reason
    assert log in error.value.log
    assert error.value.log in str(error.value)
    assert "\0" not in str(error.value)


def test_failures_can_be_pickled():
    with pytest.raises(CompileError) as error:
        assemble(PTX.replace("ret", "rat"))
    copy = pickle.loads(pickle.dumps(error.value))
    assert (copy.reason, copy.log, str(copy)) == (error.value.reason, error.value.log, str(error.value))


def test_a_failure_does_not_spoil_the_next_call():
    cubin = assemble(PTX)
    for _ in range(3):
        with pytest.raises(CompileError):
            assemble("nonsense")
        assert assemble(PTX) == cubin


def test_options_as_one_text_are_refused():
    with pytest.raises(TypeError, match="options: expected a sequence of str"):
        assemble(PTX, "--gpu-name=sm_90")


def test_no_driver_is_loaded():
    script = (
        "import sys; from evo.native.nvptxcompiler import compile; compile(sys.argv[1]); print(open('/proc/self/maps').read())"
    )
    maps = subprocess.run([sys.executable, "-P", "-c", script, PTX], capture_output=True, text=True, check=True).stdout
    assert "nvptxcompiler" in maps and "libcuda" not in maps
