"""evo.run.run and evo.run.restore: a checkpoint holds the whole state, and what decides it is checked before a run goes on."""

import errno
import os
import threading
from concurrent.futures import wait
from importlib import resources

import numpy as np
import pytest

from evo.errors import UserError
from evo.run import run_dir as run_dir_module
from evo.run.checkpoint import decode_checkpoint, encode_checkpoint
from evo.run.run import LiveRun, Run
from evo.run.run_dir import RunDir
from evo.search.archives import ARCHIVES
from evo.search.map_elites import Generation


def execute(run: Run, interrupted=lambda: False) -> str:
    return run.execute(lambda *_: None, lambda _: interrupted())


def assert_same_elites(one: Run, two: Run) -> None:
    first, second = one.search.archive.elites(), two.search.archive.elites()
    for name in vars(first):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


# An archive's config by its name.
ARCHIVE_CONFIGS = {"GridArchive": {"dims": [6, 5]}, "CVTArchive": {"type": "CVTArchive", "dims": None, "centroids": 12}}
EVERY_ARCHIVE = pytest.mark.parametrize("archive", [ARCHIVE_CONFIGS.get(name) for name in ARCHIVES], ids=ARCHIVES)


@pytest.mark.parametrize(
    ("archive", "starts"),
    [(ARCHIVE_CONFIGS["GridArchive"], {"count": 0}), (ARCHIVE_CONFIGS["CVTArchive"], {"count": 2, "generations": 2})],
    ids=["grid", "CVT and two starts"],
)
def test_a_run_interrupted_after_any_generation_goes_on_to_the_same_end(start, resume, archive, starts):
    changes = {"search": {"archive": archive, "memory_size": 150, "starts": starts}}  # a memory that forgets within the run
    whole = start(changes)
    assert execute(whole) == "stop.generations: 6"
    for generation in (1, 3, 5):
        stopped = start(changes)
        assert execute(stopped, lambda: stopped.search.counters.generations == generation) == "interrupted"  # noqa: B023
        stopped.close()
        again = resume(stopped.run_dir.path)
        assert again.search.counters.generations == generation
        assert execute(again) == "stop.generations: 6"
        assert_same_elites(whole, again)
        assert again.search.counters == whole.search.counters
        for name, array in whole.search.memory.arrays().items():
            np.testing.assert_array_equal(again.search.memory.arrays()[name], array, err_msg=name)
        assert again.search.elapsed_s > stopped.search.elapsed_s


def test_checkpoints_are_written_when_their_time_has_come_and_at_the_end(start, monkeypatch):
    saved = []
    monkeypatch.setattr(RunDir, "save_checkpoint", lambda self, generation, *_, **__: saved.append(generation))
    execute(start({"output": {"checkpoint_seconds": 1e6}}))
    assert saved == [0, 6]
    saved.clear()
    execute(start({"output": {"checkpoint_seconds": 0.0}}))
    assert saved == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("archive", [ARCHIVE_CONFIGS["GridArchive"], ARCHIVE_CONFIGS["CVTArchive"]], ids=["grid", "CVT"])
@pytest.mark.parametrize("by", ["seconds", "interruption"])
def test_a_run_stopped_inside_generation_0_shows_what_it_found_and_goes_on_to_the_same_end(start, resume, archive, by):
    changes = {"search": {"archive": archive, "initial": {"num_programs": 300}}}  # in parts of 64
    whole = start(changes)
    execute(whole)
    stopped = start({**changes, "stop": {"seconds": 1e-9} if by == "seconds" else {}})
    reason = execute(stopped, lambda: by == "interruption")
    assert reason == ("stop.seconds: 1e-09" if by == "seconds" else "interrupted")
    stopped.close()
    view, _ = Run.view(stopped.run_dir.path)
    counters = view.search.counters
    assert (counters.generations, counters.offspring >= counters.evaluations, counters.evaluations) == (0, True, 64)
    assert len(view.search.elites()) > 0 and (view.search.elites().slot < 300).all()
    assert [row["generations"] for row in view.run_dir.metrics()] == [0]
    again = resume(stopped.run_dir.path, "stop.seconds=null")
    assert execute(again) == "stop.generations: 6"
    assert_same_elites(whole, again)
    assert again.search.counters == whole.search.counters
    assert again.records().facts.tobytes() == whole.records().facts.tobytes()
    assert [row["generations"] for row in again.run_dir.metrics()] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "changes", [{"stop": {"evaluations": 40}}, {"search": {"learning": {"prescreen": 2, "evaluation_cost": 500.0}}}], ids=str
)
def test_an_interruption_inside_generation_0_finishes_no_run(start, resume, changes):
    changes = {"search": {"initial": {"num_programs": 300}, **changes.get("search", {})}, "stop": changes.get("stop", {})}
    whole = start(changes)
    reason = execute(whole)
    stopped = start(changes)
    assert execute(stopped, lambda: True) == "interrupted"
    stopped.close()
    again = resume(stopped.run_dir.path)
    assert execute(again) == reason
    assert_same_elites(whole, again)
    assert again.search.elapsed_s > stopped.search.elapsed_s > 0.0


