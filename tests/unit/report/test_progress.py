"""evo.report.progress: a generation's numbers in plain lines, at most one every few seconds and always the last."""

import io
import sys
from types import ModuleType, SimpleNamespace

import pytest

from evo.evaluate import Stats
from evo.report import progress
from evo.report.progress import success_text
from evo.search.emitter import Success
from evo.search.map_elites import Beginning, Generation
from evo.search.state import Counters


@pytest.fixture
def search():
    """A search resumed at 1,000 evaluations and 10 seconds."""
    stop = SimpleNamespace(generations=None, evaluations=2000, seconds=None, objective=None)
    config = SimpleNamespace(stop=stop)
    return SimpleNamespace(counters=Counters(evaluations=1000), elapsed_s=10.0, problem=SimpleNamespace(config=config))


def generation(number: int, evaluations: int, best: float = 0.5, qd_score: float = 1234.5) -> Generation:
    counters = Counters(generations=number, offspring=4000, evaluations=evaluations, duplicates=1000, neutral=400)
    return Generation(
        counters,
        num_elites=9,
        coverage=0.25,
        qd_score=qd_score,
        best_objective=best,
        num_inserted=1,
        num_lineages=1,
        largest_lineage=1.0,
        success={},
        failures=(),
        stats=Stats(),
    )


def test_a_line_has_all_numbers_and_the_rate_since_the_resume(search, capsys):
    with progress.progress_of(search) as show:
        show(generation(1234, 1500), 12.0)
    assert capsys.readouterr().out == (
        "generation 1,234  evaluations 1,500 (250/s)  duplicates 25%  unchanged 10%  "
        "coverage 25.0%  QD score 1,234.50  best 0.5000\n"
    )


def test_a_line_is_printed_every_few_seconds_and_at_the_end(search, capsys):
    with progress.progress_of(search) as show:
        for number in range(1, 100):
            show(generation(number, 1000 + number), 10.0 + 0.1 * number)
    shown = [int(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    assert shown == [1, 51, 99]


def test_a_terminal_shows_the_same_numbers_below_a_bar(search, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.progress_of(search) as show:
        show(generation(7, 1500), 12.0)
        show(generation(8, 2000), 13.0)
    assert "generation 8" in terminal.getvalue() and "coverage 25.0%" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


@pytest.mark.parametrize(
    ("name", "value"), [("TTY_COMPATIBLE", "0"), ("TTY_INTERACTIVE", "0"), ("TERM", "dumb"), ("JPY_PARENT_PID", "1")]
)
def test_a_terminal_that_moves_no_cursor_gets_plain_lines(search, monkeypatch, capsys, name, value):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert progress.is_terminal()
    monkeypatch.setenv(name, value)
    with progress.progress_of(search) as show:
        show(generation(8, 2000), 13.0)
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("generation 8 ") and line.endswith("best 0.5000")


def test_generation_0_is_told_in_parts(search, capsys):
    with progress.progress_of(search) as show:
        show(Beginning("evaluated", 256, 16000, 12), 0.5)
        show(Beginning("evaluated", 512, 16000, 20), 0.9)
        show(Beginning("evaluated", 2560, 16000, 90), 5.5)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "generation 0  256 of 16,000 programs evaluated (512/s)  12 with a score",
        "generation 0  2,560 of 16,000 programs evaluated (465/s)  90 with a score",
    ]


def test_a_table_says_what_became_of_each_emitter():
    text = success_text({"initial": Success(40, 30, 12, 0), "a-long-name": Success(1000, 800, 0, 2), "idle": Success()})
    assert [line.split() for line in text.splitlines()] == [
        "emitter offspring evaluated new cells improved became elites".split(),
        "initial 40 30 12 0 40.00%".split(),
        "a-long-name 1,000 800 0 2 0.25%".split(),
        "idle 0 0 0 0 0.00%".split(),
    ]
    assert len({line.rfind("  ") for line in text.splitlines()}) == 1


class Handle:
    """A stand-in for IPython's handle of an output that can be changed."""

    def __init__(self):
        self.shown: list[str] = []

    def update(self, html: str) -> None:
        self.shown.append(html)


@pytest.fixture
def notebook(monkeypatch):
    """A stand-in for the display of a notebook's kernel."""
    handle = Handle()
    display = ModuleType("IPython.display")
    display.HTML = str
    display.display = lambda html, display_id: (handle.update(html), handle)[1]
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr(progress, "is_notebook", lambda: True)
    return handle


def test_a_notebook_shows_one_output_that_changes_and_ends_with_the_last_numbers(search, notebook, monkeypatch, capsys):
    clock = iter([0.0, 0.1, 10.0, 10.0, 10.1, 10.1])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.progress_of(search, shown=None) as show:
        for number in (1, 2, 3):
            show(generation(number, 1000 + 100 * number), 10.0 + number)
    assert [text[:8] for text in notebook.shown] == ["starting", "<progres", "<progres"]
    assert 'value="0.6000"' in notebook.shown[1] and "generation 2 " in notebook.shown[1]
    assert 'value="0.6500"' in notebook.shown[2] and "evaluations 1,300 (100/s)" in notebook.shown[2]
    assert capsys.readouterr().out == ""


def test_progress_is_shown_to_people_unless_it_is_asked_for(search, capsys):
    for shown, expected in ((None, 0), (False, 0), (True, 1)):
        with progress.progress_of(search, shown=shown) as show:
            show(generation(1, 1100), 11.0)
        assert len(capsys.readouterr().out.splitlines()) == expected
