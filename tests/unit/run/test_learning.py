"""evo.run.learning: programs that cannot be described are refused."""

import pytest

from evo.config import load_config
from evo.errors import UserError
from evo.native.row_threads import RowThreads
from evo.run.learning import make_prescreen
from evo.run.loaded_task import load_problem


def test_a_prescreen_refuses_instructions_that_no_cpu_runs(small_config):
    prescreen = {"learning": {"prescreen": 2, "evaluation_cost": 9}}
    instructions = {"vocabulary": {"instructions": ["add_ftz_f32", "u32_to_v4_u8"]}}
    problem = load_problem(load_config(small_config({"search": prescreen, "program": instructions})))
    with pytest.raises(UserError, match="described on the CPU, which has no u32_to_v4_u8; set prescreen to 1"):
        make_prescreen(problem, RowThreads(), {})
