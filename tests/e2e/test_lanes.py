"""The lanes of a GPU from end to end, over the stand-in: whichever runs a program, the archive is the same."""

import json

import pytest

from .conftest import assert_same_state, run_folders, state_of
from .test_self_test import machine  # noqa: F401 - a fixture

pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")

APPROXIMATE = ["add_ftz_f32", "sub_ftz_f32", "mul_ftz_f32", "div_approx_ftz_f32", "sin_approx_ftz_f32", "tanh_approx_f32"]


def lanes_of(run) -> dict[str, int]:
    """Programs that each lane took in all generations."""
    rows = [json.loads(line)["lanes"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {lane: sum(row[lane] for row in rows) for lane in ("interpret", "compile")}


@pytest.fixture
def search(machine, small_config):  # noqa: F811 - the fixture
    """Runs a search on the stand-in with this lane, in a folder of its own; gives the run folder and the process."""

    def start(lane: str, **fault: str):
        runs = machine.folder / f"runs-{lane}-{len(list(machine.folder.iterdir()))}"
        config = small_config(
            {
                "program": {"vocabulary": {"instructions": APPROXIMATE}},
                "evaluation": {"backend": "cuda", "compile_workers": 1, "lane": lane},
                "stop": {"generations": 3},
                "output": {"plots": [], "runs": str(runs)},
            }
        )
        done = machine("run", config, **fault)
        assert done.returncode == 0, done.stderr
        return run_folders(runs)[0], done

    return start


@pytest.mark.slow  # two runs, and the self-test
def test_both_lanes_lead_to_the_same_archive_bit_by_bit(search):
    interpreted, _ = search("interpret")
    compiled, _ = search("compile")
    assert_same_state(state_of(interpreted), state_of(compiled))
    in_interpreter, in_compiler = lanes_of(interpreted), lanes_of(compiled)
    assert in_interpreter["compile"] == 0 and in_interpreter["interpret"] > 100
    assert in_compiler == {"interpret": 0, "compile": in_interpreter["interpret"]}


@pytest.mark.slow  # the self-test
def test_a_gpu_whose_lanes_differ_is_not_used(machine):  # noqa: F811 - the fixture
    told = " ".join(machine("doctor", "--test", wrong="max.ftz.f32@interpret").stdout.split())
    assert "interpreted programs differ from compiled ones: max_ftz_f32; this GPU is not used" in told
