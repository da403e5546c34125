"""docs/examples: the stubs that they print, put into their CUDA, assemble and compute what the examples say.

The kernels run in the emulator (emulator/); expected values are NumPy's. The emulator has no mma: it is only assembled.
"""

import re
import struct
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from emulated_gpu.ptx_machine import launch
from emulated_gpu.ptx_memory import Memory
from emulated_gpu.ptx_text import Module

from evo.ptx_inject import PTXInject
from evo.ptx_inject.types import load_types

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
# The CUDA of an example is that of its name, but for these.
CUDA = dict.fromkeys(["routines", "predicates", "store_and_load", "cuda_to_cubin"], "simple")
STUBS = [
    *("simple", "routines", "predicates", "store_and_load", "cuda_to_cubin", "special_registers"),
    *("mma", "half_types", "bytes", "philox", "custom_types", "inject"),
]
META = "meta_instructions"
F32 = np.float32


def expected(name: str) -> str:
    return (EXAMPLES / "expected" / f"{name}.txt").read_text()


@pytest.fixture(scope="module")
def compile_ptx():
    pytest.importorskip("evo.native.nvptxcompiler", reason="built without the wheel nvidia-nvptxcompiler")
    from evo.native import nvptxcompiler

    return nvptxcompiler.compile


@pytest.fixture(scope="module")
def prepare(annotated_ptx):
    """Gives the sites in an example's CUDA."""

    @cache
    def read(name: str) -> PTXInject:
        types = load_types(EXAMPLES / "custom_types" / "data_types.json") if name == "custom_types" else None
        return PTXInject(annotated_ptx(CUDA.get(name, name)), types)

    return read


def renamed(stub: str, sites) -> str:
    """A stub over variables' names as one over the registers that they are in."""
    return re.sub(r"%(\w+)", lambda found: f"%{sites[found[1]].register}" if found[1] in sites else found[0], stub)


@pytest.fixture(scope="module")
def rendered(prepare):
    """Gives an example's CUDA with what the example prints in its site `func`."""

    def render(name: str, text: str | None = None) -> str:
        inject = prepare(name)
        lines = (expected(name) if text is None else text).splitlines()
        # Lines before the stub tell of the sites.
        start = next(i for i, line in enumerate(lines) if line == "{" or line.startswith("\t"))
        return inject.render({"func": renamed("\n".join(lines[start:]), inject["func"])})

    return render


@pytest.fixture(scope="module")
def two_sites(prepare):
    """The CUDA of two_sites with both of its stubs."""
    _, start, step = re.split(r"^\w+: sites \d\n", expected("two_sites"), flags=re.MULTILINE)
    return prepare("two_sites").render({"start": start, "step": step})


@pytest.fixture(scope="module")
def comment_form(prepare):
    """The CUDA of comment_form; its site `func` has the variables of inject's and gets its stub."""
    inject = prepare("comment_form")
    func = "\n".join(line for line in expected("inject").splitlines() if line.startswith("\t"))
    return inject.render({"func": func, "other": f"mov.f32 %{inject['other']['w'].register}, 0f40000000;"})


@pytest.fixture(scope="module")
def inline_asm(example):
    """The PTX of the CUDA that inline_asm prints."""
    return example("cuda/nvrtc.py").compile_cuda(expected("inline_asm")).decode()


def run(ptx: str, *arrays: np.ndarray, grid=(1,), block=(1,), kernel: str = "kernel") -> None:
    """Runs a kernel whose parameters are pointers to these arrays."""
    parameters = struct.pack(f"={len(arrays)}Q", *(array.ctypes.data for array in arrays))
    launch(Module(ptx), kernel, grid, block, parameters, Memory.of_arrays(*arrays))


