"""The checks of `evo gpu-report`: what a GPU computes, in both lanes, is what the CPU computes."""

import os

import pytest

from evo.cli.gpu_report.checks import CHECKS
from evo.cli.gpu_report.work import FULL, SHORT, Order

EXTENT = SHORT if "EVO_EMULATED_GPU" in os.environ else FULL


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_of_the_report_passes(name):
    told: list[str] = []
    assert CHECKS[name](Order(0, EXTENT), told.append) is None
    assert told
