"""evo.run.initial_programs: generation 0 begins with the given programs, whose content decides, or they are refused."""

import numpy as np
import pytest

from evo.config import first_difference, load_config
from evo.errors import UserError
from evo.native.vary import program_lengths
from evo.run.loaded_task import load_problem
from evo.run.run import LiveRun, Run
from evo.run.search import Search
from evo.search.emitter import GIVEN

SADDLE = "%t %x %y mul_ftz_f32 add_ftz_f32"


@pytest.fixture
def start(start):
    """Starts a run with given programs."""
    changes = {"output": {"plots": []}}
    return lambda programs, *overrides: start({**changes, "search": {"initial": {"programs": programs}}}, *overrides)


def execute(run: Run) -> Run:
    run.execute()
    return run


def fields_of(run: Run) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in vars(run.search.elites()).items()}


def refusal(small_config, programs: list[str], *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        Search(load_problem(load_config(small_config({"search": {"initial": {"programs": programs}}}), overrides)))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_given_programs_are_evaluated_in_generation_0_before_the_random_ones(start, tmp_path):
    (tmp_path / "saddle.txt").write_text(f"# the target\n{SADDLE}\n")
    (tmp_path / "formula.txt").write_text("a = x*y\nv = a + t*0.5\n")
    run = execute(start(["saddle.txt", "formula.txt", "sin(x)", "%y"], "stop.generations=1"))
    elites, counters = run.search.elites(), run.search.counters
    assert counters.offspring == 4 + 96
    best = int(np.argmax(elites.objective))
    assert (elites.objective[best], elites.operator[best], elites.slot[best]) == (pytest.approx(1.0), GIVEN, 0)
    # 1 / (1 + mean of the squared error), where t is 0.5: the error is 0.25 everywhere, and |sin x - t - x y|.
    y, x = np.meshgrid(np.linspace(-1, 1, 8), np.linspace(-1, 1, 8), indexing="ij")
    objectives = {1: 1 / (1 + 0.25**2), 2: 1 / (1 + ((np.sin(x) - 0.5 - x * y) ** 2).mean())}
    for slot, objective in objectives.items():
        found = elites.objective[(elites.slot == slot) & (elites.operator == GIVEN)]
        assert found == pytest.approx([objective], rel=1e-5) if len(found) else (elites.objective > objective).any()
    random = run.search.emitter.random_programs(96, 0, 4)
    others = elites.slot[elites.operator != GIVEN]
    assert len(others) > 3
    np.testing.assert_array_equal(elites.solution[elites.operator != GIVEN], random[others - 4])


def test_content_decides_and_not_where_it_stands(start, tmp_path):
    (tmp_path / "one.txt").write_text(SADDLE)
    (tmp_path / "other.txt").write_text(f"# the same\n{SADDLE.replace(' ', chr(10))}")
    one, other, text, another = (start([each]).search for each in ("one.txt", "other.txt", SADDLE, "%t"))
    identity = one.problem.config.identity()
    assert identity == other.problem.config.identity() == text.problem.config.identity()
    assert first_difference(identity, another.problem.config.identity()).startswith("search.initial.digest is ")
    assert str(tmp_path) not in str(identity["search"])


@pytest.mark.parametrize("num_generations", [0, 2])
def test_a_run_goes_on_without_the_files_of_its_programs(start, resume, tmp_path, num_generations):
    (tmp_path / "saddle.txt").write_text(SADDLE)
    whole, paused = execute(start(["saddle.txt", "x"])), start(["saddle.txt", "x"])
    if num_generations:
        paused.execute(lambda *_: None, lambda *_: paused.search.counters.generations == num_generations)
    paused.close()
    (tmp_path / "saddle.txt").unlink()
    resumed = resume(paused.run_dir.path)
    assert resumed.search.counters.generations == num_generations
    assert fields_of(execute(resumed)) == fields_of(whole)
    assert resumed.search.counters == whole.search.counters


def test_a_run_goes_on_with_its_own_programs_only(start):
    run = execute(start([SADDLE], "stop.generations=1"))
    run.close()
    for programs in ("[x]", "[]"):
        with pytest.raises(UserError, match=r"config has changed since the checkpoint: search\.initial\."):
            LiveRun.resume(run.run_dir.path, (f"search.initial.programs={programs}", "stop.generations=2"))
    without = execute(start([], "stop.generations=1"))
    without.close()
    with pytest.raises(UserError, match=r'search\.initial\.programs is \["x"\] now, was the default'):
        LiveRun.resume(without.run_dir.path, ("search.initial.programs=[x]", "stop.generations=2"))


def test_the_config_of_a_run_begins_an_equal_run_or_says_that_the_programs_have_changed(start, tmp_path):
    (tmp_path / "p.txt").write_text(SADDLE)
    run = execute(start(["p.txt"]))
    again = LiveRun.start(load_config(run.run_dir.path / "config.yaml"), "again")
    assert fields_of(execute(again)) == fields_of(run)
    again.close()
    (tmp_path / "p.txt").write_text("%x")
    with pytest.raises(UserError, match=r"^search\.initial\.digest: the programs are not those"):
        Search(load_problem(load_config(run.run_dir.path / "config.yaml")))


def test_elites_of_another_run_begin_a_search(start):
    run = execute(start([SADDLE]))
    found = execute(start([str(run.run_dir.path)], "stop.generations=1", "program.max_length=30")).search
    given = {row.tobytes() for row in np.pad(run.search.elites().solution, ((0, 0), (0, 6)))}
    elites = found.elites()
    assert {row.tobytes() for row in elites.solution[elites.operator == GIVEN]} <= given
    assert found.counters.offspring == 96 + len(given)
    better = run.search.elites()
    assert len(elites) >= len(better) and elites.objective.max() >= better.objective.max() == pytest.approx(1.0)


def test_elites_that_do_not_fit_are_refused(start, small_config, tmp_path):
    run = execute(start(["%t %x %y mul_ftz_f32 add_ftz_f32 sin_approx_ftz_f32"], "stop.generations=1"))
    path = run.run_dir.path
    wide = refusal(small_config, [str(path)], "program.instruction_set=wide")
    assert wide == f"{path}: its programs are of another instruction set than program.instruction_set, 'wide'"
    elites = run.search.elites()
    longest = int(np.argmax(program_lengths(elites.solution)))
    short = refusal(
        small_config, [str(path)], "program.max_length=3", "search.initial.min_length=1", "search.initial.max_length=3"
    )
    length = program_lengths(elites.solution)[longest]
    assert short == f"{path}: cell {elites.cell[longest]}: {length} words, but program.max_length is 3"
    lacking = refusal(small_config, [str(path)], "program.vocabulary.instructions=[sin_approx_ftz_f32]")
    assert lacking.startswith(f"{path}: cell ") and lacking.endswith("_f32' is not in program.vocabulary.instructions")
    (tmp_path / "folder").mkdir()
    assert refusal(small_config, [str(tmp_path / "folder")]).startswith(f"{tmp_path}/folder: not a run folder")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%t\n\n%x sinn_f32\n", "FILE:3: 'sinn_f32' is not an instruction"),
        ("%t\n%q", "FILE:2: unknown input 'q'"),
        ("%t # add_ftz_f32\n  tanh_approx_f32\n", "FILE:2: 'tanh_approx_f32' is not in program.vocabulary.instructions"),
        ("%t special:tid.x", "FILE:1: 'special:tid.x' is not for a search"),
        ("1.5 sin_approx_ftz_f32\n0.5 add_f32", "FILE:2: 'add_f32' is not an instruction"),
        ("%t\nword:425201762307", "FILE:2: 'word:0x0000006300000003' is not an input of the task"),
        ("%t word:0x0000006300000003", "FILE:1: 'word:0x0000006300000003' is not an input of the task"),
        ("%t " * 25, "FILE: 25 words, but program.max_length is 24"),
        ("a = x\n# a comment\nv = a + q\n", "FILE:3: unknown name 'q', one of: t, x, y, a"),
        ("v = tanh(x)", "FILE:1: 'tanh(x)': tanh_approx_f32 is not in program.vocabulary.instructions"),
        ("", "FILE: no formula for the output 'v'"),
    ],
)
def test_a_mistake_in_a_program_names_file_and_line_or_the_entry(small_config, tmp_path, text, message):
    (tmp_path / "p.txt").write_text(text)
    assert refusal(small_config, ["x", "p.txt"]).startswith(message.replace("FILE", str(tmp_path / "p.txt")))
    if text:
        assert refusal(small_config, ["x", text]).startswith(message.replace("FILE", "search.initial.programs.1"))
