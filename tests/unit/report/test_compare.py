"""Comparisons of runs, against values worked out by hand and against SciPy's exact test."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import mannwhitneyu

from evo.errors import UserError
from evo.report.compare import FinishedRun, Group, compare_text, differences, holm, load_groups, quartiles


def run_of(seed: int, value: float, *, coverage: float = 0.5) -> FinishedRun:
    """A run that ends with this QD score and best objective."""
    last = {"evaluations": 20.0, "elapsed_s": 2.0, "coverage": coverage, "qd_score": value, "best_objective": value}
    return FinishedRun(Path(f"run{seed}"), None, "task", last)


def group(label: str, values: list[float]) -> Group:
    return Group(label, tuple(run_of(seed, value) for seed, value in enumerate(values)))


def test_holm_multiplies_the_least_p_by_the_number_of_tests_and_never_goes_back():
    # Sorted: 0.005 x 4, 0.01 x 3, 0.03 x 2, 0.04 x 1, which must not be less than the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]


def test_two_groups_that_do_not_overlap_differ_by_more_than_noise():
    low, high = group("low", [1.0, 2.0, 3.0, 4.0, 5.0]), group("high", [6.0, 7.0, 8.0, 9.0, 10.0])
    found = {difference.metric: difference for difference in differences([low, high])}
    # 252 ways to choose 5 of 10, of which this is the most extreme on either side; three metrics, two of them alike.
    assert found["qd_score"].p == pytest.approx(3 * 2 / 252)
    assert found["qd_score"].chance == 0.0
    assert (found["qd_score"].effect, found["qd_score"].verdict) == ("large", "high is better")
    assert found["coverage"].p == 1.0
    assert (found["coverage"].chance, found["coverage"].effect) == (0.5, "negligible")
    assert found["coverage"].verdict == "no more than noise"


def test_p_values_are_those_of_the_exact_test():
    a, b = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6], [5.0, 3.5, 8.9, 7.9, 3.2, 3.8]
    (difference,) = [d for d in differences([group("a", a), group("b", b)]) if d.metric == "best_objective"]
    exact = mannwhitneyu(a, b, method="exact").pvalue
    assert difference.p == pytest.approx(3 * exact)  # as that of QD score, which has the same values
    assert difference.verdict == "no more than noise"


def test_too_few_seeds_are_told_with_the_number_that_could_tell():
    found = differences([group("a", [1.0, 2.0, 3.0]), group("b", [4.0, 5.0, 6.0])])
    # Three tests: 2 x 3 / binomial(8, 4) = 0.086 is too much, 2 x 3 / binomial(10, 5) = 0.024 is not.
    assert {difference.verdict for difference in found} == {"too few seeds: 5 each could tell"}
    enough = differences([group("a", [1.0, 2.0, 3.0, 4.0, 5.0]), group("b", [4.0, 5.0, 6.0, 7.0, 8.0])])
    assert not any(difference.needed for difference in enough)


def test_an_empty_archive_is_worse_than_any_other():
    empty, others = group("empty", [-np.inf] * 5), group("others", [-3.0, -2.0, -1.0, -4.0, -5.0])
    (difference,) = [d for d in differences([empty, others]) if d.metric == "best_objective"]
    assert difference.verdict == "others is better"
    assert quartiles(np.array([-np.inf, -np.inf, 1.0, 2.0, 3.0])).tolist() == [-np.inf, 1.0, 2.0]
    assert "none (none to none)" in compare_text([empty, others])


def write_run(folder: Path, config: dict, *, seed: int, qd_score: float = 1.0, generations: int = 3, task: str = "t") -> Path:
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({**config, "seed": seed}))
    (folder / "environment.json").write_text(json.dumps({"task_digest": task}))
    numbers = {"offspring": 4, "duplicates": 0, "coverage": 0.5, "best_objective": None}
    rows = [
        {**numbers, "generations": i, "evaluations": 4 * i, "elapsed_s": 0.5 * i, "qd_score": qd_score * i}
        for i in range(1, generations + 1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def config(small_config) -> dict:
    return {**yaml.safe_load(small_config().read_text()), "stop": {"generations": 3}}


def test_runs_are_grouped_by_config_whatever_their_seed_and_folder(config, tmp_path):
    other = {**config, "search": {**config["search"], "batch_size": 128}}
    for seed in (3, 1, 2):
        write_run(tmp_path / "all" / f"run{seed}", {**config, "output": {"runs": f"place{seed}"}}, seed=seed, qd_score=seed)
        write_run(tmp_path / "all" / f"other{seed}", other, seed=seed)
    groups, notes = load_groups([tmp_path / "all"])
    assert [(g.label, [run.config.seed for run in g.runs]) for g in groups] == [
        ("search.batch_size=64", [1, 2, 3]),
        ("search.batch_size=128", [1, 2, 3]),
    ]
    assert groups[0].last("qd_score").tolist() == [3.0, 6.0, 9.0]
    assert notes == []


def test_runs_that_hold_their_task_are_grouped_by_what_they_hold(config, tmp_path):
    """Each has the paths of its own folder; that of an instruction set is named by its content."""
    for seed in (1, 2, 3, 4):
        own = "one" if seed < 3 else "other"
        program = {**config["program"], "instruction_set": f"{own}.json"}
        files = {"task": "task", "task_files": {"t.csv": f"task_files/{own}.csv"}}
        write_run(tmp_path / "all" / f"run{seed}", {**config, **files, "program": program}, seed=seed)
    groups, _ = load_groups([tmp_path / "all"])
    assert [[run.config.seed for run in group.runs] for group in groups] == [[1, 2], [3, 4]]
    assert [group.label for group in groups] == ['program.instruction_set="one.json"', 'program.instruction_set="other.json"']


def test_a_seed_that_is_there_twice_and_a_run_that_has_not_finished_are_left_out(config, tmp_path):
    write_run(tmp_path / "a" / "first", config, seed=1)
    write_run(tmp_path / "a" / "second", config, seed=1)
    write_run(tmp_path / "a" / "short", config, seed=2, generations=2)
    write_run(tmp_path / "a" / "z-empty", config, seed=3, generations=0)
    ((found,), notes) = load_groups([tmp_path / "a"])
    assert [run.path.name for run in found.runs] == ["first"]
    assert notes == [
        f"{tmp_path}/a/second: seed 1 is there twice, as in {tmp_path}/a/first; left out",
        f"{tmp_path}/a/short: has not finished; left out",
        f"{tmp_path}/a/z-empty: has no metrics yet; left out",
    ]


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        (
            "metrics.jsonl",
            '"elapsed_s": 1.5',
            '"elapsed_s": "soon"',
            "metrics.jsonl: last line: damaged: no number 'elapsed_s'; delete",
        ),
        ("metrics.jsonl", '"elapsed_s": 1.5, ', "", "metrics.jsonl: last line: damaged: no number 'elapsed_s'; delete this line"),
        ("environment.json", "}", "", r"environment.json:1:\d+: not JSON: "),
        ("environment.json", '"t"', "3", "environment.json: damaged: no text 'task_digest'"),
    ],
)
def test_a_damaged_file_is_named(config, tmp_path, name, old, new, message):
    path = write_run(tmp_path / "run", {**config, "stop": {"seconds": 1.5}}, seed=1) / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=f"^{tmp_path}/run/{message}"):
        load_groups([tmp_path])


def test_other_tasks_and_budgets_are_told(config, tmp_path):
    write_run(tmp_path / "a" / "run", config, seed=1)
    write_run(tmp_path / "b" / "run", {**config, "stop": {"generations": 6}}, seed=1, generations=6, task="u")
    groups, notes = load_groups([tmp_path / "a", tmp_path / "b"])
    assert [g.label for g in groups] == ["a", "b"]
    assert notes == [
        "runs end after 12 to 24 evaluations (medians); the table compares their ends",
        "the groups have different tasks, or different versions of one; their scores may mean different things",
    ]


def test_no_finished_run_is_one_line(config, tmp_path):
    write_run(tmp_path / "a", config, seed=1, generations=1)
    with pytest.raises(UserError, match=f"^{tmp_path}/a: no finished run; go on with: evo resume RUN$"):
        load_groups([tmp_path / "a"])
