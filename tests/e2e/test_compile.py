"""evo.report.export.cubins: cubins of a run's elites and of random programs, without a GPU."""

import json

import pytest

from evo.storage.disk_cache import DiskCache

from .conftest import state_of


@pytest.fixture
def cached_evo(fork_evo, tmp_path):
    """Runs `evo` with a cache of the test's own."""
    return lambda *args: fork_evo(*args, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})


@pytest.fixture
def compile_evo(cached_evo):
    """Runs `evo compile` with a cache of the test's own."""
    return lambda *args: cached_evo("compile", *args)


def test_every_elite_is_in_a_cubin_that_the_index_names(compile_evo, finished_run, tmp_path):
    completed = compile_evo(finished_run, "--arch", "sm_80", "--output", "out")
    assert (completed.returncode, completed.stderr) == (0, "")
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    cells = state_of(finished_run).archive["cell"].tolist()
    assert [entry["program"] for entry in index["programs"]] == [f"cell {cell // 5},{cell % 5}" for cell in cells]
    assert index["arch"] == "sm_80"
    hashes = [tuple(row) for row in state_of(finished_run).archive["hash"].tolist()]
    places = [(entry["file"], entry["kernel"], entry["site"]) for entry in index["programs"]]
    assert len(set(places)) == len(set(hashes))  # programs that mean the same share a site
    for file, kernel, _ in places:
        cubin = (tmp_path / "out" / file).read_bytes()
        assert cubin.startswith(b"\x7fELF") and kernel.encode() in cubin


def test_programs_for_a_gpu_are_compiled_and_shown_without_one(compile_evo, cached_evo, finished_run, tmp_path):
    """Even those of instructions that no CPU evaluator runs."""
    only_gpu = ("--set", "evaluation.backend=cuda", "--set", "program.vocabulary.instructions={f16_to_f32: 1, add_ftz_f32: 1}")
    completed = compile_evo(finished_run.parents[2] / "small.yaml", "--random", "5", "--output", "out", *only_gpu)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert len(json.loads((tmp_path / "out" / "index.json").read_text())["programs"]) == 5
    for verb in (["compile", finished_run, "--output", "elites"], ["show", finished_run], ["show", finished_run, "--failed"]):
        done = cached_evo(*verb, *only_gpu[:2])
        assert (done.returncode, done.stderr) == (0, "")


def test_a_second_call_takes_the_cubins_from_the_cache_and_replaces_those_that_are_there(compile_evo, finished_run, tmp_path):
    assert compile_evo(finished_run, "--output", "one").returncode == 0
    folder = tmp_path / "cache" / "evo"
    entries = sorted(folder.rglob("*.compiled"))
    assert entries
    for path in entries:
        DiskCache(folder).put(path.stem, b"kept")
    (tmp_path / "two").mkdir()
    for name in ("module_0099.cubin", "mine.cubin"):
        (tmp_path / "two" / name).write_bytes(b"old")
    assert compile_evo(finished_run, "--output", "two").returncode == 0
    cubins = {path.name: path.read_bytes() for path in (tmp_path / "two").glob("*.cubin")}
    assert cubins.pop("mine.cubin") == b"old"
    assert cubins == {path.name: b"kept" for path in (tmp_path / "one").glob("*.cubin")}


def test_a_cache_that_cannot_be_used_matters_only_if_it_is_wanted(fork_evo, finished_run, tmp_path):
    (tmp_path / "file").write_text("")

    def compile_with(*more):
        return fork_evo("compile", finished_run, "--output", "out", *more, env={"XDG_CACHE_HOME": str(tmp_path / "file")})

    refused = compile_with()
    message = f"evo: {tmp_path}/file/evo: cannot be used as cache: Not a directory\n"
    assert (refused.returncode, refused.stderr) == (2, message)
    compiled = compile_with("--set", "evaluation.cache_megabytes=0")
    assert (compiled.returncode, compiled.stderr) == (0, "")
    assert (tmp_path / "out" / "module_0000.cubin").is_file()


def test_cubins_are_written_all_or_none(compile_evo, finished_run, tmp_path):
    (tmp_path / "out" / "index.json").mkdir(parents=True)
    (tmp_path / "out" / "module_0000.cubin").write_bytes(b"old")
    refused = compile_evo(finished_run, "--output", "out")
    assert (refused.returncode, refused.stderr) == (2, "evo: out/index.json: exists and is not a file\n")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"index.json", "module_0000.cubin"}
    assert (tmp_path / "out" / "module_0000.cubin").read_bytes() == b"old"


def test_ptx_for_a_driver_is_no_cubin(compile_evo, finished_run, tmp_path):
    refused = compile_evo(finished_run, "--arch", "compute_90", "--output", "out")
    message = "evo: --arch compute_90: the driver assembles this, there is no cubin; name a GPU, such as sm_90\n"
    assert (refused.returncode, refused.stderr, list(tmp_path.glob("out"))) == (2, message, [])
