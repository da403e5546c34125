"""docs/examples/dynamics: it prints laws that are those of its four systems."""

import runpy
from pathlib import Path

import pytest
from law_texts import law_of

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "dynamics"
NAMES = [f"x{state}" for state in range(4)]


@pytest.mark.slow
def test_each_law_has_the_true_terms_with_numbers_within_one_percent(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["laws.py"])
    runpy.run_path(str(EXAMPLE / "laws.py"), run_name="__main__")
    laws = [line.split(" = ")[1].split("true: ") for line in capsys.readouterr().out.splitlines() if "true: " in line]
    assert len(laws) == 11
    for texts in laws:
        found, true = ({term: number for number, term in law_of(text.strip(), NAMES)} for text in texts)
        assert found == pytest.approx(true, rel=0.01)
