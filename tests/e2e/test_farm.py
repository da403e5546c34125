"""Runs that a farm compiles for, over a stand-in for the GPU: whatever workers suffer, the archive is that of a local run.

`evo.cli.worker_status` is what a worker shows meanwhile.
"""

import json
import os
import random
import signal
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from .conftest import Process, assert_same_state, num_rows, run_folders, state_of

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
pytest.importorskip("zmq", reason="built without evo-ptx[farm]")

EXACT = ["add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "min_ftz_f32", "max_ftz_f32"]
# So many packs that workers hold some at any moment.
PACKING = {"sites_per_kernel": 4, "kernels_per_module": 1}


@pytest.fixture
def address() -> Iterator[str]:
    """An address of this machine that nobody else gets while the test runs.

    A port that a socket is bound to is given to nobody who asks for any free one. As both allow it, a run may listen there.
    """
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield f"tcp://127.0.0.1:{reserved.getsockname()[1]}"


@pytest.fixture
def config(small_config):
    """A search by a GPU in small packs; with an address, compiled by a farm alone."""

    def make(address: str | None = None, generations: int = 4, **compilers) -> Path:
        farm = {"farm": {"listen": address}, "local_workers": 0} if address else {"compile_workers": 1, **compilers}
        name = "farm" if address else "cluster" if compilers else "local"
        return small_config(
            {
                "program": {"vocabulary": {"instructions": EXACT}},
                "evaluation": {"backend": "cuda", "lane": "compile", "packing": PACKING, "cache_megabytes": 0, **farm},
                "stop": {"generations": generations},
                "output": {"plots": [], "runs": name},
            },
            name,
        )

    return make


@pytest.fixture
def start(start_fork, tmp_path):
    """Starts commands whose GPU is the stand-in."""
    return partial(start_fork, env={"EVO_EMULATED_GPU": "", "XDG_CACHE_HOME": str(tmp_path / "cache")})


@pytest.fixture
def start_worker(start, address):
    return lambda *options: start("worker", "--connect", address, "--workers", "1", *options)


def complaints(process) -> list[str]:
    """Lines of a command on stderr, but for the line that no worker is there yet: on a busy machine workers start late."""
    return [
        line for line in process.stderr.splitlines() if not line.startswith("farm: no worker is there yet; start some with: ")
    ]


def status_of(worker: Process) -> dict:
    """The last status of a worker with --json, empty before the first."""
    lines = worker.stdout.rpartition("\n")[0].splitlines()
    return json.loads(lines[-1]) if lines else {}


def test_a_run_that_a_farm_compiles_is_that_of_this_machine(start, start_worker, address, config, tmp_path):
    run, worker, plain = start("run", config(address)), start_worker("--json"), start_worker()
    assert run.wait() == 0, run.stderr
    local = start("run", config())
    assert local.wait() == 0, local.stderr
    assert_same_state(*(state_of(run_folders(tmp_path / name)[0]) for name in ("farm", "local")))
    assert complaints(run) == complaints(local)
    rows = [json.loads(line) for line in (run_folders(tmp_path / "farm")[0] / "metrics.jsonl").read_text().splitlines()]
    assert all(set(row["farm"]) == {"workers", "lost"} and 1 <= row["farm"]["workers"] <= 2 for row in rows)
    assert f"workers {rows[-1]['farm']['workers']}" in run.stdout
    # They wait for the next run, until they are interrupted.
    worker.wait_until(lambda: status_of(worker).get("run") is False)
    plain.wait_until(lambda: plain.stdout.rpartition("\n")[0].rpartition("\n")[2].startswith(f"waits for {address}  "))
    status = status_of(worker)
    for ended in (worker, plain):
        ended.signal(signal.SIGINT)
        assert (ended.wait(), ended.stderr) == (0, "")
    assert set(status) == {"address", "run", "requests", "programs", "failures", "queue", "programs_per_s"}
    assert (status["queue"], status["failures"]) == (0, 0)


NUM_WORKERS = 3


@pytest.mark.slow
def test_kills_of_workers_and_of_the_run_change_nothing(start, start_worker, address, config, tmp_path):
    """SIGKILL at random moments; each worker is replaced, the run is resumed."""
    rng = random.Random(1)
    run, workers = start("run", config(address, generations=10**6)), [start_worker() for _ in range(NUM_WORKERS)]
    run.wait_until(lambda: run_folders(tmp_path / "farm"))
    (folder,) = run_folders(tmp_path / "farm")
    for _ in range(3):
        wanted = num_rows(folder) + rng.randint(1, 4)
        for _ in range(2):
            victim = rng.randrange(NUM_WORKERS)
            for _ in range(rng.randint(0, 3000)):  # somewhere within a generation
                os.sched_yield()
            workers[victim].signal(signal.SIGKILL)
            assert workers[victim].wait() == -signal.SIGKILL
            workers[victim] = start_worker()
        run.wait_until(lambda: num_rows(folder) >= wanted)  # noqa: B023 - used at once
        for _ in range(rng.randint(0, 3000)):
            os.sched_yield()
        run.signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        run = start("resume", folder)
    run.wait_until(lambda: "run folder" in run.stdout)
    run.signal(signal.SIGKILL)
    run.wait()
    generations = num_rows(folder) + 3
    run = start("resume", folder, "--set", f"stop.generations={generations}")
    assert run.wait() == 0, run.stderr
    local = start("run", config(generations=generations))
    assert local.wait() == 0, local.stderr
    (expected,) = run_folders(tmp_path / "local")
    assert_same_state(state_of(folder), state_of(expected))
    assert not (folder / "quarantine").exists()


def test_cubins_of_a_farm_are_those_of_this_machine(fork_evo, start_evo, start, address, small_config, tmp_path):
    keys = fork_evo("worker", "--new-keys", "keys")
    assert (keys.returncode, keys.stderr) == (0, "")
    assert "keys/run" in keys.stdout and "keys/worker" in keys.stdout
    worker = start_evo("worker", "--connect", address, "--workers", "2", "--keys", "keys/worker", "--json")
    config, no_cache = small_config(), ("--set", "evaluation.cache_megabytes=0")
    farm = ("--set", f"evaluation.farm={{listen: '{address}', keys: keys/run}}", "--set", "evaluation.local_workers=0")
    compiled = fork_evo("compile", config, "--random", "40", "--output", "farm", *farm, *no_cache)
    assert (compiled.returncode, complaints(compiled)) == (0, [])
    assert fork_evo("compile", config, "--random", "40", "--output", "local", *no_cache).returncode == 0
    farm_programs, local_programs = (
        json.loads((tmp_path / name / "index.json").read_text())["programs"] for name in ("farm", "local")
    )
    assert [entry["program"] for entry in farm_programs] == [entry["program"] for entry in local_programs]
    assert len(farm_programs) == 40
    worker.wait_until(lambda: status_of(worker).get("run") is False and status_of(worker)["programs"])
    status = status_of(worker)
    sites = {(entry["file"], entry["kernel"], entry["site"]) for entry in local_programs}  # equal programs have one
    assert (status["programs"], status["failures"], status["queue"]) == (len(sites), 0, 0)
    worker.signal(signal.SIGINT)
    assert (worker.wait(), worker.stderr) == (0, "")


# ---- commands


COMPILE = ["compile", "small.yaml", "--output", "out", "--set"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["worker", "--connect", "tcp://192.0.2.1:5711"], "tcp://192.0.2.1:5711 is not on this machine"),
        (["worker", "--connect", "tcp://127.0.0.1:1", "--keys", "none"], "none/secret.key: cannot read the key"),
        (["worker", "--new-keys", "keys", "--name", "run"], "--name run: write a name"),
        ([*COMPILE, "evaluation.farm.listen=tcp://0.0.0.0:5711"], "farm.listen: tcp://0.0.0.0:5711 is not on this machine"),
        (
            [*COMPILE, "evaluation.local_workers=0"],
            "local_workers are the processes beside a farm; without one, set",
        ),
        ([*COMPILE, "evaluation.farm={listen: 'tcp://127.0.0.1:1', keys: none}"], "none/secret.key: cannot read the key"),
        (
            [*COMPILE, "evaluation.farm.listen=tcp://127.0.0.1:1", "--set", "evaluation.cluster.scheduler=tcp://127.0.0.1:1"],
            "farm and cluster do not go together: the cluster's workers compile what they run",
        ),
        (
            ["run", "small.yaml", "--set", "evaluation.farm.listen=tcp://127.0.0.1:0", "--set", "evaluation.backend=cpu"],
            "evaluation.farm: programs run on the CPU, so there is nothing to compile; set evaluation.backend to cuda",
        ),
        (
            ["sweep", "small.yaml", "--seeds", "1,2", "--set", "evaluation.farm.listen=tcp://127.0.0.1:5711"],
            "evaluation.farm: the runs of a sweep cannot all listen at one address",
        ),
        (["worker"], "worker: give --connect ADDRESS or --server-file FILE"),
    ],
)
def test_mistakes_are_one_line(fork_evo, small_config, tmp_path, arguments, message):
    small_config()
    done = fork_evo(*arguments, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("evo: ") and message in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not run_folders(tmp_path / "runs")
