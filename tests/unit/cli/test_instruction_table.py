"""evo instructions: the table of what programs may use."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from evo.cli import main
from evo.evaluate import instruction_costs as costs
from evo.instructions import shipped_instruction_set
from evo.native.ptx_vm import VirtualMachine


def table(*arguments: str) -> dict[str, list[str]]:
    """Name -> the other columns."""
    result = CliRunner().invoke(main, ["instructions", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    operands, cost, slots, columns, *lines = result.stdout.splitlines()
    assert operands == "# Operands are a, b, c and d; a is on top of its stack."
    assert cost == "# Cost: nanoseconds a point on one core of this CPU, measured now."
    target = arguments[arguments.index("--target") + 1] if "--target" in arguments else "sm_90"
    assert slots == f"# Slots: of the four in a clock of a multiprocessor of {target}, those that a warp takes."
    starts = [columns.index(name) for name in ("name", "operands", "runs on", "cost", "slots", "computes")]
    rows = [[line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)] for line in lines]
    return {name: rest for name, *rest in rows}


def test_all_of_the_default_set_is_listed():
    rows = table()
    assert len(rows) == 38
    types, backends, _, slots, meaning = rows["selp_f32"]
    assert (types, backends, slots, meaning) == ("f32 f32 pred -> f32", "CPU, GPU", "2", "select: a if c is true, else b")
    assert rows["cvt_rna_tf32_f32"][:4] == ["f32 -> tf32", "GPU", "-", "6"]


def test_slots_are_those_of_the_target():
    """CUDA C++ Programming Guide: a multiprocessor adds 64 f32 in a clock up to 8.0, 128 from 8.6 on; tf32 begins with 8.0."""
    shown = {target: {name: row[3] for name, row in table("--target", target, "f32").items()} for target in ("sm_75", "sm_89")}
    names = ("add_ftz_f32", "min_ftz_f32", "ex2_approx_ftz_f32", "cvt_rna_tf32_f32")
    assert [shown["sm_75"][name] for name in names] == ["2", "2", "8", "-"]
    assert [shown["sm_89"][name] for name in names] == ["1", "2", "8", "6"]


def test_cost_is_the_time_that_a_point_adds_to_each_copy(monkeypatch):
    """A clock that only the machine moves: 3 ms a call and 20 ns for each value of an output."""
    clock = {"s": 0.0}
    store = VirtualMachine.store

    class Machine(VirtualMachine):
        def store(self, words, inputs, out=None):
            values = store(self, words, inputs, out)
            clock["s"] += 3e-3 + 20e-9 * values.size
            return values

    monkeypatch.setattr(costs, "VirtualMachine", Machine)
    monkeypatch.setattr(costs.time, "perf_counter", lambda: clock["s"])
    names = ["add_ftz_f32", "setp_eq_u32", "selp_f32", "cvt_rna_tf32_f32"]
    measured = costs.instruction_costs(shipped_instruction_set("default"), names)
    assert list(measured) == names[:3]
    np.testing.assert_allclose(list(measured.values()), 20.0)
    assert {name: row[2] for name, row in table("setp_eq_u32").items()} == {"setp_eq_u32": "20.00"}


def test_a_set_without_floats_has_costs(tmp_path):
    row = {"ptx": "add.u32", "args": ["U32", "U32"], "rets": ["U32"], "num_commutative": 2}
    stacks, types = [{"name": "U32", "literal_prefix": "u32"}], [{"name": "U32", "stack_type": "U32"}]
    description = {"abi_version": 1, "stack_types": stacks, "arg_types": types, "instructions": [row]}
    path = tmp_path / "integers.json"
    path.write_text(json.dumps(description))
    [(types, backends, cost, slots, _)] = table("--instruction-set", path).values()
    assert (types, backends, slots) == ("u32 u32 -> u32", "CPU, GPU", "2")  # the slots of the library's add.u32
    assert float(cost) >= 0.0


def test_programs_that_are_measured_compute_each_copy(monkeypatch):
    """Eight sums of neighbours: operands that repeat would be numbered as one value."""
    outputs: list[list[float]] = []

    class Machine(VirtualMachine):
        def store(self, words, inputs, out=None):
            values = super().store(words, inputs, out)
            outputs.append(values[0, :, 0].tolist())
            return values

    monkeypatch.setattr(costs, "VirtualMachine", Machine)
    monkeypatch.setattr(costs, "NUM_ROUNDS", 1)
    operands = 0.5 + np.arange(9) / 16
    costs.instruction_costs(shipped_instruction_set("default"), ["add_ftz_f32"])
    assert sorted(outputs[0]) == (operands[:-1] + operands[1:]).tolist()


def test_a_word_of_the_name_or_the_meaning_selects():
    assert list(table("SINE")) == ["sin_approx_ftz_f32", "cos_approx_ftz_f32"]
    assert list(table("mul_lo")) == ["mul_lo_u32", "mul_lo_philox"]
    assert list(table("mad.lo")) == ["mad_lo_u32"]
    assert list(table("--instruction-set", "wide", "majority")) == ["lop3_majority_b32"]


def test_a_config_restricts_to_its_vocabulary(small_config):
    names = ("neg_ftz_f32", "abs_ftz_f32")
    assert set(table("--config", small_config(), "--set", f"program.vocabulary.instructions=[{', '.join(names)}]")) == set(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tanhh"], "no instruction has 'tanhh' in its name or meaning; did you mean tanh_approx_f32?"),
        (["@@"], "no instruction has '@@' in its name or meaning; one of 38, such as: add_u32, sub_u32, mul_lo_u32"),
        (
            ["--config", "c.yaml", "--instruction-set", "wide"],
            "--config and --instruction-set: give one of them; --set program.instruction_set=SET overrides the config's",
        ),
        (["--set", "seed=1"], "--set: overrides a key of a config; name it with --config"),
        (["--instruction-set", "none.json"], "none.json: cannot read the instruction set: No such file or directory"),
    ],
)
def test_what_it_refuses(arguments, message):
    result = CliRunner().invoke(main, ["instructions", *arguments])
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"evo: {message}\n")
