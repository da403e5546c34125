"""Runs on a GPU from end to end, over a stand-in for the GPU (emulator/): results do not depend on how the work is done,
and a GPU that is missing, too small or failing is told in one line."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from exact_instructions import EXACT

from .conftest import assert_same_state, run_folders, state_of

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")


@pytest.fixture
def config(small_config):
    """A search by a GPU, with changes merged in."""

    def make(backend: str = "cuda", instructions: Sequence[str] = EXACT, generations: int = 4):
        return small_config(
            {
                "program": {"vocabulary": {"instructions": list(instructions)}},
                "evaluation": {"backend": backend, "compile_workers": 1, "lane": "compile"},
                "stop": {"generations": generations},
                "output": {"plots": []},
            }
        )

    return make


@pytest.fixture
def emulated(fork_evo, tmp_path):
    """Runs a verb of `evo` whose GPU is the stand-in, with options of its own, and costs that a calibration finds."""

    def start(*args, options: str = "", costs: str = ""):
        environment = {"EVO_EMULATED_GPU": options, "EVO_EMULATED_GPU_COSTS": costs}
        return fork_evo(*args, env={**environment, "XDG_CACHE_HOME": str(tmp_path / "cache")})

    return start


@pytest.fixture
def run(emulated, tmp_path):
    """Runs a search with overrides, in a run folder of its own; gives the folder and the process."""

    def start(config, *overrides: str, name: str = "runs", options: str = ""):
        runs = tmp_path / name
        sets = [part for override in (*overrides, f"output.runs={runs}") for part in ("--set", override)]
        done = emulated("run", config, *sets, options=options)
        folders = run_folders(runs)
        return (folders[0] if folders else None), done

    return start


def only_line(text: str) -> str:
    """The one line of a text that has no other."""
    assert text.endswith("\n") and text.count("\n") == 1, text
    return text.removesuffix("\n")


def complete(started) -> object:
    """The state of a run that came to its end."""
    folder, done = started
    assert done.returncode == 0, done.stderr
    return state_of(folder)


def test_a_gpu_run_tunes_on_the_cpu_and_finds_the_same(run, config, repository):
    tuned = (f"task={repository / 'tests' / 'data' / 'erf'}", "task_options.num_points=50", "search.archive.dims=[6, 5]")
    tuned += ("search.tuning={share: 0.2, iterations: 4, linear_scale: false}", "search.batch_size=30")
    states = [complete(run(config(backend, generations=3), *tuned, name=backend)) for backend in ("cuda", "cpu")]
    assert states[0].counters["tuned"] > 5
    assert_same_state(*states)


def test_packs_workers_memory_and_the_time_of_work_do_not_change_a_run(run, config):
    path = config(instructions=[*EXACT, "sin_approx_ftz_f32", "rcp_approx_ftz_f32"])
    expected = complete(run(path, name="one"))
    small = ("evaluation.packing.sites_per_kernel=3", "evaluation.packing.kernels_per_module=2", "evaluation.compile_workers=2")
    assert_same_state(complete(run(path, *small, name="small packs", options="deferred=1")), expected)
    little = run(path, "evaluation.threads=1", name="one thread", options="total_memory=500000")  # too little for whole packs
    assert_same_state(complete(little), expected)


# With `deferred`, work is done only when it is waited for: the failure is found while other packs are under way.
# 702 is a kernel that never ends, as a GPU with a display reports it.
@pytest.mark.slow
@pytest.mark.parametrize("options", ["fault=load:3:209", "fault=launch:3:702:late,deferred=1"])
def test_a_run_resumed_after_a_fault_of_the_machine_equals_an_undisturbed_one(run, emulated, config, options):
    small = ("evaluation.packing.sites_per_kernel=8", "evaluation.packing.kernels_per_module=1")
    expected = complete(run(config(), *small, name="undisturbed"))
    folder, failed = run(config(), *small, options=options)
    assert failed.returncode == 3
    line = only_line(failed.stderr)
    assert line.startswith("evo: the GPU failed: ") and "CUDA_ERROR_" in line and f"evo resume {folder}" in line
    resumed = emulated("resume", folder)
    assert resumed.returncode == 0, resumed.stderr
    assert_same_state(state_of(folder), expected)


def test_a_failing_gpu_is_the_only_line_of_output_on_stderr(run_emulated, config):
    """In a process of its own: at its end Python prints what multiprocessing left behind."""
    failed = run_emulated("run", config(), options="fault=launch:3:719")
    assert failed.returncode == 3
    line = only_line(failed.stderr)
    assert line.startswith("evo: the GPU failed: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("devices=0", "finds no usable GPU"),
        ("driver=12040", "supports CUDA 12.4, but evo needs CUDA 13.0"),
        ("capability=7.0", "too old, evo needs compute capability 7.5"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_one_line(run, config, options, message):
    _, failed = run(config(), options=options)
    assert failed.returncode == 2
    line = only_line(failed.stderr)
    assert line.startswith("evo: ") and message in line


@pytest.mark.parametrize(
    ("costs", "options", "device", "measured"),
    [
        ("1e-3,1e-4", "", "Emulated GPU", "CPU 1 ms (1 thread), GPU interpreted 100 us"),
        ("1e-6,1e-9", "", "CPU", "CPU 1 us (1 thread)"),
        ("1e-3,1e-4", "devices=0", "CPU", None),
    ],
)
def test_auto_takes_what_is_measured_to_be_faster_and_keeps_it(emulated, line_config, tmp_path, costs, options, device, measured):
    done = emulated("run", line_config("auto"), options=options, costs=costs)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"programs run on: {device}\n" in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("measured: ")]
    assert lines == ([] if measured is None else [f"measured: a program takes: {measured}"])
    (folder,) = run_folders(tmp_path / "runs")
    record = json.loads((folder / "environment.json").read_text())
    assert record["backend"] == ("cpu" if device == "CPU" else "cuda")
    assert ("calibration" in record) == (measured is not None)
    if measured:
        assert record["calibration"]["cpu_s"] == float(costs.split(",")[0])
    # Costs have turned round: the run goes on where it began.
    turned = ",".join(reversed(costs.split(",")))
    resumed = emulated("resume", folder, "--set", "stop.generations=2", options=options, costs=turned)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert f"programs run on: {device}\n" in resumed.stdout and "measured" not in resumed.stdout


def test_elites_of_a_run_are_the_same_on_both_backends(run, emulated, config):
    folder, done = run(config())
    assert done.returncode == 0, done.stderr
    checked = emulated("doctor", folder)
    assert checked.returncode == 0, checked.stderr
    assert "100.00%" in next(line for line in checked.stdout.splitlines() if line.startswith("bit-identical scores"))


@pytest.mark.parametrize(
    ("capability", "how"), [("10.7", "programs are compiled for sm_103"), ("13.0", "the driver compiles programs")]
)
def test_the_doctor_says_how_a_gpu_newer_than_the_assembler_is_used(emulated, capability, how):
    seen = emulated("doctor", options=f"capability={capability}")
    assert seen.returncode == 0, seen.stderr
    (line,) = (line for line in seen.stdout.splitlines() if line.startswith("GPU 0"))
    assert f"sm_{capability.replace('.', '')}" in line and how in line
