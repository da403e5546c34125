"""Whole runs on the GPU: the main job, resuming, determinism, a task's own kernel, and GPUs that fail."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[2]
SMOKE = REPOSITORY / "configs" / "domain_coloring_smoke.yaml"
OWN_KERNEL = REPOSITORY / "tests" / "data" / "own_kernel"

IS_EMULATED = "EVO_EMULATED_GPU" in os.environ
# The stand-in ends an endless kernel by itself, and no kernel that is only slow must be taken for one.
LAUNCH_SECONDS = 60 if IS_EMULATED else 3
# A picture takes the stand-in a twentieth of a second.
FEWER = (
    ("task_options.size=32", "search.initial.num_programs=96", "search.archive.dims=[6, 5]", "stop.generations=1")
    if IS_EMULATED
    else ()
)


@pytest.fixture
def gpu_evo(request, tmp_path):
    """Runs the `evo` command in tmp_path, with a cubin cache of the test's own; over the stand-in for a driver in a fork."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    if IS_EMULATED:
        environment["EVO_EMULATED_GPU"] = os.environ["EVO_EMULATED_GPU"]
    command = request.getfixturevalue("fork_evo" if IS_EMULATED else "run_evo")
    return lambda *args: command(*args, env=environment)


def settings(*overrides: str) -> list[str]:
    return [part for override in ("evaluation.backend=cuda", "output.plots=[]", *overrides) for part in ("--set", override)]


def run_folder(completed: subprocess.CompletedProcess, tmp_path: Path) -> Path:
    (line,) = (line for line in completed.stdout.splitlines() if line.startswith("run folder: "))
    return tmp_path / line.removeprefix("run folder: ")


def archive(folder: Path) -> dict[str, bytes]:
    with np.load(folder / "archive.npz") as arrays:
        return {name: arrays[name].tobytes() for name in arrays.files}


def test_the_main_job_runs_on_the_gpu_and_both_backends_agree_on_its_elites(gpu_evo, tmp_path):
    completed = gpu_evo("run", SMOKE, *settings(*FEWER))
    assert completed.returncode == 0, completed.stderr
    folder = run_folder(completed, tmp_path)
    assert json.loads((folder / "environment.json").read_text())["backend"] == "cuda"
    last = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["coverage"] > 0.2 and last["failed"] == 0
    assert {"wait_for_cubins", "load", "wait_for_results", "kernels", "score_threads"} <= set(last["times_s"])
    checked = gpu_evo("doctor", folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "verdict                    passed" in checked.stdout


def test_packs_workers_and_resuming_do_not_change_a_run(gpu_evo, tmp_path):
    few = ("search.initial.num_programs=32", "search.batch_size=24", "task_options.size=32", "evaluation.lane=compile")
    packs = ("evaluation.packing={sites_per_kernel: 7, kernels_per_module: 2}", "evaluation.compile_workers=3")
    whole = gpu_evo("run", SMOKE, *settings(*few, "stop.generations=3"))
    other = gpu_evo("run", SMOKE, *settings(*few, "stop.generations=3", *packs))
    parts = gpu_evo("run", SMOKE, *settings(*few, "stop.generations=1", "evaluation.threads=1"))
    folders = [run_folder(completed, tmp_path) for completed in (whole, other, parts)]
    resumed = gpu_evo("resume", folders[2], "--set", "stop.generations=3")
    assert resumed.returncode == 0, resumed.stderr
    assert archive(folders[1]) == archive(folders[0])
    assert archive(folders[2]) == archive(folders[0])


@pytest.fixture
def own_kernel_config(tmp_path):
    """Writes a config of the tests' task with a kernel of its own, or of a copy of it with another kernel."""

    def make(kernel: str | None = None) -> Path:
        task = OWN_KERNEL
        if kernel:
            task = tmp_path / "task"
            task.mkdir()
            (task / "task.py").write_text((OWN_KERNEL / "task.py").read_text())
            (task / "kernel.cu").write_text(kernel)
        config = {
            "task": str(task),
            "program": {
                "max_length": 48,
                "vocabulary": {"instructions": ["add_ftz_f32", "mul_ftz_f32", "sub_ftz_f32", "rcp_approx_ftz_f32"]},
            },
            "search": {
                "archive": {"dims": [8] * len(measures())},
                "batch_size": 64,
                "initial": {"num_programs": 64, "min_length": 4, "max_length": 24},
            },
            "stop": {"generations": 2},
            "output": {"checkpoint_seconds": 0.0},
        }
        path = tmp_path / "own.yaml"
        path.write_text(json.dumps(config))
        return path

    return make


def measures() -> list[str]:
    from evo.tasks.folder import load_task

    return list(load_task(OWN_KERNEL, {}).measures)


def test_a_tasks_own_kernel_scores_as_its_score_method_does(gpu_evo, own_kernel_config, tmp_path):
    completed = gpu_evo("run", own_kernel_config(), *settings())
    assert completed.returncode == 0, completed.stderr
    checked = gpu_evo("doctor", run_folder(completed, tmp_path))
    assert checked.returncode == 0, checked.stdout + checked.stderr


# The kernel of the tests' task, with a fault in programs of 10 instructions or more.
WILD = """\
#include "evo.cuh"
extern "C" __global__ void evaluate(EvoPoints points, const int* num_instructions, double* scores) {
    if (threadIdx.x) return;
    const unsigned int site = blockIdx.y;
    float v, w;
    evo_program(site, points.t(0), points.x(7), points.y(9), points.n(3), v, w);
    if (num_instructions[site] >= 10) { FAULT }
    double* score = scores + (1 + EVO_NUM_MEASURES) * site;
    score[0] = v + w;
    score[1] = v;
    score[2] = num_instructions[site];
}
"""


@pytest.mark.parametrize(
    ("fault", "options", "name"),
    [
        ("*(volatile int*)8 = 1;", (), "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ('while (true) asm volatile("");', (f"evaluation.launch_seconds={LAUNCH_SECONDS}",), ""),
    ],
    ids=["poisoned context", "endless kernel"],
)
def test_a_gpu_failure_ends_the_run_in_one_line(gpu_evo, own_kernel_config, tmp_path, fault, options, name):
    completed = gpu_evo("run", own_kernel_config(WILD.replace("FAULT", fault)), *settings(*options))
    assert completed.returncode == 3, completed.stdout + completed.stderr
    (line,) = [line for line in completed.stderr.splitlines() if line.startswith("evo: ")]
    assert line.startswith("evo: the GPU failed: ") and name in line
    assert list((tmp_path / line.rpartition(" ")[2] / "checkpoints").glob("*.ckpt"))
