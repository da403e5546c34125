"""Tasks, configs and templates by name: from any folder, and what lies in the folder comes first."""

import shutil
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

import evo
from evo.cli import main
from evo.config import load_config
from evo.errors import UserError
from evo.shipped import find_config, find_task, shipped
from evo.tasks.folder import load_task

MINE = """\
task: pendulum
program: {vocabulary: {instructions: [add_ftz_f32]}}
search: {archive: {dims: [4, 4]}}
stop: {generations: 1}
"""
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_shipped_is_what_the_repository_has():
    assert list(shipped("configs")) == sorted(path.stem for path in REPOSITORY.glob("configs/*.yaml"))
    assert list(shipped("tasks")) == sorted(path.parent.name for path in REPOSITORY.glob("tasks/*/task.py"))
    assert list(shipped("templates")) == sorted(path.parent.parent.name for path in REPOSITORY.glob("templates/*/task/task.py"))


@pytest.mark.parametrize("name", shipped("configs"))
def test_a_shipped_config_and_its_task_load_by_name(name):
    config = load_config(Path(name))
    assert load_task(Path(config.task), config.task_options).inputs


def test_a_task_is_found_by_name_from_a_config_and_from_an_override(elsewhere):
    found = load_config(Path("pendulum"))
    (elsewhere / "mine.yaml").write_text(MINE)
    assert Path(found.task).name == "pendulum" and load_config(Path("mine.yaml")).task == found.task
    assert Path(load_config(Path("pendulum"), ("task=domain_coloring",)).task) == shipped("tasks")["domain_coloring"].resolve()


def test_files_of_the_folder_come_first(elsewhere):
    shutil.copy(shipped("configs")["erf"], elsewhere / "domain_coloring")  # without a suffix
    assert load_config(Path("domain_coloring")).search.archive.dims == [32, 32]
    (elsewhere / "pendulum").mkdir()
    assert find_task("pendulum", Path()) == Path("pendulum")
    assert load_config(Path("pendulum"), ("task=pendulum",)).task == str(elsewhere / "pendulum")
    # A folder hides a task's name, not a config's, and a task of the working folder none of another folder's config.
    assert find_config(Path("pendulum")) == shipped("configs")["pendulum"]
    assert load_config(Path("pendulum")).task == str(shipped("tasks")["pendulum"].resolve())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("domain_colouring", "domain_colouring: no such file, and no config of evo's; did you mean domain_coloring"),
        ("zzz", "zzz: no such file, and no config of evo's; evo has approximation, approximation_bf16, approximation_f16, "),
        ("configs/erf.yaml", "configs/erf.yaml: cannot read the config: No such file or directory; evo has one by the name erf"),
        ("zzz.yaml", "zzz.yaml: cannot read the config: No such file or directory"),
    ],
)
def test_a_wrong_name_of_a_config(name, message):
    with pytest.raises(UserError) as refused:
        load_config(Path(name))
    assert str(refused.value).startswith(message)
    assert name == "zzz.yaml" or "erf" in str(refused.value)


def test_a_wrong_name_of_a_task(elsewhere):
    config = load_config(Path("erf"), ("task=domain_colouring",))
    with pytest.raises(UserError, match=r"domain_colouring/task\.py: no such file; .* did you mean domain_coloring\?$"):
        load_task(Path(config.task), {})
    with pytest.raises(UserError, match=r"a task\.py, .* one of: approximation, .*pendulum, .*semiring, shapes, symbolic_"):
        load_task(Path("zzz"), {})
    (elsewhere / "zzz").mkdir()
    with pytest.raises(UserError, match=r"zzz/task\.py: no such file; a task is a folder with a task\.py$"):
        load_task(Path("zzz"), {})


def test_python_finds_a_task_by_name():
    found = evo.evolve(
        "domain_coloring", generations=1, search={"initial": {"num_programs": 64}, "batch_size": 64}, archive=[4, 4]
    )
    assert list(found.search.problem.task.outputs) == ["f", "g"]


def completions(*words: str) -> list[str]:
    """Completions of the last word."""
    return [item.value for item in ShellComplete(main, {}, "evo", "_EVO_COMPLETE").get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize("command", [("run",), ("eval",), ("compile",), ("sweep",), ("instructions", "--config")])
def test_tab_offers_names_and_files(elsewhere, command):
    (elsewhere / "erf_of_mine.yaml").write_text("")
    (elsewhere / "notes.txt").write_text("")
    assert completions(*command, "er") == ["erf_of_mine.yaml", "erf"]
    assert completions(*command, "n") == ["n"]  # the shell's own completion of files
    assert completions(*command, "d") == [name for name in shipped("configs") if name.startswith("d")]
