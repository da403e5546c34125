"""evo instructions: the table of what programs may use."""

import json

import pytest
from click.testing import CliRunner

from evo.cli import main


def table(*arguments: str) -> dict[str, list[str]]:
    """Name -> the other columns."""
    result = CliRunner().invoke(main, ["instructions", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    operands, slots, columns, *lines = result.stdout.splitlines()
    assert operands == "# Operands are a, b, c and d; a is on top of its stack."
    target = arguments[arguments.index("--target") + 1] if "--target" in arguments else "sm_90"
    assert slots == f"# Slots: of the four in a clock of a multiprocessor of {target}, those that a warp takes."
    starts = [columns.index(name) for name in ("name", "operands", "runs on", "slots", "computes")]
    rows = [[line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)] for line in lines]
    return {name: rest for name, *rest in rows}


def test_all_of_the_default_set_is_listed():
    rows = table()
    assert len(rows) == 38
    types, backends, slots, meaning = rows["selp_f32"]
    assert (types, backends, slots, meaning) == ("f32 f32 pred -> f32", "CPU, GPU", "2", "select: a if c is true, else b")
    assert rows["cvt_rna_tf32_f32"][:3] == ["f32 -> tf32", "GPU", "6"]


def test_slots_are_those_of_the_target():
    """CUDA C++ Programming Guide: a multiprocessor adds 64 f32 in a clock up to 8.0, 128 from 8.6 on; tf32 begins with 8.0."""
    shown = {target: {name: row[2] for name, row in table("--target", target, "f32").items()} for target in ("sm_75", "sm_89")}
    names = ("add_ftz_f32", "min_ftz_f32", "ex2_approx_ftz_f32", "cvt_rna_tf32_f32")
    assert [shown["sm_75"][name] for name in names] == ["2", "2", "8", "-"]
    assert [shown["sm_89"][name] for name in names] == ["1", "2", "8", "6"]


def test_a_set_of_ones_own_is_listed(tmp_path):
    row = {"ptx": "add.u32", "args": ["U32", "U32"], "rets": ["U32"], "num_commutative": 2}
    stacks, types = [{"name": "U32", "literal_prefix": "u32"}], [{"name": "U32", "stack_type": "U32"}]
    description = {"abi_version": 1, "stack_types": stacks, "arg_types": types, "instructions": [row]}
    path = tmp_path / "integers.json"
    path.write_text(json.dumps(description))
    [(types, backends, slots, _)] = table("--instruction-set", path).values()
    assert (types, backends, slots) == ("u32 u32 -> u32", "CPU, GPU", "2")  # the slots of the library's add.u32


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
