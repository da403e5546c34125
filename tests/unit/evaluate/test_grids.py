"""Rollout.grid on the CPU: cells are those of a stencil in NumPy, whatever the boundary, chunks, threads and SIMD level are."""

import numpy as np
import pytest
from rollout_programs import RolloutTask, language_of, records_of, scores_however_computed, words_of

import evo
from evo.evaluate.chunks import ChunkScorer
from evo.tasks.folder import check_declarations

RNG = np.random.default_rng(7)
MOORE = {"n": (-1, 0), "e": (0, 1), "s": (1, 0), "w": (0, -1), "ne": (-1, 1), "se": (1, 1), "sw": (1, -1), "nw": (-1, -1)}
ROWS, COLUMNS = 9, 37  # no multiples of a block, with margins or without


class Cells(RolloutTask):
    """A task of any grid."""

    def __init__(self, inputs, outputs, points, state, grid, targets=None, kind="f32", **more):
        super().__init__(inputs, outputs, evo.Rollout(state=state, grid=grid, **more), points, targets, kind)


def neighbour(plane, dy, dx, boundary) -> np.ndarray:
    """A neighbour's value at each cell of `(..., height, width)`, by NumPy."""
    if boundary == "periodic":
        return np.roll(plane, (-dy, -dx), axis=(-2, -1))
    mode = {"mode": "symmetric"} if boundary == "reflect" else {"constant_values": boundary}
    far = max(abs(dy), abs(dx))
    padded = np.pad(plane, [(0, 0)] * (plane.ndim - 2) + [(far, far)] * 2, **mode)
    height, width = plane.shape[-2:]
    return padded[..., far + dy : far + dy + height, far + dx : far + dx + width]


def test_the_game_of_life_is_a_program():
    cells = (RNG.random((3, ROWS, COLUMNS)) < 0.4).astype(np.float32)
    task = Cells(
        ["x", *(f"x_{name}" for name in MOORE)], ["next"], {"x": cells}, {"x": "next"}, evo.Grid((ROWS, COLUMNS)), steps=25
    )
    count = " + ".join(f"x_{name}" for name in MOORE)
    found = records_of(task, f"c = {count} + 0.5*x\nnext = select(2.4 < c, select(c < 3.6, 1, 0), 0)")["x"][
        0
    ]  # 3, or 2 and alive
    assert found.shape == (25, 3, ROWS, COLUMNS)
    for record in found:
        count = sum(neighbour(cells, dy, dx, "periodic") for dy, dx in MOORE.values())
        cells = ((count == 3) | ((count == 2) & (cells == 1))).astype(np.float32)
        np.testing.assert_array_equal(record, cells)
    assert cells.any()


