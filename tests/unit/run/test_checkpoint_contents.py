"""evo.run.checkpoint_contents: a checkpoint of another shape than its search is told in one line, although its checksum fits."""

import copy

import numpy as np
import pytest

from evo.errors import UserError
from evo.run.checkpoint import CheckpointError
from evo.run.checkpoint_contents import check_arrays, check_meta
from evo.run.run import LiveRun, Run
from evo.run.run_dir import RunDir


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
    check_arrays(arrays, run.search.problem)
    assert {"population.cell", "ancestry.population", "emitters.success"} <= arrays.keys()


def changed(array):
    """Arrays that are wrong whatever their name is, by what is wrong with them."""
    yield "type", array.astype("<c16")
    yield "width", np.concatenate([array, array[..., :1]], axis=-1) if array.ndim > 1 or len(array) > 1 else array[:0]
    yield "dimension", array[None]


def test_each_array_has_its_type_and_shape(run, saved):
    _, arrays = saved
    num_refused = 0
    for name, array in arrays.items():
        for what, other in changed(array):
            if what == "width" and name.endswith("measures"):
                continue  # of how many measures there are, the task decides
            part = name.partition(".")[0]
            with pytest.raises(CheckpointError, match=rf"^{part}\..*: "):
                check_arrays({**arrays, name: other}, run.search.problem)
            num_refused += 1
    assert num_refused > 2 * len(arrays)


@pytest.mark.parametrize("name", ["elites.slot", "memory.hash", "population.hash", "ancestry.archive"])
def test_a_missing_array_and_an_unknown_one_are_named(run, saved, name):
    _, arrays = saved
    for others in ({key: array for key, array in arrays.items() if key != name}, {**arrays, f"{name}x": arrays[name]}):
        with pytest.raises(CheckpointError, match=f"^{name}(x)?: missing, or unknown$"):
            check_arrays(others, run.search.problem)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("counters", {}),
        ("counters.generations", -1),
        ("counters.offspring", 1e308),
        ("counters.tuned", None),
        ("elapsed_s", float("nan")),
        ("identity", []),
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


def test_a_run_with_such_a_checkpoint_is_refused_in_one_line(run, saved):
    meta, arrays = saved
    folder = run.run_dir.path
    run.close()
    far = {**arrays, "elites.cell": arrays["elites.cell"] + 10**6}
    for wrong, given in ((meta, far), ({**meta, "counters": []}, arrays)):
        with RunDir(folder, writable=True) as run_dir:
            run_dir.save_checkpoint(9, wrong, given)
        for begin in (Run.view, LiveRun.resume):
            with pytest.raises(
                UserError, match=rf"^{folder}/checkpoints: the newest is damaged, although its checksum fits: \w+"
            ):
                begin(folder)
