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


@pytest.mark.slow
def test_the_formula_of_the_regression_project_knows_the_law_of_the_pendulum(fork_evo, tmp_path):
    fork_evo("init", "mine", "--template", "regression")
    project = tmp_path / "mine"
    stop = ("--set", "stop={evaluations: 100000}", "--set", "output.plots=[]")
    assert fork_evo("run", "regression.yaml", *stop, cwd=project).returncode == 0
    [run] = project.glob("runs/*/*")
    error = re.search(r"^test_nmse +(\S+)", fork_evo("show", run, cwd=project).stdout, re.MULTILINE)
    assert error and float(error[1]) < 1e-3
    (project / "new.csv").write_text("amplitude,length,gravity\n0.1,1.0,9.81\n")
    predicted = fork_evo("predict", run, "--data", "new.csv", cwd=project)
    assert float(predicted.stdout.splitlines()[1]) == pytest.approx(2.0073, rel=0.05)  # 2 pi sqrt(1 / 9.81) (1 + 0.1² / 16)
    (project / "new.csv").write_text("length,gravity\n1.0,9.81\n")
    refused = fork_evo("predict", run, "--data", "new.csv", cwd=project)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "no column 'amplitude'; the formula's inputs are: length, gravity, amplitude" in refused.stderr


@pytest.mark.slow
def test_the_kernel_of_a_project_scores_as_its_score_method_does(fork_evo, tmp_path):
    """On a stand-in for a GPU (emulator/), by whose PTX and its own score each elite is scored."""
    gpu = {"EVO_EMULATED_GPU": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    fork_evo("init", "mine", "--template", "kernel")
    few = ("search.initial.num_programs=48", "search.batch_size=16", "stop={generations: 2}", "task_options.size=12")
    exact = "program.vocabulary.instructions=[add_ftz_f32, mul_ftz_f32, fma_rn_ftz_f32, max_ftz_f32]"
    settings = (*few, exact, "evaluation.backend=cuda", "evaluation.compile_workers=1", "output.plots=[]")
    sets = [word for setting in settings for word in ("--set", setting)]
    done = fork_evo("run", "kernel.yaml", *sets, env=gpu, cwd=tmp_path / "mine")
    assert done.returncode == 0, done.stderr
    [run] = (tmp_path / "mine").glob("runs/*/*")
    checked = fork_evo("doctor", run, env=gpu, cwd=tmp_path / "mine")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    [share] = re.findall(r"^objective within 1e-06 +(\S+)", checked.stdout, re.MULTILINE)
    assert share == "100.00%"  # instructions are exact, so only the order of the sums differs