def meta_stubs() -> dict[str, str]:
    """The stub of each meta instruction, by its name and depth."""
    return dict(re.findall(r"^(\w[\w ]*)\n(\{.*?^\})", expected(META), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("target", ["sm_80", "sm_120"])
@pytest.mark.parametrize("name", [*STUBS, META, "two_sites", "comment_form", "inline_asm"])
def test_cuda_with_the_stub_assembles(request, rendered, compile_ptx, name, target):
    if name in STUBS:
        texts = [rendered(name)]
    else:
        texts = [rendered(META, stub) for stub in meta_stubs().values()] if name == META else [request.getfixturevalue(name)]
    for ptx in texts:
        assert compile_ptx(ptx, (f"--gpu-name={target}",))[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("simple", lambda x, y: x * y + F32(1)),
        ("routines", lambda x, y: x * x + y * y),
        ("predicates", np.minimum),
        ("store_and_load", lambda x, y: (x + y) * (x + y) - x),
    ],
)
def test_function_of_two_variables_is_computed_exactly(rendered, name, function):
    x, y = np.random.default_rng(1).normal(size=(2, 256)).astype(np.float32)
    found = np.zeros(256, np.float32)
    run(rendered(name), x, y, found, grid=(4,), block=(64,))
    np.testing.assert_array_equal(found, function(x, y))


# What the stack a b c d, d on top, becomes: the top three, top first. None: nothing is left, and the output stays as it was.
TOP_THREE = {
    "dup": "ddc",
    "yank_dup 2": "bdc",
    "swap": "cdb",
    "swap_with 2": "bcd",
    "replace 2": "cda",
    "drop 1": "cba",
    "clear": "a",
    "rotate": "cbd",
    "reverse": "abc",
}


@pytest.mark.parametrize("name", TOP_THREE)
def test_meta_instruction_moves_values(rendered, name):
    values = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
    found = np.full((2, 3), np.nan, np.float32)
    run(rendered(META, meta_stubs()[name]), values, found, block=(2,))
    wanted = np.zeros((2, 3), np.float32)
    for i, letter in enumerate(TOP_THREE[name]):
        wanted[:, i] = values[:, "abcd".index(letter)]
    np.testing.assert_array_equal(found, wanted)


def test_threads_know_their_place(rendered):
    block, num_blocks = (4, 3, 2), 2
    indices, sums = np.zeros((2, 2, 3, num_blocks * 4), np.uint32)
    run(rendered("special_registers"), indices, sums, grid=(num_blocks,), block=block)
    z, y, x = np.indices(indices.shape)
    np.testing.assert_array_equal(indices, x)
    np.testing.assert_array_equal(sums, x % 4 + y + z)


def test_both_halves_of_a_pair_are_added(rendered):
    pairs = np.random.default_rng(1).normal(size=(32, 2)).astype(np.float16)
    found = np.zeros(32, np.float32)
    run(rendered("half_types"), pairs, found, block=(32,))
    np.testing.assert_array_equal(found, pairs[:, 0].astype(np.float32) + pairs[:, 1].astype(np.float32))


def test_four_bytes_are_added(rendered):
    packed = np.array([0, 0x01020304, 0xFF0000FF, 0xFFFFFFFF, 0x80000000], "<u4")
    found = np.zeros(5, np.uint32)
    run(rendered("bytes"), packed, found, block=(5,))
    assert found.tolist() == [0, 10, 510, 1020, 128]


def philox(counter: tuple[int, int], key: int) -> tuple[int, int]:
    """Philox 2x32-10 of Salmon et al. (2011)."""
    left, right = counter
    for _ in range(10):
        product = 0xD256D193 * left
        left, right, key = product >> 32 ^ key ^ right, product & 0xFFFFFFFF, key + 0x9E3779B9 & 0xFFFFFFFF
    return left, right


def test_philox_reference_gives_the_published_numbers():
    """Known answers of the authors' library Random123."""
    assert philox((0, 0), 0) == (0xFF1DAE59, 0x6CD10DF2)
    assert philox((0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFF) == (0x2C3F628B, 0xAB4FD7AD)
    assert philox((0x243F6A88, 0x85A308D3), 0x13198A2E) == (0xDD7CE038, 0xF62A4C12)


def test_random_numbers_are_those_of_philox_and_the_state_counts_on(rendered):
    first = np.array([0, 1, 2, 12345, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)
    states, found = first.copy(), np.zeros(6, np.float32)
    run(rendered("philox"), states, found, block=(6,))
    wanted = [F32(philox((int(counter), 0), 12345)[0]) * F32(2.0**-32) for counter in first]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(states, first + np.uint32(1))


def test_a_variable_is_read_changed_and_written(rendered):
    found = np.zeros(2, np.float32)
    run(rendered("inject"), found)
    assert found.tolist() == [5 + 3, 5 + (5 + 3)]


def test_an_unrolled_site_of_a_comment_runs_each_time(prepare, comment_form):
    assert {name: sites.num_sites for name, sites in prepare("comment_form").items()} == {"func": 2, "other": 1}
    found = np.zeros(3, np.float32)
    run(comment_form, found, kernel="_Z6kernelPf")
    assert found.tolist() == [3 + 5 + 5, 5 + (3 + 5 + 5), 2]


def test_two_names_have_a_stub_each(two_sites):
    x = np.linspace(-1, 1, 32, dtype=np.float32)
    found = np.zeros(32, np.float32)
    run(two_sites, x, found, block=(32,))
    np.testing.assert_allclose(found, np.polyval([1, 1, 1, 1, 1, 1], x.astype(np.float64)), rtol=1e-6, atol=1e-6)
