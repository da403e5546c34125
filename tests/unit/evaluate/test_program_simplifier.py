"""evo.evaluate.program_simplifier: what an objective does not need goes, no more, and every change was scored."""

import numpy as np
import pytest

import evo
from evo.errors import UserError
from evo.evaluate import Status
from evo.evaluate.chunks import ChunkScorer
from evo.evaluate.program_simplifier import simplify
from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.formula_text import infix
from evo.language.program import Language, format_program, parse_program


class Line(evo.Task):
    """Minus the largest error against 3 x + y."""

    inputs = {"x": "f32", "y": "f32"}
    outputs = {"f": "f32"}
    measures = {"num_instructions": (0.0, 32.0)}

    def points(self):
        x = np.linspace(-1.0, 1.0, 32, dtype=np.float32)
        return {"x": x, "y": np.roll(x, 7)}

    def score(self, outputs, programs):
        points = self.points()
        error = np.abs(outputs["f"] - (3 * points["x"] + points["y"])).max(axis=1)
        return evo.Scores(-error, programs.num_instructions[:, None])


TASK = Line()
LANGUAGE = Language(shipped_instruction_set("default"), tuple(TASK.inputs.items()), tuple(TASK.outputs.items()))


class Evaluator:
    """Scores as a CPU run does, and remembers the sizes of batches and all programs."""

    def __init__(self):
        self.scorer = ChunkScorer(LANGUAGE, TASK)
        self.sizes, self.hashes = [], set()

    def __call__(self, batch):
        self.sizes.append(len(batch))
        self.hashes |= {row.tobytes() for row in batch.hashes}
        return self.scorer.score(batch.words, batch.num_instructions)


def simplified(text: str, tolerance: float = 1e-3, max_length: int = 48):
    evaluate = Evaluator()
    found = simplify(LANGUAGE, evaluate, parse_program(LANGUAGE, text, "text", max_length), tolerance)
    return found, evaluate


# 0.0001 sin(y) and a factor of 1.0000001 do not matter at a tolerance of 0.001; 3.0001 may be 3.
NOISY = "2.0 %x 3.0001 mul_ftz_f32 %y sin_approx_ftz_f32 0.0001 mul_ftz_f32 add_ftz_f32 %y add_ftz_f32 1.0000001 mul_ftz_f32"


def test_instructions_and_digits_without_effect_go():
    found, evaluate = simplified(NOISY)
    terms = infix(dag_of(LANGUAGE, found.program.words[0])).strip().removeprefix("f = ").split(" + ")
    assert sorted("*".join(sorted(term.split("*"))) for term in terms) == ["3*x", "y"]
    assert found.program.num_instructions.tolist() == [2]
    assert found.after.objective[0] == 0.0 and found.after.measures.tolist() == [[2.0]]
    assert len(format_program(LANGUAGE, found.program.words[0]).split()) == 5  # and the dead constant
    assert max(evaluate.sizes) > 10
    assert found.program.hashes.tobytes() in evaluate.hashes


def test_what_matters_stays():
    found, _ = simplified(NOISY, tolerance=0.0)
    assert found.after.objective[0] >= found.before.objective[0]
    found, _ = simplified("%x %x add_ftz_f32 %x add_ftz_f32 %y add_ftz_f32")
    assert found.program.num_instructions.tolist() == [3] and found.after.objective.tolist() == [0.0]
    found, _ = simplified("%x 2.75 mul_ftz_f32 %y add_ftz_f32", tolerance=0.04)
    assert infix(dag_of(LANGUAGE, found.program.words[0])).count("3") == 1


@pytest.mark.parametrize("tolerance", [0.3, 0.05, 1e-3, 1e-6])
def test_no_more_than_the_tolerance_is_lost_in_all(tolerance):
    found, _ = simplified(
        "%x 2.71828 mul_ftz_f32 %y 0.987654 mul_ftz_f32 add_ftz_f32 %x sin_approx_ftz_f32 0.1234567 mul_ftz_f32 add_ftz_f32",
        tolerance,
    )
    assert found.before.objective[0] - found.after.objective[0] <= tolerance


def test_values_that_are_used_twice_and_a_full_program_are_simplified_too():
    text = "%x sin_approx_ftz_f32 dup.f32 sub_ftz_f32 %x 3.0 mul_ftz_f32 add_ftz_f32 %y add_ftz_f32"
    found, _ = simplified(text, max_length=len(text.split()))
    assert found.program.num_instructions.tolist() == [2]
    assert found.program.words.shape == (1, len(text.split()))


def test_a_program_without_a_score_is_refused():
    with pytest.raises(UserError, match="no finite score"):
        simplified("%x 0x7f800000:f32 mul_ftz_f32")


def test_predicates_and_integers_may_stand_between():
    found, _ = simplified("%x 3.0 mul_ftz_f32 %y add_ftz_f32 dup.f32 1.0 add_ftz_f32 %x 5.0 setp_lt_ftz_f32 selp_f32")
    assert found.after.status.tolist() == [Status.OK]
    assert found.before.objective[0] - found.after.objective[0] <= 1e-3 * max(1, -found.before.objective[0])


def test_constants_stay_finite():
    found, _ = simplified("%x 3.4028235e38 mul_ftz_f32 0.0 mul_ftz_f32 %y add_ftz_f32", tolerance=1.0)
    assert "0x7f800000" not in format_program(LANGUAGE, found.program.words[0])


@pytest.mark.parametrize("tolerance", [-0.1, float("nan")])
def test_a_tolerance_below_zero_is_refused(tolerance):
    with pytest.raises(UserError, match="tolerance: must be a number from 0 on"):
        simplified("%x", tolerance)
