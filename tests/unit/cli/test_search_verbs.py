"""evo.cli.search_verbs: what a run says when it begins, and warns of at its end."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from evo.cli.search_verbs import _warn_of_losses, run
from evo.run import search


@pytest.mark.parametrize(("out_of_range", "is_said"), [(50, False), (51, True)])
def test_a_run_tells_to_widen_ranges_where_more_than_a_twentieth_is_outside(capsys, out_of_range, is_said):
    counters = SimpleNamespace(evaluations=1000, failed=0, out_of_range=out_of_range)
    search = SimpleNamespace(archive=[None], counters=counters)
    _warn_of_losses(SimpleNamespace(search=search), Path("run"))
    assert (f"{out_of_range} of 1,000 evaluations had a measure out of its range" in capsys.readouterr().err) is is_said


@pytest.mark.parametrize(("taken_s", "line"), [(18, "initial programs: took 18 s, which stop.seconds does not count"), (0, None)])
def test_a_run_says_how_long_its_initial_programs_took(tmp_path, monkeypatch, taken_s, line):
    read_initial, now_s = search.read_initial, [0.0]

    def read_later(problem):
        now_s[0] += taken_s
        return read_initial(problem)

    monkeypatch.setattr(search, "read_initial", read_later)
    monkeypatch.setattr(search, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    settings = ("stop.generations=1", f"output.runs={tmp_path}", "output.plots=[]")
    done = CliRunner().invoke(run, ["domain_coloring_smoke", *(word for each in settings for word in ("--set", each))])
    assert done.exit_code == 0, done.output
    assert ("initial programs" in done.output) == (line is not None) and (line or "") in done.output
