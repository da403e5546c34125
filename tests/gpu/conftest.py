"""Fixtures of GPU tests. This folder needs an NVIDIA GPU and is skipped only if a device probe finds none."""

import pytest

from evo.evaluate.cuda.device import probe

PROBLEM = probe().problem


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(__file__.rpartition("/")[0]):
            item.add_marker(pytest.mark.gpu)
            if PROBLEM:
                item.add_marker(pytest.mark.skip(reason=PROBLEM))