@pytest.mark.parametrize("boundary", ["periodic", "reflect", 0.75])
@pytest.mark.parametrize(
    "offsets", [{"n": (-1, 0), "e": (0, 1), "s": (1, 0), "w": (0, -1)}, MOORE, {"far": (-3, 2), "right": (0, 4), "me": (0, 0)}]
)
@pytest.mark.parametrize("shape", [(ROWS, COLUMNS), (4, 4), (40, 130)])
def test_channels_follow_their_stencils(boundary, offsets, shape):
    u, v = RNG.normal(size=(2, 2, *shape)).astype(np.float32)
    names = "von_neumann" if len(offsets) == 4 else offsets
    state = {"u": "0.25*q + 0.5*v", "v": " + ".join(["p", *(f"v_{name}" for name in offsets)])}
    inputs = ["u", "v", *(f"u_{name}" for name in offsets)]
    task = Cells(inputs, ["p", "q"], {"u": u, "v": v}, state, evo.Grid(shape, names, boundary), steps=6, record_every=2)
    found = records_of(task, "p = 0.125*u\nq = " + " - ".join(f"u_{name}" for name in offsets))
    for step in range(6):
        q = None
        total = np.float32(0.125) * u
        for dy, dx in offsets.values():
            here = neighbour(u, dy, dx, boundary)
            q = here if q is None else q - here
            total = total + neighbour(v, dy, dx, boundary)
        u, v = np.float32(0.25) * q + np.float32(0.5) * v, total
        if step % 2:
            np.testing.assert_array_equal(found["u"][0, step // 2], u)
            np.testing.assert_array_equal(found["v"][0, step // 2], v)


def test_values_that_are_no_states_may_differ_by_cell_grid_and_step():
    shape, steps = (5, 6), 4
    given = {
        "everywhere": RNG.normal(size=()),
        "cell": RNG.normal(size=shape),
        "grid": RNG.normal(size=(3, 1, 1)),
        "step": RNG.normal(size=(steps, 1, 1, 1)),
        "all": RNG.normal(size=(steps, 3, *shape)),
    }
    given = {name: values.astype(np.float32) for name, values in given.items()}
    task = Cells(["x", *given], ["next"], {"x": 0.0, **given}, {"x": "next"}, evo.Grid(shape), steps=steps)
    found = records_of(task, "next = x + everywhere + cell + grid + step + all")["x"][0]
    x = np.zeros((3, *shape), np.float32)
    for step in range(steps):
        for name, values in given.items():
            x = x + (values[step] if name in ("step", "all") else values)
        np.testing.assert_array_equal(found[step], x)


def test_euler_diffuses_what_the_boundary_keeps():
    x = RNG.random((2, 12, 12)).astype(np.float32)
    state = {"x": "rate*(x_n + x_s + x_w + x_e - 4*x)"}
    task = Cells(
        ["x"], ["rate"], {"x": x}, state, evo.Grid((12, 12), "von_neumann", "reflect"), steps=400, integrator="euler", dt=0.5
    )
    end = records_of(task, "rate = 0.4")["x"][0, -1]
    np.testing.assert_allclose(end, np.broadcast_to(x.mean(axis=(1, 2), keepdims=True), x.shape), atol=1e-3)


def test_a_grid_ends_at_its_first_record_with_a_cell_that_is_not_finite():
    x = np.full((2, 3, 3), 1.0, np.float32)
    x[1, 2, 0] = 1e30
    grid = evo.Grid((3, 3), "von_neumann")
    task = Cells(["x"], ["next"], {"x": x, "n": 0}, {"x": "next", "n": "n + x_n"}, grid, steps=6, record_every=2)
    found = records_of(task, "next = x*x")
    assert (found["x"][0, :, 0] == 1.0).all() and (found["n"][0, -1, 0] == 6.0).all()
    assert all((each[0, :, 1].view(np.uint32) == 0x7FFFFFFF).all() for each in found.values())


def swarm() -> Cells:
    state = {"u": "u + 0.2*(u_n + u_s + u_w + u_e - 4*u) + p", "v": "v + 0.1*(v_n + v_s + v_w + v_e - 4*v) + q"}
    points = {"u": RNG.random((3, ROWS, COLUMNS)), "v": RNG.random((ROWS, COLUMNS))}
    return Cells(["u", "v"], ["p", "q"], points, state, evo.Grid((ROWS, COLUMNS), "von_neumann"), steps=20, record_every=10)


def test_all_levels_chunks_and_threads_give_the_same_bits():
    found = scores_however_computed(swarm(), *(f"p = sin({k}*u*v) - 0.5*u\nq = tanh(u - {k}*v)" for k in range(1, 30)))
    assert np.isfinite(found).all() and len(set(found)) == len(found)


def test_sums_compare_cells_with_recorded_ones():
    task = swarm()
    truth = {name: values[0] for name, values in records_of(task, "p = u - v\nq = 0.5*u").items()}
    reduced = Cells(
        ["u", "v"], ["p", "q"], task.points(), task.rollout.state, task.rollout.grid, truth, steps=20, record_every=10
    )
    scorer = ChunkScorer(language_of(reduced), reduced)
    scores = scorer.score(words_of(reduced, "p = u - v\nq = 0.5*u", "p = u - v\nq = 0.4*u"), np.ones(2, np.int32)).objective
    assert scores[0] == 0.0 > scores[1]
    reduced._targets = {name: values[:, 0] for name, values in truth.items()}
    with pytest.raises(evo.UserError, match=rf"'u' has shape \(2, {ROWS}, {COLUMNS}\), the records have \(2, 3, {ROWS}"):
        ChunkScorer(language_of(reduced), reduced)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"grid": (4, 4)}, "grid is .*, must be None or an evo.Grid"),
        ({"grid": evo.Grid((4, 0))}, r"shape is \(4, 0\), must be \(height, width\)"),
        ({"grid": evo.Grid((4, 4), "hexagonal")}, "neighbours is 'hexagonal', must be one of: von_neumann, moore"),
        ({"grid": evo.Grid((4, 4), {"n": (0.5, 1)})}, "must be a dict of name"),
        ({"grid": evo.Grid((4, 4), {"n": (0, 5)})}, r"neighbours\['n'\] is \(0, 5\), farther away"),
        ({"grid": evo.Grid((4, 4), boundary="open")}, "boundary is 'open', must be one of: periodic, reflect, or a number"),
        ({"grid": evo.Grid((4, 4)), "integrator": "rk4"}, "must be map or euler"),
        ({"grid": evo.Grid((4, 4)), "state": {"x": "next", "x_n": "x"}}, "'x_n' is a state or output"),
        ({"grid": evo.Grid((4, 4), {"a b": (0, 1)})}, "'a b' is not a part of a name"),
        ({"grid": evo.Grid((4, 4), {"b_c": (0, 1), "c": (1, 0)}), "state": {"x": "next", "x_b": "x"}}, "would have one name"),
        ({"grid": evo.Grid((4, 4), boundary=1e39)}, "or a number of f32"),
    ],
)
def test_a_wrong_grid_is_named(change, words):
    task = swarm()
    task.inputs, task.outputs = {"x": "f32"}, {"next": "f32"}
    task.rollout = evo.Rollout(**{"steps": 4, "state": {"x": "next"}, **change})
    with pytest.raises(evo.UserError, match=words):
        check_declarations(task)


@pytest.mark.parametrize("kind", ["f32", "u32"])
def test_a_neighbour_has_the_type_of_its_state(kind):
    task = swarm()
    task.inputs, task.outputs = {"x": "f32", "x_n": kind}, {"next": "f32"}
    task.rollout = evo.Rollout(steps=4, state={"x": "next"}, grid=evo.Grid((4, 4)))
    if kind == "f32":
        check_declarations(task)
        return
    with pytest.raises(evo.UserError, match="'x_n' is u32, the state 'x' f32"):
        check_declarations(task)


def test_wrong_points_of_a_grid_are_named():
    task = swarm()
    task._points = {"u": np.zeros((0, ROWS, COLUMNS)), "v": 0.0}
    with pytest.raises(evo.UserError, match="there are no grids"):
        ChunkScorer(language_of(task), task)
    for u in (np.zeros((3, 4)), np.zeros((20, 3, ROWS, COLUMNS))):
        task._points = {"u": u, "v": 0.0}
        with pytest.raises(evo.UserError, match=rf"'u' has shape .*; a state's broadcasts to \(num_grids, {ROWS}, {COLUMNS}\)"):
            ChunkScorer(language_of(task), task)
