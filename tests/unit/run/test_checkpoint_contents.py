"""evo.run.checkpoint_contents: whoever writes a checkpoint writes a right checksum; what it holds is told in one line."""

import copy

import numpy as np
import pytest

from evo.errors import UserError
from evo.run.checkpoint import CheckpointError
from evo.run.checkpoint_contents import check_arrays, check_meta, check_records
from evo.run.run import LiveRun, Run
from evo.run.run_dir import RunDir
from evo.search.lineage_records import LineageLogError, Records


@pytest.fixture
def run(start):
    """A run between two starts, with all that a grid's checkpoint can hold but tidy programs."""
    run = start({"search": {"starts": {"count": 2, "generations": 2}}})
    run.execute(lambda *_: None, lambda _: run.search.counters.generations == 3)
    return run


@pytest.fixture
def saved(run):
    meta, arrays = run.search.saved()
    return {**meta, "metrics_num_bytes": 0}, arrays


def test_what_a_search_saves_is_in_order(run, saved):
    meta, arrays = saved
    check_meta(meta)
    check_arrays(arrays, run.search.problem, meta)
    assert {"population.cell", "ancestry.population", "emitters.success"} <= arrays.keys()


def changed(array):
    """Arrays that are wrong whatever their name is, by what is wrong with them."""
    yield "type", array.astype("<c16")
    yield "width", np.concatenate([array, array[..., :1]], axis=-1) if array.ndim > 1 or len(array) > 1 else array[:0]
    yield "dimension", array[None]
    if array.dtype.kind == "i":
        yield "value", np.where(np.arange(array.size).reshape(array.shape) == 1 % array.size, np.iinfo(array.dtype).min, array)
    if array.dtype.kind == "f":
        yield "value", np.where(np.arange(array.size).reshape(array.shape) == 1 % array.size, np.nan, array)


def test_each_array_has_its_type_shape_and_range(run, saved):
    meta, arrays = saved
    num_refused = 0
    for name, array in arrays.items():
        for what, other in changed(array):
            if what == "width" and name.endswith("measures"):
                continue  # of how many measures there are, the task decides
            part = name.partition(".")[0]
            with pytest.raises(CheckpointError, match=rf"^{part}\..*: "):
                check_arrays({**arrays, name: other}, run.search.problem, meta)
            num_refused += 1
    assert num_refused > 3 * len(arrays)


@pytest.mark.parametrize("name", ["elites.slot", "memory.hash", "population.hash"])
def test_a_missing_array_and_an_unknown_one_are_named(run, saved, name):
    meta, arrays = saved
    for others in ({key: array for key, array in arrays.items() if key != name}, {**arrays, f"{name}es": arrays[name]}):
        with pytest.raises(CheckpointError, match=f"^{name}(es)?: missing, or unknown$"):
            check_arrays(others, run.search.problem, meta)


def test_elites_are_sorted_and_have_the_hashes_of_their_programs(run, saved):
    meta, arrays = saved
    for name, reason in (
        ("cell", "cell: not sorted"),
        ("hash", "hash: not that of the programs"),
        ("solution", "hash: not that"),
    ):
        with pytest.raises(CheckpointError, match=f"^elites.{reason}"):
            check_arrays({**arrays, f"elites.{name}": arrays[f"elites.{name}"][::-1]}, run.search.problem, meta)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("counters", {}),
        ("counters.generations", -1),
        ("counters.offspring", 1e308),
        ("counters.tuned", None),
        ("elapsed_s", float("nan")),
        ("identity", []),
        ("identity.program", {}),
        ("identity.search.memory_size", "many"),
        ("task.inputs", [["x", "f128"]]),
        ("task.measures", [["x", 0.0]]),
        ("task.complexity", "unheard of"),
        ("backend", "abacus"),
        ("quarantine", {"00": 1}),
        ("lineage", {"file": "../../log", "num_bytes": 1}),
        ("metrics_num_bytes", True),
    ],
)
def test_facts_that_make_no_sense_are_named(saved, key, value):
    meta = copy.deepcopy(saved[0])
    *path, last = key.split(".")
    node = meta
    for name in path:
        node = node[name]
    node[last] = value
    with pytest.raises(CheckpointError, match=f"^{key}"):
        check_meta(meta)


def test_records_are_of_cells_and_operators_that_there_are(run):
    records = run.records()
    check_records(records, run.search.problem)
    for name, value in (("cell", 30), ("operator", 77), ("cell", -1)):  # of 6 x 5 cells
        facts = records.facts.copy()
        facts[name][0] = value
        with pytest.raises(LineageLogError, match=f"^damaged, although its checksum fits: {name} "):
            check_records(Records(facts, records.words), run.search.problem)


def test_a_run_with_such_a_checkpoint_is_refused_in_one_line(run, saved):
    meta, arrays = saved
    folder = run.run_dir.path
    run.close()
    far = {**arrays, "elites.cell": arrays["elites.cell"] + 10**6}
    for wrong, given in ((meta, far), ({**meta, "counters": []}, arrays)):
        with RunDir(folder, writable=True) as run_dir:
            run_dir.save_checkpoint(9, wrong, given.copy)
        for begin in (Run.view, LiveRun.resume):
            with pytest.raises(
                UserError, match=rf"^{folder}/checkpoints: the newest is damaged, although its checksum fits: \w+"
            ):
                begin(folder)
