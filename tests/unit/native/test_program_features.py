"""Features of programs: outputs at probe points, counts and shape, worked out by hand and by NumPy."""

import numpy as np
import pytest

from evo.instructions import shipped_instruction_set
from evo.itll import ProgramFeatures
from evo.language.program import Language, parse_program
from evo.native.ptx_vm import VirtualMachine, levels

POINTS = np.linspace(-2, 2, 24, dtype=np.float32)
OTHERS = np.linspace(3, 1, 24, dtype=np.float32) ** 2


@pytest.fixture(scope="module")
def language():
    return Language(shipped_instruction_set("default"), (("x", "f32"), ("y", "f32")), (("f", "f32"),))


def describe(language, texts, level=None, **options):
    """Features of programs as a mapping from their names to an array over programs."""
    rows = [parse_program(language, text, "text") for text in texts]
    words = np.zeros((len(rows), max(map(len, rows))), np.uint64)
    for to, row in zip(words, rows, strict=True):
        to[: len(row)] = row
    points = [POINTS, OTHERS, *[None] * len(language.outputs)]
    features = ProgramFeatures(VirtualMachine(language.lowering, level), points, **options)
    table = features.describe(words)
    assert table.shape == (len(texts), features.num_features) == (len(texts), len(features.names))
    assert np.isfinite(table).all()
    return dict(zip(features.names, table.T, strict=True))


def outputs(found, program=0):
    return np.array([found[f"output_f_{i}"][program] for i in range(len(POINTS))])


def squash(y):
    return y / (1 + np.abs(y))


def test_infinite_outputs_are_one_and_others_zero(language):
    found = describe(language, ["%x lg2_approx_ftz_f32", "0.0 rcp_approx_ftz_f32"])
    expected = np.where(POINTS > 0, squash(np.log2(np.maximum(POINTS, 1e-30))), 0)
    np.testing.assert_allclose(outputs(found, 0), expected, atol=1e-6)
    assert found["nonfinite"].tolist() == [0.5, 1.0]
    assert (outputs(found, 1) == 1).all()


def test_integers_count_by_their_value_and_missing_outputs_as_zero(language):
    language = Language(language.instruction_set, language.inputs, (("f", "f32"), ("u", "u32")))
    found = describe(language, ["7:u32", "return"])
    assert [found[f"output_{name}_5"].tolist() for name in "fu"] == [[0.0, 0.0], [squash(7), 0.0]]


def test_scaled_programs_that_differ_by_a_line_look_the_same(language):
    texts = [
        "%x %y mul_ftz_f32",
        "%x %y mul_ftz_f32 -4.0 mul_ftz_f32 100.0 add_ftz_f32",
        "3.0",
    ]
    found = describe(language, texts, is_scaled=True)
    product = POINTS.astype(np.float64) * OTHERS
    z = (product - product.mean()) / product.std()
    np.testing.assert_allclose(outputs(found, 0), squash(z * np.sign(z[0])), atol=1e-6)
    np.testing.assert_allclose(outputs(found, 1), outputs(found, 0), atol=1e-5)
    assert not outputs(found, 2).any()


def test_counts_and_shape(language):
    # f = x * x + (0.5 * x - 3), a value used twice: live 4 instructions on a way of 3; y is not read, the first tanh is dead
    text = "%x tanh_approx_f32 3.0 0.5 %x mul_ftz_f32 sub_ftz_f32 %x %x mul_ftz_f32 add_ftz_f32"
    found = {name: values[0] for name, values in describe(language, [text]).items()}
    live = {name for name in found if name.endswith("f32") and found[name]}
    assert live == {"mul_ftz_f32", "sub_ftz_f32", "add_ftz_f32"} and found["mul_ftz_f32"] == 2
    assert (found["num_instructions"], found["depth"], found["num_inputs"], found["num_constants"]) == (4, 3, 1, 2)
    constants = squash(np.array([3, 0.5]))
    np.testing.assert_allclose(found["constants_mean"], constants.mean(), rtol=1e-6)
    np.testing.assert_allclose(found["constants_deviation"], constants.std(), rtol=1e-5)
    np.testing.assert_allclose([found["constants_least"], found["constants_greatest"]], [constants.min(), constants.max()])
    np.testing.assert_allclose(found["uses"], 8 / 7)  # operands by values: x, 3, 0.5 and four results
    assert sum(value for name, value in found.items() if name.startswith("bigram_")) == 8


def test_bigrams_tell_programs_with_equal_counts_apart(language):
    texts = [
        "%x sin_approx_ftz_f32 cos_approx_ftz_f32 tanh_approx_f32",
        "%x tanh_approx_f32 cos_approx_ftz_f32 sin_approx_ftz_f32",
    ]
    found = describe(language, texts, num_bigrams=64)
    assert all(np.ptp(found[name]) == 0 for name in ("sin_approx_ftz_f32", "cos_approx_ftz_f32", "num_instructions", "depth"))
    assert any(np.ptp(values) for name, values in found.items() if name.startswith("bigram_"))
    assert not any(name.startswith("bigram_") for name in describe(language, texts, num_bigrams=0))


def test_every_level_has_the_same_bits(language):
    texts = ["%x sin_approx_ftz_f32 %y div_approx_ftz_f32", "%y"]
    tables = [np.stack(list(describe(language, texts, level=level).values())) for level in levels()]
    assert all(np.array_equal(table, tables[0]) for table in tables)


def test_a_program_without_cpu_semantics_has_its_counts(language):
    found = describe(language, ["special:clock cvt_rn_f32_u32 %x add_ftz_f32"])
    assert not outputs(found).any()
    assert found["add_ftz_f32"][0] == 1 and found["num_instructions"][0] == 2


def test_wrong_arguments_are_refused(language):
    machine = VirtualMachine(language.lowering)
    with pytest.raises(ValueError, match="input 'x': expected an array of type float32 or uint32, got float64"):
        ProgramFeatures(machine, [POINTS.astype(float), OTHERS, None])
    features = ProgramFeatures(machine, [POINTS, None, None])
    with pytest.raises(ValueError, match=r"words: expected uint64 of shape \(num_programs, max_length\), got float64 of \(3,\)"):
        features.describe(np.zeros(3))
    with pytest.raises(ValueError, match="describe: a program reads a register that has no values"):
        features.describe(np.array([parse_program(language, "%y", "text")], np.uint64))
    assert features.describe(np.zeros((0, 4), np.uint64)).shape == (0, features.num_features)