def test_a_run_that_reached_its_seconds_inside_generation_0_is_finished(start, resume):
    stopped = start({"search": {"initial": {"num_programs": 300}}, "stop": {"seconds": 1e-9}})
    execute(stopped)
    stopped.close()
    again = resume(stopped.run_dir.path)
    assert execute(again) == "stop.seconds: 1e-09"
    assert_same_elites(stopped, again)


def test_a_newest_checkpoint_that_is_gone_is_named(start):
    run = start()
    execute(run)
    run.close()
    newest = run.run_dir.path / "checkpoints" / "00000006.ckpt"
    assert Run.view(run.run_dir.path)[1] == []
    newest.unlink()
    again, notes = LiveRun.resume(run.run_dir.path)
    again.close()
    assert notes[0] == f"{newest}: gone; going back to the checkpoint before" and again.search.counters.generations == 5
    assert Run.view(run.run_dir.path)[1] == [f"{newest}: gone; this is the checkpoint before"]


def test_what_this_machine_lacks_for_a_config_is_said(start, monkeypatch):
    monkeypatch.setattr("evo.evaluate.backends.ptx_vm.levels", lambda: ["baseline", "avx2"])
    with pytest.raises(UserError, match=r"^evaluation.simd: this CPU has no 'avx512', one of: auto, portable, baseline, avx2$"):
        start({}, "evaluation.simd=avx512")
    assert start({}, "evaluation.simd=portable").search.problem.evaluator.environment()["simd"] == "baseline"


class HeldWrites:
    """Holds back whoever writes a checkpoint, until `let_go` is set; counts them."""

    def __init__(self, monkeypatch):
        self.num_held = 0
        self.let_go, self.holds = threading.Event(), threading.Event()
        monkeypatch.setattr(run_dir_module, "encode_checkpoint", self)

    def __call__(self, *args):
        self.num_held += 1
        self.holds.set()
        assert self.let_go.wait(300)
        return encode_checkpoint(*args)


def test_the_search_goes_on_while_a_checkpoint_is_written_and_saves_itself_as_it_was_then(start, monkeypatch):
    run = start({"stop": {"generations": 4}, "output": {"checkpoint_seconds": 1e-9}})
    writes = HeldWrites(monkeypatch)
    saved, load = [], run.run_dir.load_checkpoint

    def watch(step, _):
        done = step.counters.generations if isinstance(step, Generation) else 0
        if done == 1:
            saved.append(run.search.archive.elites())
            assert writes.holds.wait(300)
        if done == 3:
            assert (writes.num_held, load()[0]["counters"]["generations"]) == (1, 0)
            writes.let_go.set()
            run.run_dir.wait_for_checkpoint()
            meta, arrays, _ = load()
            assert meta["counters"]["generations"] == 1
            for name, array in saved[0].arrays().items():
                np.testing.assert_array_equal(arrays[f"elites.{name}"], array)

    run.execute(watch)
    assert load()[0]["counters"]["generations"] == 4


def test_a_checkpoint_that_cannot_be_written_ends_the_run_with_the_next_generation(start, monkeypatch):
    run = start({"stop": {"generations": 9}, "output": {"checkpoint_seconds": 1e-9}})
    done = []

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def watch(step, _):
        if isinstance(step, Generation):
            done.append(step.counters.generations)
            wait([run.run_dir._saving])

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"metrics\.jsonl: cannot write: No space left on device$"):
        run.execute(watch)
    assert done == [1]
    assert run.run_dir.load_checkpoint()[0]["counters"]["generations"] == 0


@EVERY_ARCHIVE
def test_a_run_that_is_looked_at_has_the_elites_of_its_archive_and_the_names_of_its_cells(start, archive):
    run = start({"search": {"archive": archive}})
    execute(run)
    viewed = Run.view(run.run_dir.path)[0].search
    elites = run.search.archive.elites()
    assert len(elites) > 5
    for name, array in vars(viewed.elites()).items():
        np.testing.assert_array_equal(array, getattr(elites, name), err_msg=name)
    names = [viewed.layout.cell_name(cell) for cell in range(viewed.archive.cells)]
    assert names == [run.search.layout.cell_name(cell) for cell in range(run.search.archive.cells)]
    assert_same_elites(run, Run.view(run.run_dir.path)[0])


def test_what_a_resume_overrides_holds_for_the_next_one(start, resume, tmp_path):
    run = start()
    execute(run)
    run.close()
    once = resume(run.run_dir.path, "stop.generations=8", "evaluation.threads=1")
    assert execute(once, lambda: once.search.counters.generations == 7) == "interrupted"
    once.close()
    again = resume(run.run_dir.path)
    assert again.search.problem.config.evaluation.threads == 1
    assert execute(again) == "stop.generations: 8"
    whole = start({"stop": {"generations": 8}})
    execute(whole)
    assert_same_elites(whole, again)


