"""tasks/morphogenesis and reaction_diffusion: their cells are those of loops in NumPy; what is shipped grows, heals and forms."""

import numpy as np
import pytest

import evo
from evo.evaluate.chunks import ChunkScorer
from evo.instructions import shipped_instruction_set
from evo.language.infix import parse_infix
from evo.language.program import Language, parse_program
from evo.shipped import shipped
from evo.tasks.folder import load_task

AROUND = {"n": (1, 0), "e": (0, -1), "s": (-1, 0), "w": (0, 1)}  # how np.roll brings a neighbour here


def task_of(name, **options):
    return load_task(shipped("tasks")[name], options)


def scorer_and_words(task, text):
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    if "%" in text:
        return ChunkScorer(language, task), parse_program(language, text, "text", 128)[None]
    words = parse_infix(language, text, "text", 64, [each.name for each in language.instruction_set.instructions])
    return ChunkScorer(language, task), words[None]


def program_of(name, program):
    task = task_of(name)
    return task, *scorer_and_words(task, (shipped("tasks")[name] / "programs" / f"{program}.txt").read_text())


def shifted(plane, dy, dx, outside):
    """A plane whose cells are their neighbours', by padding."""
    padded = np.pad(plane, 1, constant_values=outside)
    return padded[1 - dy : 1 - dy + plane.shape[0], 1 - dx : 1 - dx + plane.shape[1]]


def test_cells_know_their_place_and_live_beside_the_living():
    task = task_of("morphogenesis")
    scorer, words = scorer_and_words(task, "1 - 2*x*x - 2*y*y")
    found = {name: records[0] for name, records in scorer.outputs(words, task.points()).items()}
    points, cell, empty = task.points(), np.float32(1 / 16), np.float32(-16)
    a, x, y = (points[name].astype(np.float32) for name in "axy")
    for step in range(task.rollout.steps):
        near = {
            f"{channel}_{at}": shifted(plane, *AROUND[at], empty)
            for channel, plane in zip("axy", (a, x, y), strict=True)
            for at in AROUND
        }
        may_live = np.maximum.reduce([a, *(near[f"a_{at}"] for at in AROUND)]) > 0
        next_a = np.float32(1) - np.float32(2) * x * x - np.float32(2) * y * y
        next_x = np.maximum.reduce([x, near["x_w"] + cell, near["x_e"] - cell, near["x_n"], near["x_s"]])
        next_y = np.maximum.reduce([y, near["y_n"] + cell, near["y_s"] - cell, near["y_e"], near["y_w"]])
        lives = may_live & (points["wound"][step, 0] == 0)
        a, x, y = (np.where(lives, np.clip(each, -16, 16), empty) for each in (next_a, next_x, next_y))
        if (step + 1) % task.rollout.record_every == 0:
            for name, plane in zip("axy", (a, x, y), strict=True):
                np.testing.assert_array_equal(found[name][step // task.rollout.record_every, 0], plane)
    assert 300 < (a > 0).sum() < 500 and (points["wound"] != 0).sum() == 32 * 32  # a disc, after two wounds of half the grid


def test_the_shipped_organism_grows_and_heals_wounds_that_it_has_not_known():
    task, scorer, words = program_of("morphogenesis", "heart")
    said = {name: values[0] for name, values in task.report(scorer.outputs(words, task.report_points())).items()}
    assert min(said.values()) > 0.96, said
    figure = np.array([list(line) for line in (shipped("tasks")["morphogenesis"] / "figures" / "heart.txt").read_text().split()])
    alive = scorer.outputs(words, task.points())["a"][0, :, 0] > 0
    grown, wounded, healed = alive[11], alive[12], alive[19]
    assert ((grown == (figure == "#")).mean(), (healed == (figure == "#")).mean()) > (0.96, 0.96)
    assert not wounded[:, :12].any() and wounded[:, 16:].any()


def test_a_figure_is_a_file_of_lines(tmp_path):
    path = tmp_path / "figure.txt"
    path.write_text("\n".join(["." * 8 + "#" * 16 + "." * 8] * 32))
    task = task_of("morphogenesis", figure=str(path))
    assert task.files() == [path]
    path.write_text("##\n##\n")
    with pytest.raises(evo.UserError, match="must have 32 lines of 32 characters"):
        task_of("morphogenesis", figure=str(path))
    with pytest.raises(evo.UserError, match="no figure lizard"):
        task_of("morphogenesis", figure="lizard")


def test_chemicals_react_and_diffuse():
    task, scorer, words = program_of("reaction_diffusion", "mazes")
    found = scorer.outputs(words, task.points())
    u, v = (task.points()[name].astype(np.float64) for name in "uv")
    for _ in range(task.rollout.record_every):
        lap = [sum(np.roll(each, at, (0, 1)) for at in AROUND.values()) - 4 * each for each in (u, v)]
        r = u * v * v
        u, v = (
            np.clip(each + diffusion * around + np.clip(reaction, -0.05, 0.05), 0, 1)
            for each, diffusion, around, reaction in ((u, 0.2, lap[0], 0.03 * (1 - u) - r), (v, 0.05, lap[1], r - 0.085 * v))
        )
    np.testing.assert_allclose(found["u"][0, 0, 0], u, atol=1e-5)
    np.testing.assert_allclose(found["v"][0, 0, 0], v, atol=1e-5)


def test_measures_are_those_of_waves_and_noise_scores_low():
    task = task_of("reaction_diffusion")
    at = np.arange(64)
    wave = 0.5 + 0.4 * np.sin(2 * np.pi * at / 8 + 0.3)[None, :] * np.ones((64, 1))
    spots = (at[:, None] % 16 < 8) & (at[None, :] % 16 < 8)
    noise = np.random.default_rng(1).random((64, 64))
    v = np.stack([np.broadcast_to(each, (25, 1, 64, 64)) for each in (wave, spots * 1.0, noise, noise * 0 + 0.3)]).astype(
        np.float32
    )
    v = np.concatenate([v, np.where(np.arange(25)[None, :, None, None, None] < 20, 0.0, v[:1]), v[:1] * np.nan])
    scores = task.score({"u": v, "v": v}, None)
    wavelength, coverage, motion = scores.measures.T
    assert wavelength[0] == pytest.approx(8.0) and coverage[0] == pytest.approx(0.5, abs=0.07)
    assert coverage[1] == pytest.approx(0.25) and motion[0] == 0.0 < 0.5 < motion[4]
    assert scores.objective[0] > 0.9 > 0.3 > scores.objective[2] > scores.objective[3] == 0.0
    assert np.isnan(scores.objective[5])


@pytest.mark.parametrize(("name", "program"), [("morphogenesis", "heart"), ("reaction_diffusion", "mazes")])
def test_a_film_shows_what_has_happened_and_a_still_the_end(name, program):
    task, scorer, words = program_of(name, program)
    first, middle, late, last, still = (
        task.picture(scorer.outputs(words, task.picture_points(40, t)), 40)[0] for t in (0.001, 0.3, 0.5, 0.99999, 0.0)
    )
    assert all((one != other).any() for one, other in ((first, middle), (middle, late), (late, still)))
    np.testing.assert_array_equal(last, still)
