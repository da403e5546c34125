"""Dask workers on this machine against the process evaluator, both with two processes. A ratio of one run; times are the best of
several, in turn."""

import time
from pathlib import Path

from distributed import LocalCluster

from evo.evaluate import TaskSource
from evo.evaluate.backends import CPU, Assignment
from evo.evaluate.cluster import ClusterEvaluator
from evo.evaluate.options import EvaluationOptions
from evo.instructions import shipped_instruction_set
from evo.language.batch import Batch
from evo.language.program import Language
from evo.search.vocabulary import ConstantOptions, VariationOptions, VocabularyOptions, make_variation
from evo.tasks.folder import load_task, task_digest

FOLDER = Path(__file__).parents[2] / "tasks" / "domain_coloring"
BATCH_SIZE = 4096
NUM_ROUNDS = 15
NAMES = ("add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "fma_rn_ftz_f32", "sin_approx_ftz_f32", "cos_approx_ftz_f32")


def random_batch(language: Language) -> Batch:
    """Random programs of 16 to 48 words."""
    groups = {"instructions": 0.5, "inputs": 0.3, "constants": 0.15, "meta": 0.05}
    vocabulary = VocabularyOptions(
        instructions=dict.fromkeys(NAMES, 1.0),
        meta={"dup": 1.0, "swap": 1.0},
        groups=groups,
        constants=ConstantOptions(f32_sigma=1.0, u32_max=9, meta_max=2),
    )
    variation = make_variation(language, vocabulary, VariationOptions(operators={"umad": 1.0}), (16, 48))
    words = variation.random_programs(5, 0, 0, BATCH_SIZE, 48)
    return Batch.analyze(language.lowering, words)


def rows():
    """Rows of the table."""
    task = load_task(FOLDER, {})
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    batch = random_batch(language)
    workers = LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs=50)
    settings = {"threads": 2, "executor": "processes", "cluster": {"scheduler": workers.scheduler_address}}
    assignment = Assignment(language, task, NAMES, EvaluationOptions.model_validate(settings), {}, TaskSource(FOLDER, {}))
    evaluators = {
        "processes": CPU.start(assignment),
        "cluster": ClusterEvaluator(assignment, CPU, task_digest(FOLDER)),
    }
    best_s = dict.fromkeys(evaluators, float("inf"))
    for number in range(1 + NUM_ROUNDS):
        for name, evaluator in evaluators.items():
            start_s = time.perf_counter()
            evaluator.evaluate(batch)
            if number:
                best_s[name] = min(best_s[name], time.perf_counter() - start_s)
    for evaluator in evaluators.values():
        evaluator.close()
    workers.close()
    yield f"domain colouring, {BATCH_SIZE:,} programs, 2 processes", f"{BATCH_SIZE / best_s['processes']:,.0f} programs/s", "", ""
    ratio = best_s["cluster"] / best_s["processes"]
    yield "the same on a Dask LocalCluster of 2 against these", f"{ratio:.2f} x the time", "1.3 x", "1.1 x"


if __name__ == "__main__":
    for row in rows():
        print(row)
