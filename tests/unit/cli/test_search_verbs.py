"""evo.cli.search_verbs: what a run warns of at its end."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from evo.cli.search_verbs import _warn_of_losses


@pytest.mark.parametrize(("out_of_range", "is_said"), [(50, False), (51, True)])
def test_a_run_tells_to_widen_ranges_where_more_than_a_twentieth_is_outside(capsys, out_of_range, is_said):
    learning = SimpleNamespace(is_spanning=False)
    search = SimpleNamespace(
        archive=[None],
        counters=SimpleNamespace(evaluations=1000, failed=0, out_of_range=out_of_range),
        problem=SimpleNamespace(config=SimpleNamespace(search=SimpleNamespace(learning=learning))),
    )
    _warn_of_losses(SimpleNamespace(search=search), Path("run"))
    assert (f"{out_of_range} of 1,000 evaluations had a measure out of its range" in capsys.readouterr().err) is is_said
