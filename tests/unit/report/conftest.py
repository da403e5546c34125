"""Runs with archives filled by hand, so that tests know what a report must say."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from evo.config import load_config
from evo.language.program import parse_program
from evo.run.run import LiveRun, Run


@pytest.fixture
def new_run(small_config):
    """Makes runs with the given elites, (program text, objective, measures); `columns` say more of their origin."""
    runs = []

    def make(elites: list[tuple[str, float, tuple[float, ...]]], changes: dict | None = None, **columns) -> Run:
        run = LiveRun.start(load_config(small_config(changes)), "small")
        runs.append(run)
        if elites:
            words = np.stack([parse_program(run.search.problem.language, text, "text", 24) for text, _, _ in elites])
            hashes, num_instructions = run.search.problem.language.lowering.analyze(words)
            origin = {
                "parents": np.full((len(elites), 2), -1),
                "operator": np.full(len(elites), -1),
                "generation": np.zeros(len(elites), int),
                "slot": np.arange(len(elites)),
                "hash": hashes,
                "num_instructions": num_instructions,
            }
            _, objective, measures = (np.array(column) for column in zip(*elites, strict=True))
            run.search.archive.add(words, objective, measures, **{**origin, **columns})
        return run

    yield make
    for run in runs:
        run.close()


@pytest.fixture(scope="session")
def finish(tmp_path_factory, plane_folder):
    """Makes the folder of a finished run of the plane task, which tests leave as it is."""

    def make(dims: list[int], generations: int) -> Path:
        folder = tmp_path_factory.mktemp("finished")
        config = {
            "task": str(plane_folder),
            "program": {"max_length": 24, "vocabulary": {"instructions": ["add_ftz_f32", "mul_ftz_f32"]}},
            "search": {"archive": {"dims": dims}, "batch_size": 48, "initial": {"num_programs": 64, "max_length": 20}},
            "stop": {"generations": generations},
            "output": {"runs": str(folder / "runs"), "plots": []},
        }
        (folder / "small.yaml").write_text(yaml.safe_dump(config))
        run = LiveRun.start(load_config(folder / "small.yaml"), "small")
        run.execute()
        run.close()
        return run.run_dir.path

    return make
