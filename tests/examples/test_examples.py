"""docs/examples: each is built without a warning and run in each language, and prints what lies in expected/.

The files in expected/ were written by hand from csrc/stack_ptx.h and csrc/ptx_inject.h.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
LANGUAGES = {"c": ".c", "cpp": ".cpp", "python": ".py"}
# Programs that print stubs, and those that are given PTX or CUDA.
STUBS = [
    *("simple", "routines", "meta_instructions", "predicates", "special_registers", "store_and_load"),
    *("mma", "half_types", "bytes", "philox"),
]
INJECTING = ["inject", "two_sites", "custom_types"]
OTHERS = ["comment_form"]
NOT_CPP = ["itll"]
ONLY_PYTHON = ["cuda_to_cubin", "inline_asm"]


def expected(name: str) -> str:
    return (EXAMPLES / "expected" / f"{name}.txt").read_text()


# C++ takes the longest to build; its first example shows that the headers are its own, as test_c_headers.py does of all.
@pytest.mark.parametrize(
    ("language", "name"), [("cpp", STUBS[0]), *((language, name) for language in ("c", "python") for name in STUBS)]
)
def test_example_prints_the_expected_stub(run_example, language, name):
    assert run_example(language, name) == expected(name)


@pytest.mark.parametrize("name", INJECTING)
def test_example_prints_its_sites_and_writes_the_same_ptx_in_every_language(run_example, annotated_ptx, tmp_path, name):
    source = tmp_path / "source.ptx"
    source.write_text(annotated_ptx(name))
    written = set()
    for language in LANGUAGES:
        output = tmp_path / f"{language}.ptx"
        assert run_example(language, name, source, output) == expected(name)
        written.add(output.read_text())
    [ptx] = written
    assert "PTX_INJECT" not in ptx


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_become_inline_assembly(run_example, language):
    assert run_example(language, "comment_form", EXAMPLES / "cuda" / "comment_form.cu") == expected("comment_form")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_wrong_annotation_is_reported_with_its_place(run_example, language, tmp_path):
    source = tmp_path / "wrong.cu"
    source.write_text("void f() {\n    /* PTX_INJECT func\n        in f32\n    */\n}\n")
    with pytest.raises(AssertionError, match=r"wrong\.cu:3:\d+: "):
        run_example(language, "comment_form", source)


@pytest.mark.parametrize("language", ["c", "python"])
def test_a_model_learns_the_same_in_every_language(run_example, language):
    assert run_example(language, "itll") == expected("itll")


def test_all_steps_in_one_file_make_a_cubin(run_example, annotated_ptx, tmp_path):
    output = tmp_path / "kernel.cubin"
    assert run_example("python", "cuda_to_cubin", output) == expected("cuda_to_cubin")
    assert output.read_bytes()[:4] == b"\x7fELF"


def test_a_stub_can_be_written_into_inline_assembly(run_example):
    assert run_example("python", "inline_asm") == expected("inline_asm")


def test_cuda_that_nvrtc_refuses_is_reported_without_a_traceback(annotated_ptx, tmp_path):
    source = tmp_path / "wrong.cu"
    source.write_text("int f( {\n")
    command = [sys.executable, EXAMPLES / "cuda" / "nvrtc.py", source, tmp_path / "out.ptx"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "kernel.cu(1): error" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_example_is_run_and_listed():
    both = {*STUBS, *INJECTING, *OTHERS}
    for language, suffix in LANGUAGES.items():
        present = {path.stem for path in (EXAMPLES / language).glob(f"*{suffix}")}
        others = {"c": NOT_CPP, "cpp": [], "python": [*NOT_CPP, *ONLY_PYTHON]}
        assert present == both | set(others[language])
    every = both | {*NOT_CPP, *ONLY_PYTHON}
    assert {path.stem for path in (EXAMPLES / "expected").iterdir()} == every
    listed = set(re.findall(r"^\| `(\w+)`", (EXAMPLES / "README.md").read_text(), re.MULTILINE))
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()} - {*LANGUAGES, "cuda", "expected", "custom_types"}
    assert listed == every | folders
