"""evo.cli.cost_table: the table of `evo doctor --measure`."""

from dataclasses import replace

import pytest

from evo.cli import cost_table
from evo.errors import UserError
from evo.evaluate.backends import BACKENDS, CUDA
from evo.evaluate.calibration import Calibration, LaneCosts


@pytest.fixture
def table(monkeypatch):
    """The lines, and the warnings, if a program costs 10 ns a point on the CPU, and on the GPU so many seconds."""

    def make(gpu_s: float | None, why_unusable=lambda: None) -> tuple[list[str], list[str]]:
        def lanes(backend, assignment, batch, calibration):
            if gpu_s is None:
                raise UserError("too little memory")
            lane = LaneCosts(compile_s=4 * gpu_s, host_s=0.0, kernels_s=0.0, score_s=0.0, num_workers=4, num_threads=1)
            return replace(calibration, lanes={"compile": lane})

        def cpu(assignment, batch):
            num_points = len(assignment.task.points()["x"])
            return Calibration(num_points, float(batch.num_instructions.mean()), 2, 1e-8 * num_points, 0.0)

        monkeypatch.setitem(BACKENDS, "cuda", replace(CUDA, why_unusable=why_unusable))
        monkeypatch.setattr(cost_table, "calibrate_lanes", lanes)
        monkeypatch.setattr(cost_table, "calibrate_cpu", cpu)
        warnings: list[str] = []
        return list(cost_table.cost_table(warnings.append, (100, 10_000, 1_000_000))), warnings

    return make


def test_a_row_for_each_number_of_points_and_then_the_break_even(table):
    lines, warnings = table(2e-5)
    assert lines[0].startswith("Time of a program of ") and lines[0].endswith("CPU: 2 threads.")
    rows = [line.split("  ") for line in lines[1:5]]
    assert [[cell.strip() for cell in row if cell] for row in rows] == [
        ["points", "CPU", "GPU compiled", "compiling, a core"],
        ["100", "1 us", "20 us", "80 us"],
        ["10,000", "100 us", "20 us", "80 us"],
        ["1,000,000", "10 ms", "20 us", "80 us"],
    ]
    assert lines[5:] == ["GPU compiled: faster than the CPU from about 2,000 points on"]
    assert warnings == []


def test_without_a_gpu_the_cpu_alone_is_measured_and_that_is_said(table):
    lines, warnings = table(1.0, why_unusable=lambda: "no NVIDIA driver")
    assert lines[1] == "No GPU can be used here: only the CPU is measured."
    assert lines[2].split() == ["points", "CPU"] and len(lines) == 6
    assert warnings == []


def test_a_gpu_that_fails_is_told_and_left_out(table):
    lines, warnings = table(None)
    assert warnings == ["the GPU is not measured at 100 points and beyond: too little memory"]
    assert len(lines) == 6


def test_it_measures_over_the_stand_in(emulated_gpu):
    lines = list(cost_table.cost_table(pytest.fail, (64, 128)))
    assert [line.split()[0] for line in lines[2:4]] == ["64", "128"]
    assert lines[-1].startswith("GPU compiled: ")
