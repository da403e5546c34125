"""evo.evolve: a search from Python equals one from a config, writes no files, and refuses wrong arguments in one line."""

import base64
import html
import io
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import evo
from evo.config import load_config
from evo.run.loaded_task import load_problem
from evo.run.search import Search

X = np.linspace(-2, 2, 40)


class Square(evo.Task):
    """Programs like x*x, by number of instructions."""

    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"num_instructions": (0.0, 20.0)}
    complexity = "num_instructions"

    def points(self):
        return {"x": X}

    def score(self, outputs, programs):
        return evo.Scores(-np.abs(outputs["y"] - X * X).mean(axis=1), programs.num_instructions[:, None])


@pytest.fixture(scope="module")
def result() -> evo.Result:
    return evo.evolve(Square, archive=[20], generations=12, seed=3, evaluation={"threads": 1})


def test_a_search_from_python_is_that_of_the_same_config(tmp_path, make_task, monkeypatch):
    source = "import numpy as np\nimport evo\nX = np.linspace(-2, 2, 40)\n"
    text = Path(__file__).read_text()
    folder = make_task(source + text[text.index("class Square") : text.index("@pytest.fixture")])
    (tmp_path / "config.yaml").write_text(
        f"{{task: {folder}, seed: 3, program: {{vocabulary: {{instructions: [mul_ftz_f32, add_ftz_f32]}}}}, "
        "search: {archive: {dims: [20]}, batch_size: 64}, stop: {generations: 5}, evaluation: {threads: 1}}"
    )
    search = Search(load_problem(load_config(tmp_path / "config.yaml")))
    list(search.generations())
    search.problem.close()
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for task in (Square, Square(), folder):
        more = {"search": {"batch_size": 64}, "generations": 5, "seed": 3, "evaluation": {"threads": 2}}
        found = evo.evolve(task, vocabulary=["mul_ftz_f32", "add_ftz_f32"], archive=[20], **more)
        assert found.search.elites().solution.tobytes() == search.elites().solution.tobytes()
        assert found.history.evaluations.iloc[-1] == search.counters.evaluations
    assert list(Path().iterdir()) == []


def test_trajectories_follow_what_the_program_computes_at_each_state():
    class Fall(evo.Task):
        inputs = {"x": "f32"}
        outputs = {"speed": "f32"}
        measures = {"num_instructions": (0.0, 20.0)}
        rollout = evo.Rollout(steps=6, dt=0.25, integrator="euler", state={"x": "speed"}, record_every=2)

        def points(self):
            return {"x": X}

        def score(self, outputs, programs):
            return evo.Scores(-np.abs(outputs["x"][:, -1]).mean(axis=1), programs.num_instructions[:, None])

    found = evo.evolve(Fall, archive=[20], generations=4, seed=3, evaluation={"threads": 1})
    x, by_hand = np.array([2.0, -0.5, 1.0], np.float32), []
    for _ in range(6):
        x = x + np.float32(0.25) * found.outputs({"x": x})["speed"]
        by_hand.append(x)
    np.testing.assert_allclose(found.trajectories({"x": [2.0, -0.5, 1.0]})["x"], by_hand[1::2], rtol=1e-6)


def test_tables_tell_what_programs_compute(result):
    [row] = result.archive.index[result.archive.num_instructions == 1]
    assert result.archive.expression[row] == "y = x*x"
    assert result.archive.objective[row] == pytest.approx(0.0, abs=1e-7)
    assert list(result.archive.columns)[:3] == ["cell", "objective", "num_instructions"]
    assert result.outputs({"x": [3.0, -4.0]}, row)["y"].tolist() == [9.0, 16.0]
    with pytest.raises(evo.UserError, match=r"^outputs\(\): points are those of exactly x; got z$"):
        result.outputs({"z": [3.0]})
    with pytest.raises(evo.UserError, match=r"^trajectories\(\): the task has no rollout; outputs\(\) runs its program once$"):
        result.trajectories({"x": [3.0]})
    assert result.best.objective == result.archive.objective.max()
    front = result.front()
    assert front.num_instructions.is_monotonic_increasing and front.objective.is_monotonic_increasing
    assert front.index[0] == result.archive.num_instructions.idxmin() and front.objective.iloc[-1] == result.best.objective
    assert result.history.generations.tolist() == list(range(1, 13))
    assert result.stop_reason == "stop.generations: 12"
    assert str(len(result.archive)) in repr(result)


def test_a_program_shows_as_its_expression(result):
    [row] = result.archive.index[result.archive.num_instructions == 1]
    view = result.program(row)
    assert repr(view) == str(view) == "y = x*x" and view.text.split()[-1:] != []
    assert repr(result.program()) == result.best.expression.replace("; ", "\n")
    with pytest.raises(evo.UserError, match=r"program\(\): no row 999; the archive has \d+"):
        result.program(999)
    view.expression = "y = x < 1 & <b>"
    assert view._repr_html_() == "<pre>y = x &lt; 1 &amp; &lt;b&gt;</pre>"


