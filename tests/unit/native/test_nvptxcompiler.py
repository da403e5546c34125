"""nvPTXCompiler as a library: cubins for several targets, logs of failures, no driver."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

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


def test_version_is_of_the_family_that_the_build_asks_for():
    assert version() == (13, 0)


@pytest.mark.parametrize("name", ["sm_75", "sm_80", "sm_90", "sm_100"])
def test_cubins_are_elf_files_for_cuda(name):
    cubin = assemble(PTX, (f"--gpu-name={name}",))
    assert cubin[:4] == b"\x7fELF"
    assert int.from_bytes(cubin[18:20], "little") == EM_CUDA
    assert b"double_it" in cubin


def test_threads_compile_at_once_and_a_failure_spoils_no_other_call():
    names = ["sm_75", "sm_80", "sm_1", "sm_90"] * 4

    def cubin_of(name: str) -> bytes | str:
        try:
            return assemble(PTX, (f"--gpu-name={name}",))
        except CompileError as error:
            return error.reason

    with ThreadPoolExecutor(4) as executor:
        assert list(executor.map(cubin_of, names)) == [cubin_of(name) for name in names[:4]] * 4


@pytest.mark.parametrize(
    ("ptx", "option", "reason", "log"),
    [
        (
            PTX.replace("mul.f32", "mull.f32"),
            "--gpu-name=sm_90",
            "compilation failed",
            "line 11; error   : Not a name of any known instruction",
        ),
        (PTX.replace("8.0", "99.0"), "--gpu-name=sm_90", "unsupported PTX version", "99.0"),
        (PTX, "--gpu-name=sm_1", "compilation failed", "'sm_1' is not defined for option 'gpu-name'"),
        ("", "--gpu-name=sm_90", "invalid input", ""),
    ],
)
def test_failures_carry_the_log_and_survive_pickling(ptx, option, reason, log):
    with pytest.raises(CompileError) as caught:
        assemble(ptx, (option,))
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert error.reason == reason
        assert log in error.log and error.log in str(error) and "\0" not in str(error)
