"""evo.config: what is refused is refused in one line that names key and remedy; what is accepted comes back unchanged."""

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from evo.config import dump_config, first_difference, load_config, with_paths_in
from evo.errors import UserError
from evo.native.vary import OPERATORS, RATES
from evo.search.archives import ARCHIVES
from evo.storage.yaml_text import parse_yaml

MINIMAL = """\
task: a_task
program:
  vocabulary:
    instructions: [add_ftz_f32]
search:
  archive: {type: GridArchive, dims: [4, 4]}
stop:
  generations: 3
"""

# A new operator needs no edit here.
RATES_OF = {operator: [r.name for r in RATES if r.operator == operator] for operator in OPERATORS}
RATES_OF = {operator: rates for operator, rates in RATES_OF.items() if rates}

SECTIONS = {
    "": "task, task_options, task_files, seed, program, search, evaluation, stop, output",
    "program.": "max_length, instruction_set, limits, vocabulary",
    "program.limits.": "stack_size, max_nodes, max_frame_depth, store_size, execution_limit",
    "program.vocabulary.": "instructions, meta, phrases, groups, constants",
    "program.vocabulary.constants.": "f32_sigma, u32_max, meta_max",
    "search.": "archive, batch_size, parents, combination, immigrants, initial, starts, variation, emitters, "
    "memory_size, tuning, learning",
    "search.starts.": "count, generations",
    "search.tuning.": "share, iterations, linear_scale, points, finished, trials",
    "search.learning.": "prescreen, exploration, window, points, evaluation_cost",
    "search.archive.": ", ".join(["type", *(option for kind in ARCHIVES.values() for option in kind.options)]),
    "search.initial.": "num_programs, min_length, max_length, programs, digest",
    "search.variation.": ", ".join(["operators", *RATES_OF]),
    **{f"search.variation.{operator}.": ", ".join(rates) for operator, rates in RATES_OF.items()},
    "evaluation.": (
        "backend, threads, simd, executor, score_seconds, device, lane, registers, compile_workers, local_workers, "
        "farm, packing, opt_level, compile_seconds, launch_seconds, cache_megabytes, cluster"
    ),
    "evaluation.packing.": "sites_per_kernel, kernels_per_module",
    "stop.": "generations, evaluations, seconds, objective",
    "output.": "runs, checkpoint_seconds, lineage_megabytes, task_megabytes, plots",
}


@pytest.fixture
def minimal(tmp_path) -> Path:
    path = tmp_path / "experiment.yaml"
    path.write_text(MINIMAL)
    return path


def refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        load_config(path, overrides)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """Another working folder than the config's."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "elsewhere"


def test_paths_on_the_command_line_are_found_from_the_working_folder(minimal, elsewhere):
    assert load_config(minimal, ("task=other",)).task == str(elsewhere / "other")
    override = "program.instruction_set=sets/a.json"
    assert load_config(minimal, (override,)).program.instruction_set == str(elsewhere / "sets" / "a.json")
    minimal.write_text(MINIMAL.replace("program:", "program:\n  instruction_set: sets/a.json"))
    assert load_config(minimal).program.instruction_set == str(minimal.parent / "sets" / "a.json")
    assert load_config(minimal, ("program.instruction_set=default",)).program.instruction_set == "default"


def test_the_keys_of_a_farm_are_found_as_the_task_is(minimal, tmp_path, elsewhere):
    minimal.write_text(MINIMAL + "\nevaluation: {farm: {listen: 'tcp://127.0.0.1:1', keys: keys/run}}\n")
    assert load_config(minimal).evaluation.farm.keys == str(tmp_path / "keys" / "run")
    given = str(elsewhere / "mine")
    for override in ("evaluation.farm.keys=mine", "evaluation.farm={listen: 'tcp://127.0.0.1:2', keys: mine}"):
        assert load_config(minimal, (override,)).evaluation.farm.keys == given
    assert load_config(minimal, ("evaluation.farm=null",)).evaluation.farm is None


def test_a_farm_can_be_added_to_a_config_as_a_run_folder_has_it(minimal, tmp_path):
    whole = tmp_path / "config.yaml"
    whole.write_text(dump_config(load_config(minimal)))
    added = load_config(whole, ("evaluation.farm.listen=tcp://127.0.0.1:1", "evaluation.local_workers=0"))
    assert added.evaluation.farm.model_dump() == {"listen": "tcp://127.0.0.1:1", "keys": None, "server_file": None}
    assert added.identity() == load_config(whole).identity()


@pytest.mark.usefixtures("elsewhere")
def test_tls_files_are_found_beside_the_config_file(minimal, tmp_path):
    cluster = "evaluation:\n  cluster: {scheduler: 'tls://h:1', tls: {ca: ca.pem, cert: keys/c.pem, key: /k.pem}}\n"
    minimal.write_text(MINIMAL + cluster)
    tls = load_config(minimal).evaluation.cluster.tls
    assert (tls.ca, tls.cert, tls.key) == (str(tmp_path / "ca.pem"), str(tmp_path / "keys" / "c.pem"), "/k.pem")


@pytest.mark.parametrize("section", SECTIONS)
def test_an_unknown_key_is_refused_with_the_valid_ones_at_every_depth(minimal, section):
    assert refusal(minimal, f"{section}bogus=1") == f"{minimal}: unknown key '{section}bogus', one of: {SECTIONS[section]}"


def test_paths_of_what_lies_in_a_run_folder_are_relative_to_it(minimal, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    keys = "evaluation.farm={listen: 'tcp://127.0.0.1:5711', keys: /secret}"
    given = ("task=runs/a/task", "program.instruction_set=runs/a/own.json", "task_files={t.csv: runs/a/t.csv, u: /u}", keys)
    config = load_config(minimal, tuple(text.replace("runs/", f"{tmp_path}/runs/") for text in given))
    found = with_paths_in(config, tmp_path / "link" / "runs" / "a")
    assert (found.task, found.program.instruction_set) == ("task", "own.json")
    assert found.task_files == {"t.csv": "t.csv", "u": "/u"} and found.evaluation.farm.keys == "/secret"
    (tmp_path / "runs" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "a" / "config.yaml").write_text(dump_config(found))
    assert load_config(tmp_path / "runs" / "a" / "config.yaml") == config


@pytest.mark.parametrize("written", ["1e6", "1E6", "1e+6", "1.0e6", "1000000.0", "'1e6'", "1000000"])
def test_a_whole_number_is_an_integer_however_it_is_written(minimal, tmp_path, written):
    config = load_config(minimal, (f"stop.evaluations={written}", f"search.archive.dims=[{written}, 2]"))
    assert (config.stop.evaluations, config.search.archive.dims) == (1000000, [1000000, 2])
    assert type(config.stop.evaluations) is int
    path = tmp_path / "in_the_file.yaml"
    path.write_text(f"{MINIMAL}seed: {written}\n")
    assert load_config(path).seed == 1000000 and "seed: 1000000\n" in dump_config(load_config(path))


@pytest.mark.parametrize("written", ["1.5", "15e-1", "1e400", ".nan", "'1e-1'", "'six'", "'100'", "12345678901234567e3", "true"])
def test_what_is_no_integer_is_not_made_one(minimal, written):
    assert "key 'seed': must be " in refusal(minimal, f"seed={written}")


# Overrides, each refused by its key.
OUT_OF_RANGE = """
seed=-1 seed=18446744073709551616 program.max_length=0 program.limits.stack_size=0 program.limits.store_size=-1
program.vocabulary.instructions=[] program.vocabulary.instructions=add_ftz_f32 program.vocabulary.constants.f32_sigma=0
program.vocabulary.instructions.add_ftz_f32=.nan program.vocabulary.groups.meta=-0.5
program.vocabulary.constants.meta_max=65537
search.batch_size=true search.batch_size=1000000000000 search.parents=[] search.memory_size=0 search.initial.num_programs=0
search.archive.type=NoArchive search.archive.dims=[4,0] search.tuning.share=1.5 search.tuning.iterations=0
search.learning.prescreen=65 search.learning.exploration=1.5
search.learning.window=15 search.learning.points=0 search.learning.evaluation_cost=0
search.variation.umad.addition_rate=1.5 search.variation.alternation.deviation=.nan
evaluation.backend=quantum evaluation.threads=0 stop.seconds=0 stop.objective=.nan output.checkpoint_seconds=-1
output.plots=[heatmap,portrait]
"""


@pytest.mark.parametrize("override", OUT_OF_RANGE.split())
def test_a_value_out_of_range_or_of_another_type_is_refused_by_key(minimal, override):
    key = override.partition("=")[0].removesuffix(".add_ftz_f32")
    message = refusal(minimal, "program.vocabulary.instructions={add_ftz_f32: 1}", override)
    assert message.startswith(f"{minimal}: key '{key}")
    assert "must be" in message or "should" in message


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ("search.variation.operators={bogus: 1.0}", "operators.bogus': must be 'umad', 'alternation', 'crossover', "),
        ("search.archive={type: GridArchive}", "key 'search.archive': GridArchive needs 'dims'"),
        ("search.archive={type: GridArchive, dims: [3], centroids: 9}", "key 'search.archive': GridArchive has no 'centroids'"),
        ("search.initial={min_length: 9, max_length: 8}", "key 'search.initial': min_length 9 is greater than max_length 8"),
        ("stop={}", "key 'stop': needs at least one of: generations, evaluations, seconds, objective"),
        (
            "evaluation.cluster={scheduler: host}",
            "'evaluation.cluster': scheduler host: must be an address such as tcp://10.0.0.1:8786",
        ),
        (
            "evaluation.cluster={scheduler: 'tcp://127.0.0.1:1', tls: {ca: a, cert: b, key: c}}",
            "scheduler tcp://127.0.0.1:1: 'tls' needs an address that begins with tls://",
        ),
        (
            "search.batch_size=100000;search.learning={prescreen: 64, evaluation_cost: 300}",
            "batch_size times learning.prescreen must be at most 4194304",
        ),
        ("search.learning.prescreen=4", "key 'search.learning': a prescreen needs 'evaluation_cost'"),
        ("search.emitters={bold: {wait: 1}}", "unknown key 'search.emitters.bold.wait', one of: kind, weight, parents"),
        ("evaluation.device=-1", "key 'evaluation.device': must be greater than or equal to 0, got -1"),
        ("search.emitters={bold: {weight: -1}}", "key 'search.emitters.bold.weight': must be greater than or equal to 0, got -1"),
        ("search.emitters={bold: {weight: 0}}", "key 'search': at least one of the emitters needs a weight above 0"),
        ("search.emitters={initial: {}}", "no emitter can be called 'initial'"),
        ("search.emitters={bold: {kind: random, parents: [0.5]}}", "an emitter of kind 'random' has no 'parents'"),
        *(
            (f"search.{key}={value};search.emitters={{bold: {{}}}}", f"'emitters' stand in place of '{key}'; give one of them")
            for key, value in (
                ("parents", "[0.5]"),
                ("combination", "0.1"),
                ("immigrants", "0.1"),
                ("variation", "{operators: {umad: 1}}"),
            )
        ),
    ],
)
def test_keys_that_do_not_fit_together_are_refused(minimal, overrides, message):
    assert message in refusal(minimal, *overrides.split(";"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("task: a\nseed: [1\nstop: 2\n", 3),
        ("task: a\n  seed: 1\n", 2),
        ("task: a\nseed: 1\nseed: 2\n", 3),
        ("task: a\nseed: !!python/object:os.system 1\n", 2),
        ("task: a\n? [1, 2]\n: 3\n", 2),
        ("task: a\nseed: 2024-13-45\n", 2),
    ],
)
def test_what_is_no_yaml_is_refused_with_its_line(minimal, text, line):
    minimal.write_text(text)
    assert refusal(minimal).startswith(f"{minimal}:{line}: not YAML: ")


@pytest.mark.parametrize("text", ["", "just words\n", "- task: a\n", "3\n"])
def test_a_config_that_is_no_mapping_is_refused_with_the_keys(minimal, text):
    minimal.write_text(text)
    assert refusal(minimal) == f"{minimal}: must be a mapping with the keys {SECTIONS['']}"


NESTED = [
    "task_options: {a: " + "[" * 63 + "]" * 63 + "}",
    "task_options: {a: " + "[" * 300 + "]" * 300 + "}",
    "task_options: {a: " + "{b: " * 5000 + "}" * 5000 + "}",
    "task_options: &a {b: *a}",
]


@pytest.mark.parametrize("text", NESTED, ids=["65", "300", "5000", "endless"])
def test_what_nests_too_deeply_is_refused(minimal, text):
    minimal.write_text(MINIMAL + text + "\n")
    assert refusal(minimal) == f"{minimal}: nested too deeply: more than 64 levels"


def repeated(first: str, line: str) -> str:
    """Each name stands for ten times the one before."""
    return first + "".join(line.format(name, name, ",".join([f"*{last}"] * 10)) for last, name in pairwise("abcdefgh"))


BOMBS = {
    "aliases": (repeated("a: &a [x, x]\n", "{}: &{} [{}]\n"), "repeat"),
    "merges": (repeated("a: &a {x: 1}\n", "{}: &{} {{<<: [{}]}}\n"), "repeat"),
    "digits": ("a: 1" + "0" * 5000, "5,001 digits, at most 1,000 fit"),
    "base 60": ("a: 1" + ":59" * 100_000, "300,001 digits, at most 1,000 fit"),
    "text": ("a: " + "x" * 2_000_000, "2,000,003 characters are more than 1,048,576"),
}


@pytest.mark.parametrize(("text", "reason"), BOMBS.values(), ids=BOMBS)
def test_small_texts_that_stand_for_much_are_refused(text, reason):
    with pytest.raises(UserError, match=reason):
        parse_yaml(text, "f")


def test_aliases_and_merged_keys_go_on_working():
    assert parse_yaml("a: &x {b: [1, 2]}\nc: {<<: *x, d: 2}\ne: *x", "f") == {
        "a": {"b": [1, 2]},
        "c": {"b": [1, 2], "d": 2},
        "e": {"b": [1, 2]},
    }


@pytest.mark.parametrize(
    "override",
    [
        *("evaluation.threads=513", "evaluation.compile_workers=513", "search.starts.count=1e9"),
        *("search.tuning.finished=1e9", "search.tuning.points=1e12", f"seed={2**64}"),
        *("search.archive.dims=[1" + "0" * 400 + "]", "output.task_megabytes=1e12"),
    ],
)
def test_what_starts_processes_or_takes_memory_by_count_has_a_bound(minimal, override):
    message = refusal(minimal, override)
    assert override.partition("=")[0] in message
    assert "less than" in message
    assert len(message) < 500


@pytest.mark.parametrize("override", ["task_options.a=" + "[" * 5000 + "]" * 5000, "task_options" + ".a" * 64 + "=1"])
def test_an_override_that_nests_too_deeply_is_refused(minimal, override):
    message = refusal(minimal, override)
    assert message.startswith(f"--set {override[:50]}")
    assert message.endswith(f"{override[-50:]}: nested too deeply: more than 64 levels")
    assert len(message) <= 1000


def test_control_characters_and_broken_utf8_are_refused(minimal):
    minimal.write_bytes(b"task: \x00\n")
    assert refusal(minimal).startswith(f"{minimal}: not YAML: ")
    minimal.write_bytes(b"task: \xff\xfe\n")
    assert refusal(minimal).startswith(f"{minimal}: cannot read the config: ")


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert refusal(tmp_path / "none.yaml") == f"{tmp_path}/none.yaml: cannot read the config: No such file or directory"
    assert refusal(tmp_path).startswith(f"{tmp_path}: cannot read the config: ")


def test_overrides_are_yaml_values_applied_in_order(minimal):
    config = load_config(
        minimal,
        (
            "seed=5",
            "seed=0x10",
            "search.archive.dims=[7, 9]",
            "stop.evaluations=1000",
            "stop.generations=null",
            "task_options.a.b=x=y",
        ),
    )
    assert config.seed == 16
    assert config.search.archive.dims == [7, 9]
    assert (config.stop.generations, config.stop.evaluations) == (None, 1000)
    assert config.task_options == {"a": {"b": "x=y"}}


@pytest.mark.parametrize("override", ["seed", "=1", "a..b=1", ".seed=1", "seed.=1"])
def test_an_override_that_is_no_assignment_is_refused_with_an_example(minimal, override):
    assert refusal(minimal, override) == f"--set {override}: write it as key=value, for instance search.batch_size=256"


def test_an_override_below_a_value_or_with_broken_yaml_is_refused(minimal):
    assert refusal(minimal, "stop.generations.low=1") == "--set stop.generations.low=1: 'generations' is not a section"
    assert refusal(minimal, "seed=[1").startswith("--set seed=[1")


def test_a_dumped_config_loads_to_the_same(minimal, tmp_path):
    config = load_config(
        minimal, ("seed=18446744073709551615", "stop.objective=-0.1", "task_options.name=ü: 1", "output.plots=[best]")
    )
    again = tmp_path / "again.yaml"
    again.write_text(dump_config(config), encoding="utf-8")
    assert load_config(again) == config
    assert dump_config(load_config(again)) == dump_config(config)


NO_RESULT = """
task=other program.instruction_set=other.json evaluation.threads=1 evaluation.simd=avx2 stop.generations=99 stop.evaluations=7
output.runs=elsewhere output.checkpoint_seconds=1 output.plots=[]
"""


@pytest.mark.parametrize("override", NO_RESULT.split())
def test_what_decides_no_result_is_not_part_of_the_identity(minimal, override):
    assert load_config(minimal, (override,)).identity() == load_config(minimal).identity()


@pytest.mark.parametrize(
    ("override", "difference"),
    [
        ("seed=2", "seed is 2 now, was the default"),
        ("program.limits.stack_size=4", "program.limits.stack_size is 4 now, was the default"),
        (
            "program.vocabulary.instructions.neg_ftz_f32=1",
            "program.vocabulary.instructions.neg_ftz_f32 is 1.0 now, was the default",
        ),
        ("search.archive.dims=[4, 5]", "search.archive.dims is [4, 5] now, was [4, 4]"),
        ("search.variation.umad.addition_rate=0.1", "search.variation.umad.addition_rate is 0.1 now, was the default"),
    ],
)
def test_what_decides_a_result_is_part_of_the_identity_and_the_difference_is_named(minimal, override, difference):
    data = yaml.safe_load(MINIMAL)
    data["program"]["vocabulary"]["instructions"] = {"add_ftz_f32": 1.0}
    minimal.write_text(yaml.safe_dump(data))
    old, new = load_config(minimal).identity(), load_config(minimal, (override,)).identity()
    assert first_difference(old, new).endswith(difference)


def test_what_is_given_as_its_default_is_not_part_of_the_identity(minimal):
    given = ("seed=1", "search.parents=[1]", "search.learning={points: 9}", "search.emitters={}", "search.tuning={}")
    identity = load_config(minimal, given).identity()
    assert identity == load_config(minimal).identity()
    assert identity.keys() == {"program", "search"} and identity["search"].keys() == {"archive"}


@pytest.mark.parametrize(
    ("given", "then", "difference"),
    [
        ("search.tuning.share=0.5", "search.tuning={}", "search.tuning.share is the default now, was 0.5"),
        ("search.parents=[1.0]", "search.parents=[1.0,0.1]", "search.parents is [1.0, 0.1] now, was the default"),
        ("seed=1", "search.starts.count=2", "search.starts.count is 2 now, was the default"),
    ],
)
def test_a_difference_from_a_default_is_named(minimal, given, then, difference):
    one, other = load_config(minimal, (given,)), load_config(minimal, (given, then))
    assert first_difference(one.identity(), other.identity()).endswith(difference)
