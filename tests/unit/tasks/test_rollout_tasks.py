"""tasks/pendulum, cart_pole and escape_time: their loops are what textbooks say, and their shipped runs solve them."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from evo.config import load_config
from evo.evaluate.chunks import ChunkScorer
from evo.instructions import shipped_instruction_set
from evo.language.infix import parse_infix
from evo.language.program import Language
from evo.report.recompute import report_facts
from evo.run.loaded_task import load_problem
from evo.run.search import Search
from evo.shipped import shipped
from evo.tasks.folder import load_task


def scorer_and_words(task, text):
    language = Language(shipped_instruction_set("default"), tuple(task.inputs.items()), tuple(task.outputs.items()))
    words = parse_infix(language, text, "text", 64, [each.name for each in language.instruction_set.instructions])
    return ChunkScorer(language, task), words[None]


def records_of(task, text, points):
    scorer, words = scorer_and_words(task, text)
    return {name: records[0] for name, records in scorer.outputs(words, points).items()}


def test_a_pendulum_is_a_pendulum():
    task = load_task(shipped("tasks")["pendulum"], {"strength": 0.25})
    angle = np.array([3.0, 1.0])
    begin = {"c": np.cos(angle), "s": np.sin(angle), "speed": [0.0, -0.5], "effort": 0.0, "weight": [1.0, 1.3]}
    found = records_of(task, "motor = 2*speed + 0.1", begin)
    for number, (start, speed, weight) in enumerate(zip(angle, [0.0, -0.5], [1.0, 1.3], strict=True)):

        def slope(_, state, weight=weight):
            return [state[1], weight * np.sin(state[0]) + 0.25 * np.clip(2 * state[1] + 0.1, -1, 1)]

        times = np.arange(1, 8) * task.rollout.record_every * task.rollout.dt
        wanted = solve_ivp(slope, (0, times[-1]), [start, speed], t_eval=times, rtol=1e-9, atol=1e-9).y
        np.testing.assert_allclose(found["c"][:7, number], np.cos(wanted[0]), atol=0.01)
        np.testing.assert_allclose(found["speed"][:7, number], wanted[1], atol=0.01)


def test_a_cart_and_its_pole_keep_their_energy_unless_pushed():
    task = load_task(shipped("tasks")["cart_pole"], {})
    angle = np.array([0.4, 2.0])
    begin = {"x": 0.0, "v": [0.5, -1.0], "c": np.cos(angle), "s": np.sin(angle), "speed": [0.0, 1.0]}
    found = records_of(task, "motor = 0*x", {**begin, "effort": 0.0, "strength": 1.0})
    v, c, speed = (np.vstack([np.broadcast_to(begin[name], 2), found[name]]) for name in ("v", "c", "speed"))
    # Cart of 1 kg; pole of 0.1 kg with its middle 0.5 m from the joint, whose inertia there is 4/3 of 0.1 * 0.5^2.
    energy = 0.5 * 1.1 * v**2 + 0.05 * speed * v * c + 0.5 * (4 / 3) * 0.025 * speed**2 + 0.1 * 9.8 * 0.5 * c
    np.testing.assert_allclose(energy, np.broadcast_to(energy[0], energy.shape), rtol=2e-3)
    pushed = records_of(task, "motor = 5", {**begin, "effort": 0.0, "strength": 1.0})  # of which 1 counts
    np.testing.assert_allclose(pushed["effort"][-1], 1.0, rtol=1e-3)
    total = 1.1 * pushed["v"] + 0.05 * pushed["speed"] * pushed["c"]  # momentum along the track
    np.testing.assert_allclose(total[3] - total[2], 10.0 * task.rollout.record_every * task.rollout.dt, rtol=1e-2)


def test_the_mandelbrot_set_stays():
    task = load_task(shipped("tasks")["escape_time"], {})
    points = task.points()
    found = records_of(task, "f = a; g = b", points)
    c = points["a"] + 1j * points["b"].astype(np.float64)
    z, escaped = c.copy(), np.zeros(c.shape, bool)
    for _ in range(task.rollout.steps):
        escaped |= np.abs(z) >= 32.0
        z[~escaped] = z[~escaped] ** 2 + c[~escaped]
    stayed = np.hypot(found["x"][-1], found["y"][-1]) < 32.0
    assert 0.2 < stayed.mean() < 0.3
    assert (stayed == (np.abs(z) < 32.0)).mean() > 0.998


@pytest.mark.parametrize(("name", "text"), [("pendulum", "motor = speed"), ("cart_pole", "motor = 0.3*x + 0.6*v + 5*s + speed")])
def test_a_film_shows_what_has_happened_and_a_still_all_of_it(name, text):
    task = load_task(shipped("tasks")[name], {})
    scorer, words = scorer_and_words(task, text)
    lit = [
        (task.picture(scorer.outputs(words, task.picture_points(64, t)), 64)[0].max(axis=-1) > 40).sum()
        for t in (0.01, 0.3, 0.6, 0.0)
    ]
    assert lit == sorted(lit) and lit[0] < lit[1] < lit[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum", "cart_pole"])
def test_the_shipped_run_solves_starts_that_it_has_not_seen(name):
    config = load_config(shipped("configs")[name], [])
    problem = load_problem(config)
    try:
        search = Search(problem)
        best = held = 0.0
        for _ in search.generations():
            elites = search.archive.elites()
            if elites.objective.max() > best:
                best = elites.objective.max()
                held = report_facts(problem, elites.solution[[int(np.argmax(elites.objective))]])["held"][0]
            if held >= 0.95:
                break
        assert held >= 0.95
    finally:
        problem.close()
