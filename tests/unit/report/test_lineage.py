"""evo.report.lineage: it tells of the ancestors that a run recorded."""

import shutil

import numpy as np
import pytest

from evo.errors import UserError
from evo.language.batch import Batch
from evo.report.lineage import describe_lineage
from evo.run.run import LiveRun, Run
from evo.search.lineage_records import NONE, lines_of


@pytest.fixture(scope="module")
def run(finish) -> Run:
    """A run with its lineage, looked at."""
    return Run.view(finish([12, 10], 20))[0]


def lengths_of(run: Run) -> list[int]:
    """Of each elite's line."""
    return [*map(len, lines_of(run.records().facts, run.search.record_numbers()))]


def test_the_table_leads_from_a_random_program_to_the_elite(run):
    elites = run.search.elites()
    row = int(np.argmax(lengths_of(run)))
    cell = run.search.layout.cell_name(int(elites.cell[row]))
    title, header, *rows = describe_lineage(run, cell).splitlines()
    assert title == f"# lineage of cell {cell}: {len(rows)} programs, from a random program on"
    assert header.split()[:4] == ["generation", "slot", "cell", "objective"]
    assert len(rows) > 2
    assert rows[0].split()[4:7] == ["none", "(random", "program)"]
    assert rows[-1].split()[:4] == [str(elites.generation[row]), str(elites.slot[row]), cell, f"{elites.objective[row]:.6g}"]
    generations = [int(text.split()[0]) for text in rows]
    assert generations == sorted(set(generations))


def test_an_ancestor_computes_what_it_did(run):
    """Its objective comes out again when it is evaluated anew."""
    records, problem, youngest = run.records(), run.search.problem, run.search.elites().generation.argmax()
    [line] = lines_of(records.facts, run.search.record_numbers()[[youngest]])
    batch = Batch.analyze(problem.language.lowering, records.programs(line, problem.config.program.max_length))
    np.testing.assert_array_equal(problem.evaluator.evaluate(batch).objective, records.facts["objective"][line])


def test_a_run_without_records_says_so(new_run):
    run = new_run([("1.0", 0.5, (0.0, 0.5))])
    assert "not known" in describe_lineage(run, None)
    assert run.search.record_numbers().tolist() == [NONE]


def test_a_damaged_log_is_named_and_a_resumed_run_goes_on(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run.run_dir.path, copy)
    [log] = (copy / "lineage").iterdir()
    log.write_bytes(log.read_bytes()[:-3])
    damaged, _ = Run.view(copy)
    with pytest.raises(UserError, match=r"\.log: cannot read how the elites came about: cut short"):
        describe_lineage(damaged, None)
    resumed, notes = LiveRun.resume(copy, ("stop.generations=23",))
    assert any("lines of descent begin anew" in note for note in notes)
    resumed.execute()
    resumed.close()
    viewed = Run.view(copy)[0]
    elites = viewed.search.elites()
    born = elites.generation < 20  # before the log was lost
    lengths = np.array(lengths_of(viewed))
    assert (lengths[born] == 0).all() and (lengths[~born] > 0).all() and born.any()
    bred = [row for row in np.flatnonzero(~born) if elites.operator[row] >= 0]
    assert bred
    for row in bred:  # their parents are of before, or their parents' parents
        told = describe_lineage(viewed, viewed.search.layout.cell_name(int(elites.cell[row])))
        is_from_random = "(random program)" in told.splitlines()[2]
        assert ("from a random program on" in told) == is_from_random
        assert ("its beginning is forgotten" in told) != is_from_random
