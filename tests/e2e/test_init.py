"""evo.cli.new_project: each template is a project whose README's commands run as they stand; nothing is overwritten."""

import re
import shlex

import pytest

from evo.shipped import shipped

TEMPLATES = list(shipped("templates"))
FEWER = ("--set", "stop.evaluations=3000", "--set", "search.initial.num_programs=1000")


def files_below(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_project_has_the_files_of_its_template_and_no_others(fork_evo, tmp_path, template):
    done = fork_evo("init", "a/mine", "--template", template)
    assert (done.returncode, done.stderr) == (0, "")
    wanted = {name: data for name, data in files_below(shipped("templates")[template]).items() if "__pycache__" not in name}
    assert files_below(tmp_path / "a" / "mine") == wanted
    assert {f"a/mine/{name}" for name in wanted} == set(done.stdout.splitlines()[:-1])
    assert done.stdout.splitlines()[-1] == f"start with: cd a/mine && evo run {template}.yaml"


@pytest.mark.parametrize("existing", ["folder", "file", "link"])
def test_nothing_is_overwritten(fork_evo, tmp_path, existing):
    mine = tmp_path / "mine"
    if existing == "folder":
        mine.mkdir()
    elif existing == "file":
        mine.write_text("text")
    else:
        mine.symlink_to("nowhere")
    done = fork_evo("init", "mine")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "evo: mine: exists; give the new project another name: evo init NAME\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert existing != "folder" or not list(mine.iterdir())


def test_a_folder_that_cannot_be_made_and_a_template_that_is_none(fork_evo, tmp_path):
    (tmp_path / "file").write_text("")
    done = fork_evo("init", "file/mine")
    assert (done.returncode, done.stderr) == (2, "evo: file: cannot create the folder: File exists\n")
    done = fork_evo("init", "--template", "picure")
    assert done.returncode == 2 and done.stderr.startswith("evo: Invalid value for '--template'")
    assert all(template in done.stderr for template in TEMPLATES) and done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("template", TEMPLATES)
def test_the_commands_of_a_project_run(fork_evo, tmp_path, template):
    fork_evo("init", "--template", template)
    project = tmp_path / template  # without a name, it is the template's
    lines = re.findall(r"^    (evo .*)$", (project / "README.md").read_text(), re.MULTILINE)
    assert len(lines) >= 3
    for line in lines:
        words = shlex.split(line.partition(" #")[0])[1:]
        if words[0] == "doctor" or "task_options.size=1024" in words:  # for a GPU
            continue
        words = [str(next(project.glob("runs/*/*"))) if word == "RUN" else word for word in words]
        words = [re.sub(r"=200000$", "=4000", word) for word in words]
        # A proof of all words takes minutes.
        narrow = ("--set", "task_options.precondition=q < 2**16") if template == "exact" else ()
        done = fork_evo(*words, *((*FEWER, *narrow) if words[0] == "run" else ()), cwd=project)
        assert done.returncode == 0, done.stderr
    assert list(project.glob("runs/*/*/plots/*.png"))
