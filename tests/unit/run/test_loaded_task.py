"""A problem that is only looked at: evaluated here and cheaply, wherever its run was."""

from contextlib import closing

from evo.config import load_config
from evo.run.loaded_task import load_problem


def test_a_report_uses_neither_processes_nor_the_runs_cluster(small_config):
    evaluation = {"executor": "processes", "threads": 2, "cluster": {"scheduler": "tcp://127.0.0.1:1"}}
    problem = load_problem(load_config(small_config({"evaluation": evaluation})))
    with closing(problem.here()) as here:
        assert here.evaluator.environment()["executor"] == "threads"
