"""The command ptxinject: what it writes where, and that a mistake writes nothing."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from evo.native.ptx_inject import process_cuda
from evo.ptx_inject.cli import main

GOOD = "f();\n/* PTX_INJECT s\n  out f32 z\n*/\n"
BAD = "f();\n/* PTX_INJECT s\n  out f33 z\n*/\n"
MASK = {"name": "mask", "register_type": "u32", "mov_postfix": "b32", "register_char": "r"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to be in, with cuda/a.cu and cuda/b.cu."""
    monkeypatch.chdir(tmp_path)
    Path("cuda").mkdir()
    Path("cuda/a.cu").write_text(GOOD)
    Path("cuda/b.cu").write_text("nothing here\r\n")
    return tmp_path


def ptxinject(*arguments) -> tuple[int, list[str]]:
    """Exit code and lines on stderr; nothing is ever printed on stdout."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.stdout == ""
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stderr.splitlines()


def files() -> set[str]:
    return {str(path) for path in Path().rglob("*") if path.is_file()}


def test_the_installed_command_processes_all_files_into_a_folder(folder):
    command = Path(sys.executable).with_name("ptxinject")
    assert command.is_file(), f"ptxinject is not installed in this Python ({sys.executable}): pip install '.[test]'"
    arguments = ["cuda/a.cu", "cuda/b.cu", "-o", "processed/"]
    done = subprocess.run([command, *arguments], check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert Path("processed/a.cu").read_text() == process_cuda(GOOD)
    assert Path("processed/b.cu").read_bytes() == b"nothing here\r\n"
    assert files() == {"cuda/a.cu", "cuda/b.cu", "processed/a.cu", "processed/b.cu"}


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["cuda/a.cu", "-o", "new.cu"], {"new.cu"}),
        (["cuda/a.cu", "-o", "new/"], {"new/a.cu"}),
        (["cuda/a.cu", "-o", "there"], {"there/a.cu"}),
        (["cuda/a.cu", "cuda/b.cu", "-o", "new"], {"new/a.cu", "new/b.cu"}),
    ],
)
def test_one_input_goes_to_a_file_unless_a_folder_is_named(folder, arguments, written):
    Path("there").mkdir()
    before = files()
    assert ptxinject(*arguments) == (0, [])
    assert files() - before == written


def test_errors_of_all_files_have_line_and_column_and_nothing_is_written(folder):
    Path("cuda/bad.cu").write_text(BAD)
    Path("cuda/nul.cu").write_bytes(b"a\nbc\0")
    before = files()
    code, lines = ptxinject("cuda/bad.cu", "cuda/a.cu", "cuda/nul.cu", "cuda/none.cu", "cuda", "-o", "out/")
    assert code == 2
    assert len(lines) == 4
    assert re.fullmatch(r"cuda/bad\.cu:3:7: error: not a type .*", lines[0])
    assert re.fullmatch(r"cuda/nul\.cu:2:3: error: a NUL byte.*", lines[1])
    assert lines[2] == "cuda/none.cu: cannot read it: No such file or directory"
    assert lines[3] == "cuda: cannot read it: Is a directory"
    assert files() == before
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cuda/a.cu", "-o", "cuda"], "cuda/a.cu: would overwrite the input cuda/a.cu"),
        (["cuda/a.cu", "-o", "hard.cu"], "hard.cu: would overwrite the input cuda/a.cu"),
        (
            ["cuda/b.cu", "--types", "types.json", "-o", "types.json"],
            "types.json: would overwrite the input types.json",
        ),
        (
            ["cuda/a.cu", "cuda/../cuda/a.cu", "-o", "out"],
            "cuda/../cuda/a.cu: error: would be written to out/a.cu, where cuda/a.cu goes",
        ),
        (["cuda/a.cu", "cuda/b.cu", "-o", "file"], "file: error: is a file, must be a folder for 2 inputs"),
        (["cuda/a.cu", "-o", "file/"], "file: error: is a file, must be a folder for 1 input"),
        (["cuda/a.cu", "-o", "file/x.cu"], "file/x.cu: cannot write it: Not a directory"),
        (["cuda/a.cu", "-o", "/dev/null"], "/dev/null: exists and is not a file"),
        (["cuda/a.cu", "--types", "none.json", "-o", "x.cu"], "none.json: cannot read the types: No such file or directory"),
    ],
)
def test_impossible_outputs_are_refused_and_nothing_is_written(folder, arguments, message):
    Path("file").write_text("a file")
    Path("types.json").write_text(json.dumps({"abi_version": 1, "data_type_infos": [MASK]}))
    os.link("cuda/a.cu", "hard.cu")
    contents = {name: Path(name).read_bytes() for name in files()}
    assert ptxinject(*arguments) == (2, [message])
    assert {name: Path(name).read_bytes() for name in files()} == contents


def test_when_one_output_cannot_be_written_none_is(folder):
    Path("out").mkdir()
    Path("out/a.cu").write_text("old")
    Path("cuda/b.cu").write_text("/" * 20_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # a disk that is full after the first file
    try:
        code, lines = ptxinject("cuda/a.cu", "cuda/b.cu", "-o", "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 2
    assert lines == ["out/b.cu: cannot write it: File too large"]
    assert files() == {"cuda/a.cu", "cuda/b.cu", "out/a.cu"}
    assert Path("out/a.cu").read_text() == "old"


@pytest.mark.parametrize("arguments", [[], ["cuda/a.cu"], ["-o", "out"], ["cuda/a.cu", "-o", "x", "--nix"]])
def test_a_wrong_command_line_is_exit_code_2(folder, arguments):
    assert ptxinject(*arguments)[0] == 2


def test_types_of_a_file_replace_the_default_ones(folder):
    Path("types.json").write_text(json.dumps({"abi_version": 1, "data_type_infos": [MASK]}))
    Path("cuda/mask.cu").write_text("/* PTX_INJECT s\n in mask m\n*/")
    assert ptxinject("cuda/mask.cu", "-o", "out.cu", "--types", "types.json") == (0, [])
    assert '"r"(m)' in Path("out.cu").read_text()
    code, lines = ptxinject("cuda/a.cu", "-o", "out.cu", "--types", "types.json")
    assert (code, lines) == (2, ["cuda/a.cu:3:7: error: not one of the types that were given"])
    code, lines = ptxinject("cuda/mask.cu", "-o", "out.cu")
    assert code == 2 and lines[0].startswith("cuda/mask.cu:2:5: error: ")
