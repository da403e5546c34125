"""evo.cli.view_verbs and evo.cli.machine_verbs: what they print and draw, and how a shell completes them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def sections(text: str) -> dict[str, str]:
    """Heading -> what stands below it."""
    parts = re.split(r"^(# .*)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_looking_at_a_run_changes_nothing_in_it(fork_evo, finished_run):
    def stamps() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in finished_run.rglob("*")}

    before = stamps()
    assert fork_evo("show", finished_run).returncode == 0
    assert stamps() == before


def test_plot_draws_the_plots_asked_for_the_same_again_and_prints_their_paths(fork_evo, finished_run, tmp_path):
    run = Path(shutil.copytree(finished_run, tmp_path / "run"))
    shutil.rmtree(run / "plots")
    names = ("best.png", "contact_sheet.png")
    completed = fork_evo("plot", run, "--plot", "best", "--plot", "contact_sheet")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert completed.stdout.split() == [f"{run}/plots/{name}" for name in names]
    assert {path.name for path in (run / "plots").iterdir()} == {*names}
    for name in names:
        with Image.open(run / "plots" / name) as again, Image.open(finished_run / "plots" / name) as first:
            assert again.tobytes() == first.tobytes()


def test_eval_scores_and_pictures_a_program_written_by_hand(fork_evo, small_config, tmp_path):
    (tmp_path / "saddle.txt").write_text("# t + x y, which is the target itself\n%t %x %y mul_ftz_f32 add_ftz_f32\n")
    completed = fork_evo("eval", small_config(), "saddle.txt", "--output", "pictures")
    assert (completed.returncode, completed.stderr) == (0, "")
    found = sections(completed.stdout.removesuffix("pictures/saddle.png\npictures/saddle.gif\n"))
    assert list(found) == ["# program: 5 words, 2 live PTX instructions", "# expression", "# PTX stub", "# scores"]
    assert found["# expression"].strip() == "v = y*x + t"
    assert "mul.ftz.f32" in found["# PTX stub"] and "add.ftz.f32" in found["# PTX stub"]
    lines = found["# scores"].split("\n")
    assert lines[1:3] == ["status: ok", "objective  1"]
    assert completed.stdout.endswith("pictures/saddle.png\npictures/saddle.gif\n")
    with Image.open(tmp_path / "pictures" / "saddle.png") as picture:
        pixels = np.asarray(picture)
    # At t = 0 it is x y: positive (red) where the signs agree, negative (green) where they do not, about zero on the axes.
    size = pixels.shape[0]
    near, far, middle = size // 8, size - 1 - size // 8, size // 2
    assert pixels[near, near].tolist() == pixels[far, far].tolist() == [255, 0, 0]
    assert pixels[near, far].tolist() == pixels[far, near].tolist() == [0, 255, 0]
    assert pixels[middle, near].tolist() == [0, 0, 255]
    with Image.open(tmp_path / "pictures" / "saddle.gif") as animation:
        assert animation.n_frames > 10


@pytest.mark.parametrize(
    ("words", "completed"),
    [(["evo", "sw"], ["sweep"]), (["evo", "run", "--s"], ["--set"]), (["evo", "export", "--format", "py"], ["python"])],
    ids=" ".join,
)
def test_bash_completes_verbs_options_and_values(evo_command, tmp_path, words, completed):
    """As the guide says, in a new shell. Bash calls the function with the words typed so far and the number of the last."""
    script = f"""
        source <(_EVO_COMPLETE=bash_source evo)
        complete -p evo
        COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}
        _evo_completion evo
        echo "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "PATH": f"{evo_command.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.splitlines() == ["complete -o nosort -F _evo_completion evo", " ".join(completed)], done.stderr


@pytest.mark.slow
def test_a_function_in_cuda_becomes_a_proven_header(run_evo, tmp_path):
    source = tmp_path / "swap.cu"
    source.write_text("unsigned swap(unsigned q) { return (q & 255) << 8 | (q >> 8 & 255) | (q >> 16) << 16; }\n")
    options = ["task_options.function=swap.cu:swap", "stop={evaluations: 2000}", "output.runs=runs"]
    completed = run_evo("run", "exact", *(word for option in options for word in ("--set", option)))
    assert completed.returncode == 0, completed.stderr
    source.rename(tmp_path / "moved.cu")  # the run has its own copy
    [run] = (tmp_path / "runs" / "exact").iterdir()
    completed = run_evo("prove", run)
    assert "proven for every input, in parts: 4,294,967,296 inputs" in completed.stdout, completed.stderr
    assert "1 instruction, 2 slots on sm_90" in completed.stdout  # a permutation of bytes
    assert "prmt.b32" in (run / "proofs" / "exact.cuh").read_text()
    [certificate] = (run / "proofs").glob("*.json")
    [copy] = run.rglob("swap.cu")
    assert run_evo("prove", "--check", certificate).returncode == 2
    assert run_evo("prove", "--check", certificate, "--code", f"{copy}:swap").returncode == 0
