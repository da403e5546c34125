"""Programs whose pictures tests know, and the figures that are saved."""

import pytest
from matplotlib.figure import Figure

# The plane task fills these programs' pictures with one colour.
RED, GREEN, BLUE = "1.0", "-1.0", "0.0"
COLORS = {RED: (255, 0, 0), GREEN: (0, 255, 0), BLUE: (0, 0, 255)}


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are saved, to look at their content."""
    figures = []
    savefig = Figure.savefig

    def keep(figure: Figure, *args, **kwargs) -> None:
        figures.append(figure)
        savefig(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", keep)
    return figures