@pytest.mark.parametrize("edited", ["a_task/task.py", "labels.csv"])
def test_a_task_or_a_file_that_it_declares_edited_while_the_run_was_going_is_found_out(
    start, resume, make_task, plane_folder, tmp_path, edited
):
    """The digest is that of the code that ran, not of the file as it is when a checkpoint is written."""
    (tmp_path / "labels.csv").write_text("1")
    source = (plane_folder / "task.py").read_text()
    task = make_task(source + "\n    def files(self):\n        return ['../labels.csv']\n")
    run = start({"task": str(task), "output": {"task_megabytes": 0}})
    run.close()
    run = resume(run.run_dir.path)
    with open(tmp_path / edited, "a") as file:
        file.write("# edited\n")
    execute(run)
    run.close()
    with pytest.raises(UserError, match="the task's files have changed since the checkpoint"):
        LiveRun.resume(run.run_dir.path)


def test_an_instruction_set_of_ones_own_may_move_but_not_change(start, resume, tmp_path):
    shipped = resources.files("evo.instructions").joinpath("instructions.json").read_text()
    (tmp_path / "own.json").write_text(shipped)
    run = start({"program": {"instruction_set": "own.json"}})
    execute(run, lambda: run.search.counters.generations == 2)
    run.close()
    (tmp_path / "own.json").rename(tmp_path / "moved.json")
    moved = f"program.instruction_set={tmp_path}/moved.json"
    resume(run.run_dir.path, moved).close()
    (tmp_path / "moved.json").write_text(shipped.replace('"num_commutative": 2', '"num_commutative": 0', 1))
    with pytest.raises(UserError, match=r"moved\.json: the instruction set has changed since the checkpoint"):
        LiveRun.resume(run.run_dir.path, (moved,))


def test_metrics_say_what_became_of_the_programs_of_each_emitter(start):
    run, default = start({"search": {"emitters": {"bred": {"weight": 3.0}, "new": {"kind": "random"}}}}), start()
    execute(run)
    execute(default)
    rows = run.run_dir.metrics()
    for row in rows:
        assert list(row["emitters"]) == ["initial", "bred", "new"]
        assert sum(each["offspring"] for each in row["emitters"].values()) == row["offspring"]
        assert sum(each["evaluations"] for each in row["emitters"].values()) == row["evaluations"]
        assert sum(each["new_cells"] for each in row["emitters"].values()) == row["elites"]
    assert [rows[-1]["emitters"][name]["offspring"] for name in ("initial", "bred", "new")] == [96, 5 * 48, 5 * 16]
    inserted = sum(row["inserted"] for row in rows)
    assert sum(each["new_cells"] + each["improved"] for each in rows[-1]["emitters"].values()) == inserted
    assert all("emitters" not in row for row in default.run_dir.metrics())


@pytest.mark.parametrize("override", ["seed=8", "stop.generations=0", "task=nowhere"])
def test_an_override_that_is_refused_is_not_kept(start, override):
    run = start()
    run.close()
    before = (run.run_dir.path / "config.yaml").read_text()
    with pytest.raises(UserError):
        LiveRun.resume(run.run_dir.path, ("stop.evaluations=500", override))
    assert (run.run_dir.path / "config.yaml").read_text() == before


@pytest.mark.parametrize("what", ["checkpoint format", "hash version"])
def test_a_run_of_another_version_is_refused_in_one_line_before_its_config_is_read(start, what):
    run = start()
    run.close()
    [newest] = (run.run_dir.path / "checkpoints").iterdir()
    (run.run_dir.path / "environment.json").write_text('{"evo": "0.1.7"}')
    if what == "checkpoint format":
        (run.run_dir.path / "config.yaml").write_text("a_key_of_old: 1\n")
        newest.write_bytes(newest.read_bytes()[:8] + (1).to_bytes(4, "little") + newest.read_bytes()[12:])
    else:
        meta, arrays = decode_checkpoint(newest.read_bytes())
        newest.write_bytes(b"".join(encode_checkpoint({**meta, "hash_version": 1}, arrays)))
    files = {path: path.read_bytes() for path in run.run_dir.path.rglob("*.*") if path.is_file()}
    for begin in (Run.view, LiveRun.resume):
        with pytest.raises(UserError, match=rf"^{run.run_dir.path}: made by evo 0\.1\.7: {what} 1; .*; open it with "):
            begin(run.run_dir.path)
    assert files == {path: path.read_bytes() for path in run.run_dir.path.rglob("*.*") if path.is_file()}


def test_the_qd_score_counts_from_the_low_end_of_the_tasks_objective_range(start, make_task, plane_folder):
    source = (plane_folder / "task.py").read_text()
    folder = make_task(source.replace("    inputs =", "    objective_range = (-2.0, 1.0)\n    inputs =", 1))
    run = start({"task": str(folder)})
    execute(run)
    objectives = run.search.archive.elites().objective
    assert run.run_dir.metrics()[-1]["qd_score"] == pytest.approx(float((objectives + 2.0).sum()))
