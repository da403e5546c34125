"""Fixtures of tests of regression."""

import pytest


@pytest.fixture(scope="module")
def searched_only():
    """Fits begin without formulas by inverses, curves and relations, which take seconds and have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("inverses", "curves", "relations"):
            patch.setattr(f"evo.regression.task.{kind}", lambda *_, **__: [])
        yield