def test_a_notebook_shows_the_heat_map_and_the_best_programs(result):
    with Image.open(io.BytesIO(result._repr_png_())) as image:
        assert image.format == "PNG" and np.asarray(image.convert("RGB")).std() > 1
    shown = result._repr_html_()
    [picture] = re.findall('<img width="480" src="data:image/png;base64,([^"]*)">', shown)
    assert base64.b64decode(picture) == result._repr_png_()
    assert html.escape(repr(result)) in shown and "<evo.Result" not in shown
    objectives = [float(row) for row in re.findall(r"<tr>\s*<td>[^<]*</td>\s*<td>([^<]*)</td>", shown)]
    different = sorted({float(f"{value:.6g}") for value in result.archive.objective}, reverse=True)
    assert objectives == different[:5] and len(result.archive) > len(different)
    assert html.escape(result.best.expression, quote=False) in shown


def test_a_notebook_shows_a_plot_that_was_drawn_without_pyplot(result):
    with Image.open(io.BytesIO(result.plot()._repr_png_())) as image:  # which IPython asks a result for
        assert np.asarray(image.convert("RGB")).std() > 1


def test_without_a_vocabulary_instructions_fit_the_types_of_the_task():
    class Bits(Square):
        inputs = {"x": "u32"}
        outputs = {"y": "u32"}

        def points(self):
            return {"x": np.arange(40)}

    for task, some, none in ((Square, "fma_rn_ftz_f32", "add_u32"), (Bits, "mad_lo_u32", "add_ftz_f32")):
        found = evo.evolve(task, generations=1, search={"initial": {"num_programs": 64}})
        names = found.search.problem.config.program.vocabulary.instructions
        assert some in names and none not in names
        assert found.search.archive.cells == 1024


def interrupt(generation) -> None:
    """Presses Ctrl-C in the third generation."""
    if generation.counters.generations == 3:
        signal.raise_signal(signal.SIGINT)


def test_an_interrupt_ends_a_search_with_what_it_has_found(tmp_path):
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.warns(UserWarning, match="interrupted: this is what the search has found so far") as caught:
            found = evo.evolve(Square, archive=[20], generations=9, on_generation=interrupt)
        assert caught[0].filename == __file__
        assert found.stop_reason == "interrupted" and len(found.history) == 3 and len(found.archive)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        folder = found.save(tmp_path / "run")
        with pytest.warns(UserWarning, match="interrupted"):
            again = evo.resume(Square, folder, on_generation=lambda g: signal.raise_signal(signal.SIGINT))
        assert again.stop_reason == "interrupted" and len(again.history) == 4
        with pytest.raises(KeyboardInterrupt):
            evo.evolve(Square, archive=[20], generations=9, on_generation=[interrupt, interrupt])
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, previous)


