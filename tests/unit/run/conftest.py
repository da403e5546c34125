"""Small runs that end with the test."""

from contextlib import ExitStack, closing

import pytest

from evo.config import load_config
from evo.run.run import LiveRun


@pytest.fixture
def ending():
    """Closes what is given to it when the test ends."""
    with ExitStack() as stack:
        yield lambda run: stack.enter_context(closing(run))


@pytest.fixture
def start(small_config, ending):
    """Starts a small run."""
    return lambda changes=None, *overrides: ending(LiveRun.start(load_config(small_config(changes), overrides), "small"))


@pytest.fixture
def resume(ending):
    """Resumes the run of a folder."""
    return lambda path, *overrides: ending(LiveRun.resume(path, overrides)[0])
