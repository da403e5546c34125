"""evo instructions: the table of what programs may use."""

import pytest
from click.testing import CliRunner

from evo.cli import main


def table(*arguments: str) -> dict[str, list[str]]:
    """Name -> the other columns."""
    result = CliRunner().invoke(main, ["instructions", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    heading, columns, *lines = result.stdout.splitlines()
    assert heading == "# Operands are a, b, c and d; a is on top of its stack."
    starts = [columns.index(name) for name in ("name", "operands", "runs on", "computes")]
    rows = [[line[start:end].strip() for start, end in zip(starts, [*starts[1:], None], strict=True)] for line in lines]
    return {name: rest for name, *rest in rows}


def test_all_of_the_default_set_is_listed():
    rows = table()
    assert len(rows) == 38
    assert rows["selp_f32"] == ["f32 f32 pred -> f32", "CPU, GPU", "select: a if c is true, else b"]
    assert rows["cvt_rna_tf32_f32"][:2] == ["f32 -> tf32", "GPU"]


def test_a_word_of_the_name_or_the_meaning_selects():
    assert list(table("SINE")) == ["sin_approx_ftz_f32", "cos_approx_ftz_f32"]
    assert list(table("mul_lo")) == ["mul_lo_u32", "mul_lo_philox"]
    assert list(table("mad.lo")) == ["mad_lo_u32"]
    assert list(table("--instruction-set", "wide", "majority")) == ["lop3_majority_b32"]


def test_a_config_restricts_to_its_vocabulary(small_config):
    config = small_config()
    assert set(table("--config", config, "--set", "program.vocabulary.instructions=[neg_ftz_f32, abs_ftz_f32]")) == {
        "neg_ftz_f32",
        "abs_ftz_f32",
    }


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


def test_a_wrong_name_in_the_config_gets_its_nearest(small_config):
    wrong = ["instructions", "--config", str(small_config()), "--set", "program.vocabulary.instructions=[add_ftz_f23]"]
    result = CliRunner().invoke(main, wrong)
    assert result.exit_code == 2
    assert "program.vocabulary.instructions: unknown instruction 'add_ftz_f23'; did you mean add_ftz_f32" in result.stderr