def test_searches_leave_signals_alone_that_are_not_theirs():
    own = []
    previous = signal.signal(signal.SIGINT, lambda *_: own.append(1))
    try:
        assert len(evo.evolve(Square, archive=[20], generations=4, on_generation=interrupt).history) == 4 and own == [1]
        thread = threading.Thread(target=lambda: own.append(evo.evolve(Square, archive=[20], generations=1)))
        thread.start()
        thread.join()
        assert len(own[1].history) == 1
    finally:
        signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize(
    ("task", "arguments", "message"),
    [
        (Square, {"generations": 1, "evaluation": {"cluster": {"scheduler": "tcp://127.0.0.1:1"}}}, "evaluation.cluster: "),
        (Square, {"generations": 1, "archive": [3], "search": {"archive": {}}}, "evolve: archive and search.archive"),
        (Square(), {"generations": 1, "task_options": {"a": 1}}, "evolve: task_options are for a class or a folder"),
        (Square, {"guesses": "x", "search": {"initial": {"programs": ["x"]}}}, "evolve: guesses and search.initial.programs are"),
        (Square, {"generations": 1, "task_options": {"a": 1}}, "task_options: got an unexpected keyword argument 'a'; one of: "),
        (
            Square,
            {"vocabulary": "add_ftz_f32"},
            "evolve: vocabulary is a list of names of instructions such as ['add_ftz",
        ),
        (Square, {"vocabulary": ["add_ftz_f32", 3]}, "keys of program.vocabulary; got ['add_ftz_f32', 3]"),
        (Square, {"generations": 1, "search": [1]}, "evolve: search: must be a mapping from names to values, got [1]"),
        (Square, {"generations": 1, "program": "x"}, "evolve: program: must be a mapping from names to values, got 'x'"),
        (Square, {"generations": 1, "evaluation": 3}, "evolve: evaluation: must be a mapping from names to values, got 3"),
        (Square, {"guesses": "x", "search": {"initial": 3}}, "evolve: search.initial: must be a mapping from names to values"),
        (Square, {"generations": 1, "on_generation": 3}, "evolve: on_generation: must be a function of a Generation, or a list"),
        (int, {"generations": 1}, "evolve: a task is an evo.Task, its class or a folder, got int"),
        (type("Raises", (Square,), {"points": lambda self: 1 / 0}), {"generations": 1}, "raised ZeroDivisionError"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(task, arguments, message):
    with pytest.raises(evo.UserError) as caught:
        evo.evolve(task, **arguments)
    assert message in str(caught.value) and len(str(caught.value).splitlines()) == 1


UNGUARDED = """
import os
import numpy as np
import evo
print("imported")

class Line(evo.Task):
    inputs = {"x": "f32"}
    outputs = {"y": "f32"}
    measures = {"process": (0.0, 1e9)}

    def points(self):
        return {"x": np.arange(9.0)}

    def score(self, outputs, programs):
        return evo.Scores(-np.abs(outputs["y"] - 2).mean(axis=1), np.full((len(outputs["y"]), 1), os.getpid()))

found = evo.evolve(Line, generations=2, archive=[5], evaluation={"threads": 2, "executor": "processes"})
print(len(found.archive) > 0, os.getpid() in set(found.archive.process))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["script", "stdin"])
def test_a_script_without_a_guard_is_run_once_and_its_class_scored_in_processes(tmp_path, way):
    """From standard input there is no file that anyone could import, as in a notebook."""
    (tmp_path / "script.py").write_text(UNGUARDED)
    command = [sys.executable, "script.py" if way == "script" else "-"]
    done = subprocess.run(command, check=False, cwd=tmp_path, input=UNGUARDED, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "imported\nTrue False\n"), done.stderr


def test_guesses_begin_generation_0_with_the_objective_that_they_have(result, tmp_path):
    (tmp_path / "quartic.txt").write_text("%x %x mul_ftz_f32 dup.f32 mul_ftz_f32")
    small = {"archive": [20], "generations": 1, "search": {"initial": {"num_programs": 1}}, "evaluation": {"threads": 1}}
    guesses = ["y = x*x + 1", tmp_path / "quartic.txt", "%x sin_approx_ftz_f32"]
    found = evo.evolve(Square, guesses=guesses, **small)
    elites = found.search.elites()
    assert found.history.evaluations.tolist() == [4]
    expected = {0: -1.0, 1: -np.abs(X**4 - X * X).mean()}  # by slot; both have two instructions
    [cell] = found.archive.index[found.archive.num_instructions == 2]
    slot = int(elites.slot[cell])
    assert slot == max(expected, key=expected.get)
    assert elites.objective[cell] == pytest.approx(expected[slot], abs=1e-6)
    assert found.archive.objective[found.archive.expression == "y = sin(x)"].item() == pytest.approx(
        -np.abs(np.sin(X) - X * X).mean(), abs=1e-6
    )
    again = evo.evolve(Square, guesses=result, **small)
    assert len(again.archive) >= len(result.archive) and again.best.objective == result.best.objective


@pytest.mark.parametrize(
    ("guesses", "message"),
    [
        (["x", "y = sin(q)"], "guesses[1]:1: unknown name 'q', one of: x"),
        ("sin(q)", "guesses:1: unknown name 'q', one of: x"),
        (["x", "x/y.txt"], "guesses[1]: there is no file or folder 'x/y.txt', and it is not a formula"),
        ([Path("nowhere.txt")], "evolve: guesses[0]: nowhere.txt: no such file or folder"),
        (["x", 3], "evolve: guesses[1]: a guess is a formula or a program as text, a path or a Result, got int"),
        (["the result", "q"], "guesses[1]:1: unknown name 'q'"),
    ],
)
def test_a_wrong_guess_is_refused_in_one_line(result, guesses, message):
    assert len(result.archive) > 1  # yet it counts as one guess
    guesses = [result if guess == "the result" else guess for guess in guesses] if isinstance(guesses, list) else guesses
    with pytest.raises(evo.UserError, match=f"^{re.escape(message)}"):
        evo.evolve(Square, guesses=guesses, generations=1)


def test_what_a_task_has_to_say_is_a_warning(tmp_path):
    (tmp_path / "t.csv").write_text("id;a;y\n" + "".join(f"n{i};{i},5;{i * i}\n" for i in range(12)))
    options = {"data": str(tmp_path / "t.csv"), "target": "y"}
    with pytest.warns(UserWarning, match="left out column 'id', which is text, such as 'n0'"):
        evo.evolve("symbolic_regression", evaluations=1000, task_options=options)
