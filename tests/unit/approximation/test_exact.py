"""Exact functions: the zoo beside ml_dtypes and whole numbers, proofs, and certificates that must not be forged.

Longer than most modules: forgeries, proofs and searches share a certificate and a module of functions.
"""

import importlib
import json
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from evo.approximation import zoo
from evo.approximation.bits import ExactFunction, Precondition
from evo.approximation.certificate import check_certificate, read_certificate
from evo.approximation.exact import ExactCertificate, certified_exact, exact_language, wrong_bits
from evo.approximation.exact_header import exact_header
from evo.approximation.exact_sweep import EVERY, TESTED, ExactSweep
from evo.approximation.exact_task import ExactTask, sample
from evo.approximation.synthesis import synthesized
from evo.config import load_config
from evo.errors import UserError
from evo.evaluate.slots import slots_of
from evo.instructions import shipped_instruction_set
from evo.language.dag import dag_of
from evo.language.program import parse_program
from evo.language.source import cuda_source, python_source
from evo.native.ptx_vm import VirtualMachine
from evo.run.loaded_task import load_problem

REPOSITORY = Path(__file__).parents[3]
BY_HAND = "0x7b800000:b32 20:b32 %q shl mulf"  # ue4m3 to f32: exponent and digits to those of f32, times 2^120


def words_of(function, text):
    return parse_program(exact_language(function), text, "test")


@pytest.fixture
def certificate(tmp_path):
    function = ExactFunction("ue4m3_f32")
    found = certified_exact(exact_language(function), words_of(function, BY_HAND), function, target="sm_90")
    path = tmp_path / "a.json"
    path.write_text(found.text())
    return path, found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "kind", "form"),
    [(n, n.split("x")[0], n.split("_")[1].split("x")[0]) for n in zoo.NAMES if n[:4] in ("e4m3", "e5m2")],
)
def test_small_floats_of_the_zoo_are_those_of_ml_dtypes(name, kind, form):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    function = ExactFunction(name)
    [q] = sample(function, 1 << 12, 3)
    small = q.view(np.uint8).view(ml_dtypes.float8_e4m3fn if kind == "e4m3" else ml_dtypes.float8_e5m2)
    halves = small.astype(np.float32).astype(np.float16 if form == "f16" else ml_dtypes.bfloat16).reshape(-1, 4)
    pairs = [(0, 1), (2, 3)] if kind == "e5m2" else [(0, 2), (1, 3)]
    expected = [np.ascontiguousarray(halves[:, pair]).view(np.uint32)[:, 0] for pair in pairs]
    for found, other, numbers in zip(function(q), expected, pairs, strict=True):
        is_number = ~np.isnan(halves[:, numbers].astype(np.float32)).any(axis=1)
        np.testing.assert_array_equal(found[is_number], other[is_number])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rounding_functions_of_the_zoo_are_those_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert {*sample(ExactFunction("ternary5"), 1 << 10, 4)[0].tolist()} == {*range(256)}  # all there are
    [x] = sample(ExactFunction("f32_bf16"), 1 << 16, 4)
    np.testing.assert_array_equal(
        ExactFunction("f32_bf16")(x)[0] & 0xFFFF, x.view(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    )
    [x] = sample(ExactFunction("bf16x2_e4m3x2"), 1 << 16, 4)
    numbers = np.clip(x.view(np.uint16).view(ml_dtypes.bfloat16).astype(np.float32), -448, 448)
    small = numbers.astype(ml_dtypes.float8_e4m3fn).view(np.uint16)
    np.testing.assert_array_equal(ExactFunction("bf16x2_e4m3x2")(x)[0] & 0xFFFF, small)


def test_integers_of_the_zoo_are_whole_numbers():
    x, y = 0xBEEF, 0x1234
    spread = sum((x >> k & 1) << 2 * k | (y >> k & 1) << (2 * k + 1) for k in range(16))
    assert ExactFunction("morton16")(np.array([x], np.uint32), np.array([y], np.uint32))[0][0] == spread
    for q in range(256):
        rest, digits = q, []
        for _ in range(5):
            digits.append(rest * 3 // 256)
            rest = rest * 3 % 256
        low, high = ExactFunction("ternary5")(np.array([q], np.uint32))
        assert [int(low[0]) >> 8 * k & 3 for k in range(4)] + [int(high[0])] == digits


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("q < 2**24", 24),
        ("q < 243 and q != 5", 8),
        ("", 32),
        ("q <= 255", 8),
        ("q < 2**8 or q > 5", 32),
        ("finite(q)", 32),
        ("q < q", 32),
    ],
)
def test_widths_are_bounds_of_preconditions(text, expected):
    assert ExactFunction("average4", text).widths == (expected,)


@pytest.mark.parametrize(
    "text",
    [
        "q",
        "__import__('os')",
        "q.x < 1",
        "q <",
        "x < 5",
        "q < -1",
        "no_nan(3)",
        "lambda: q",
        "q[0] < 1",
        "q*q >= 0",
        "q << 32 > 0",
        "q >> 64 == 0",
        "q >> q == 0",
        "1 << 63 > q",
        "q % q == 0",
        "5 % (q & 7) == 0",
        "q >> (q - 5) == 0",
        "q is 3",
        "q in q",
    ],
)
def test_wrong_preconditions_are_refused(text):
    with pytest.raises(UserError, match=r"^task_options\.precondition: "):
        Precondition(text, ("q",))(np.zeros(3, np.uint32))


def test_a_name_that_a_precondition_does_not_know_is_shown_as_it_was_written():
    with pytest.raises(UserError, match=r"must be a condition on q, such as 'q < 2\*\*24': weight has no value; functions: "):
        Precondition("weight < 5", ("q",))


def test_a_wrong_program_is_named_by_its_first_input():
    function = ExactFunction("ue4m3_f32")
    wrong = words_of(function, "0x7b800000:b32 0x07f00000:b32 20:b32 %q shl min_u mulf")  # wrong at none
    assert certified_exact(exact_language(function), wrong, function, target="sm_90").num_valid == 127
    wrong = words_of(function, "0x7b800000:b32 0x07c00000:b32 20:b32 %q shl min_u mulf")
    with pytest.raises(UserError, match="q = 0x0000007d; no certificate"):
        certified_exact(exact_language(function), wrong, function, target="sm_90")


def test_an_interrupted_proof_goes_on_and_one_of_another_program_does_not(tmp_path):
    function = ExactFunction("div10", "x < 2**18")
    words, state = words_of(function, "3:b32 0xcccccccd:b32 %x mulhi shr"), tmp_path / "state"
    sweep = ExactSweep(exact_language(function), words, function)
    whole = sweep.run()
    kept = {"key": sweep.key, "parts": 3, "inputs": 3 << 16, "valid": 3 << 16}
    for change in ({}, {"parts": -1}, {"parts": 5}, {"parts": 2}, {"inputs": 1 << 18}, {"valid": 1 << 20}):
        state.write_text(json.dumps({**kept, **change}))
        assert sweep.run(state) == whole
    state.write_text(json.dumps({**kept, "parts": 4, "inputs": 1 << 18, "valid": 1 << 18}))
    wrong = ExactSweep(exact_language(function), words_of(function, "2:b32 0xcccccccd:b32 %x mulhi shr"), function)
    assert wrong.run(state).wrong == (5,)


MODULE = """
import numpy as np
import of_more_words
ROOM = np.zeros(1 << 16, np.uint32)
def tenth(x):
    return x // 10 + (x == CONSTANT)
def writes(x):
    x[0] = 1
    return x
def fails(x):
    raise RuntimeError("no")
def two(x, y):
    return x + (y & 0xFFFF)
def asm(unsigned, l, out0, linux):
    return unsigned ^ l, out0 ^ linux
def rough(größe):
    return größe
def wide(x):
    return x.astype("u8") * x
def named(x):
    return x
named.types = "f32"
def first(x):
    return x ^ x[0]
def sign(x):
    return -(x.astype("i8") >> 31 & 1)
def larger(x, y):  # of two NaNs the last elements give the other, as loops after SIMD do
    is_last = np.arange(len(x)) >= len(x) // 8 * 8
    return np.where(np.isnan(y) & (is_last | ~np.isnan(x)), y, x)
larger.types = "f32", "f32"
def long(x):
    return x + (len(x) > 999)
def last(x):
    return np.append(x[:-1], x[-1] ^ (len(x) > 2))
def kept(x):
    return np.add(x, 1, out=ROOM[:len(x)])
def random(x):
    return x ^ np.random.default_rng().integers(0, 2, len(x), np.uint32)
def valid(x):
    return x ^ (x > 99) * len(x)
valid.precondition = "x < 99"
def careless(x):
    return x << 8 | len(x) & 255
careless.care = 0xFFFFFF00,
def zeroes(x):
    result = x + (x == 77)
    x.setflags(write=True)
    x[:] = 0  # at which the condition below does not hold
    return result
zeroes.precondition = "0 < x and x < 256"
def wide_at(x):
    return np.where(x == 0x5077, x.astype("u8") | 1 << 40, x)
wide_at.precondition = "x < 2**16 and x != 0x5078"
def wide_beyond(x):
    return np.where(x > 99, x.astype("u8") | 1 << 40, x)
wide_beyond.precondition = "x < 99"
def helped(x):
    return of_more_words.tenth(x)
def swizzled(x, bits=3, *, shift=4):
    return x ^ (x >> shift & (1 << bits) - 1)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)

    def write(constant=1 << 30, helper=""):
        for name, text in (("of_words", MODULE.replace("CONSTANT", str(constant))), ("of_more_words", helper)):
            sys.modules.pop(name, None)
            (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()

    write()
    yield write
    for name in ("of_words", "of_more_words"):
        sys.modules.pop(name, None)


def test_a_proof_of_other_code_begins_anew(module):
    keys = set()
    for constant, helper in ((77777, 77777), (77778, 77777), (77778, 77778)):  # at which none of the references is
        module(constant, f"def tenth(x):\n    return x // 10 + (x == {helper})")
        for name in ("tenth", "helped"):
            function = ExactFunction(f"of_words:{name}")
            keys.add(ExactSweep(exact_language(function), words_of(function, "%x"), function).key)
    assert len(keys) == 6


@pytest.mark.parametrize("name", ["valid", "careless", "wide_beyond"])
def test_a_function_may_do_anything_where_it_does_not_matter(module, name):
    assert ExactFunction(f"of_words:{name}").outputs == ("y",)


def test_a_function_that_writes_into_its_inputs_hides_no_wrong_result(module):
    function = ExactFunction("of_words:zeroes")
    with pytest.raises(UserError, match="is wrong at x = 0x0000004d"):
        certified_exact(exact_language(function), words_of(function, "%x"), function, target="sm_90")


def test_a_result_above_32_bits_at_one_word_is_no_word(module, monkeypatch):
    monkeypatch.setattr("evo.approximation.bits._NUM_TRIED", 1 << 10)
    function = ExactFunction("of_words:wide_at")
    with pytest.raises(UserError, match="gives uint64 above 32 bits"):
        certified_exact(exact_language(function), words_of(function, "%x"), function, target="sm_90")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("writes", "of_words:writes' fails"),
        ("fails", "of_words:fails' fails"),
        ("rough", "'größe' has letters beyond ASCII"),
        ("wide", "gives uint64 above 32 bits"),
        ("named", "'types' must be a tuple"),
        ("first", "other results for the same words in another array, must be elementwise"),
        ("larger", "other results for the same words in another array"),
        ("long", "other results for the same words in another array"),
        ("last", "other results for the same words in another array"),
        ("kept", "other results for the same words in another array"),
        ("random", "other results for the same words in another array"),
    ],
)
def test_what_is_wrong_with_a_function_is_named(module, name, reason):
    with pytest.raises(UserError, match=reason):
        ExactFunction(f"of_words:{name}")


def test_a_parameter_with_a_default_is_a_constant(module):
    function = ExactFunction("of_words:swizzled")
    assert function.inputs == ("x",) and function(np.array([0xAB], np.uint32))[0].tolist() == [0xAB ^ 0x2]


def test_negative_numbers_are_words(module):
    assert ExactFunction("of_words:sign")(np.array([1, 1 << 31], np.uint32))[0].tolist() == [0, 0xFFFFFFFF]


def test_more_than_32_bits_are_not_proven_without_a_solver(module, tmp_path, monkeypatch):
    monkeypatch.setattr("evo.approximation.smt.find_spec", lambda _: None)
    monkeypatch.setattr("evo.approximation.exact_sweep.NUM_TESTED", 1 << 16)
    function, path = ExactFunction("of_words:two", "y == 0 or y == 256"), tmp_path / "a.json"
    words = words_of(function, "0:b32 0xffff:b32 %y lop3_c0 %x add")
    found = certified_exact(exact_language(function), words, function, target="sm_90")
    assert found.method == TESTED and "not proven" in found.claim()
    path.write_text(json.dumps({**found.model_dump(mode="json"), "method": EVERY}))
    with pytest.raises(UserError, match=f"refused: 'method' is '{EVERY}', computed: '{TESTED}'"):
        check_certificate(path, code=function.text, precondition="y == 0 or y == 256")


def test_a_state_is_kept_beside_the_certificate_and_a_failed_proof_leaves_that(certificate, monkeypatch):
    path, found = certificate
    function, other = ExactFunction("ue4m3_f32"), "0:b32 %q shl"

    monkeypatch.setattr("evo.approximation.exact_sweep.SAVE_S", -1.0)
    names = set()
    progress = lambda *_: names.update(each.name for each in path.parent.iterdir())  # noqa: E731
    monkeypatch.setattr("evo.approximation.exact_sweep.TILE", 16)
    for program, works in ((BY_HAND, True), (other, False)):
        with nullcontext() if works else pytest.raises(UserError):
            words = words_of(function, program)
            certified_exact(exact_language(function), words, function, target="sm_90", state=path, progress=progress)
    assert path.read_text() == found.text()
    assert any(name.endswith(".part") for name in names) and [each.name for each in path.parent.iterdir()] == ["a.json"]


def test_a_certificate_that_reads_no_input_is_refused(certificate):
    path, found = certificate
    path.write_text(json.dumps({**found.model_dump(mode="json"), "program": "word:0x100000003"}))
    with pytest.raises(UserError, match=f"^{path}: refused: the program reads %y"):
        check_certificate(path)


@pytest.mark.parametrize("text", ["q <\t5", "q < 5  # few", "q <\t5 # few"])
def test_preconditions_have_no_comments_or_tabs(text):
    assert ExactFunction("ue4m3_f32", text).condition.text == "(q < 127) and (q < 5)"


def test_truths_add_up_as_numbers():
    assert Precondition("(q < 2) + (q < 3) == 2", ("q",))(np.arange(3, dtype=np.uint32)).tolist() == [True, True, False]


@pytest.mark.parametrize("given", [5, None])
def test_counterexamples_are_lists(given):
    with pytest.raises(UserError, match=r"^task_options\.counterexamples: "):
        ExactTask("ordered", counterexamples=given)


def forged(data):
    """Certificates that claim something else, and still have the form of one."""
    yield from (
        {**data, "precondition": text} for text in ("", "q < 0", "q < 126", "q < 127 and q != 3", "(q < 127)", "q < 2**7")
    )
    yield from ({**data, "function": name} for name in zoo.NAMES if name != data["function"])
    yield from ({**data, "care": [mask]} for mask in (0xFFFFFFFE, 1, 0x7FFFFFFF, 0xFFFF0000))
    yield from ({**data, "slots": slots} for slots in (0.0, 1.0, 2.0, 2.5, 4.0))
    yield from ({**data, "num_instructions": n} for n in (0, 1, 3))
    yield from ({**data, "num_inputs": n} for n in (127, 1 << 32, 0))
    yield from ({**data, "num_valid": n} for n in (128, 126, 1 << 32))
    yield from ({**data, "method": text} for text in (TESTED, "every input of each lane", "proven", ""))
    yield from ({**data, "target": text} for text in ("sm_80", "sm_75", "sm_120", "sm_1", ""))
    yield from ({**data, "semantics": text} for text in ("", "evo-bits-0", "evo-bits-2"))
    yield from ({**data, "types": [kind]} for kind in ("f32", "f16x2", "bf16x2", ""))
    yield from ({**data, "inputs": names} for names in (["x"], [], ["q", "q"]))
    yield from ({**data, "reference": data["reference"][k:] + data["reference"][:k]} for k in range(1, 9))
    for k in range(20):  # another constant, or shift
        yield {**data, "program": BY_HAND.replace("20:b32", f"{k}:b32")}
    for bit in range(20):
        yield {**data, "program": BY_HAND.replace("0x7b800000", f"0x{0x7B800000 ^ 1 << bit:08x}")}


def test_no_forged_certificate_holds(certificate):
    path, found = certificate
    assert check_certificate(path) == found
    cases = list(forged(found.model_dump(mode="json")))
    assert len(cases) >= 100
    passed = []
    for case in cases:
        path.write_text(json.dumps(case))
        try:
            check_certificate(path)
            passed.append(case)
        except UserError:
            pass
    # sm_80 and sm_120 count other slots; where they count the same, the claim is true
    assert [case for case in passed if case["target"] == "sm_90"] == []
    assert all(slots_of(exact_language(ExactFunction("ue4m3_f32")).instruction_set, case["target"]).size for case in passed)


def test_no_damaged_certificate_is_read(certificate):
    path, found = certificate
    text = found.text()
    texts = [text[:end] for end in range(0, len(text) - 2, 40)]
    numbers = ["NaN", "Infinity", "-1", "1e400", "127.0", "true", "null", '"127"', "[127]", "1" * 5000]
    texts += [
        text.replace(f'"{key}": 12{last}', f'"{key}": {number}')
        for key, last in (("num_valid", 7), ("num_inputs", 8))
        for number in numbers
    ]
    texts += [text.replace('"exact": 1', f'"exact": {number}') for number in (0, 2, "true", '"1"')]
    texts += [
        text.replace("{", '{"smt": "bitwuzla 0.10.0",', 1),
        text.replace("{", '{"method": "every input",', 1),
        f"[{text}]",
        text * 2,
    ]
    texts += [
        text.replace('"reference": "', '"reference": "\\u0000'),
        text.replace('"care": [', '"care": [0,'),
        text.replace("q < 127", "q < 127\\n"),
    ]
    for forged_text in texts:
        assert forged_text != text
        path.write_text(forged_text)
        with pytest.raises(UserError):
            check_certificate(path)


def test_a_further_precondition_is_the_checkers(tmp_path):
    function = ExactFunction("average4", "q < 2**16")
    found = certified_exact(
        exact_language(function), words_of(function, "2:b32 0:b32 0x01010101:b32 %q dp4a_u shr"), function, target="sm_90"
    )
    path = tmp_path / "a.json"
    path.write_text(found.text())
    assert (found.method, found.num_valid) == (EVERY, 1 << 16)
    with pytest.raises(UserError, match="'precondition' is 'q < 2"):
        check_certificate(path)
    assert check_certificate(path, precondition="q < 2**16") == found


def test_code_runs_in_a_check_only_if_it_is_named(certificate):
    path, found = certificate
    path.write_text(json.dumps({**found.model_dump(mode="json"), "function": "os:getcwd"}))
    with pytest.raises(UserError, match="--code os:getcwd"):
        check_certificate(path)
    with pytest.raises(UserError, match="is not a name or module:function"):
        check_certificate(path, code="os:getcwd")


@pytest.mark.parametrize(
    ("name", "slots", "seed"),
    [
        ("ordered", 4, 1),
        ("e5m2x4_f16x2x2", 4, 1),
        pytest.param("bf16x2_e4m3x2", 8, 2, marks=pytest.mark.slow),  # its sample has no tie, where a cheaper program is wrong
        ("f32_bf16", 2, 1),
        pytest.param("morton16", 26, 3, marks=pytest.mark.slow),
    ],
)
def test_programs_to_begin_with_are_right_and_cheap(name, slots, seed):
    function = ExactFunction(name)
    language, found = exact_language(function), synthesized(function, "sm_90", seed)
    words = words_of(function, found[0])
    assert language.lowering.sums(words[None], slots_of(language.instruction_set, "sm_90"))[0] <= slots
    points = sample(function, 1 << 12, 99)
    task = ExactTask(name, num_points=1 << 12, seed=99)
    results = VirtualMachine(language.lowering).store(words[None], [*points, *[None] * len(function.outputs)]).view(np.uint32)
    scores = task.score({key: results[:, k] for k, key in enumerate(task.outputs)}, None)
    assert scores.objective.tolist() == [0.0]


def test_programs_of_words_are_exported_as_python_and_cuda():
    function = ExactFunction("average4")
    language = exact_language(function)
    program = dag_of(language, words_of(function, "0:b32 0x01010101:b32 %q dp4a_u 0x40000000:b32 mulhi"))
    names = {}
    exec(python_source(program, ""), names)
    words = np.array([0x04040404, 0xFFFFFFFF, 0x01020307, 0], np.uint32)
    assert names["program"](words)[0].tolist() == [4, 255, 3, 0]
    text = cuda_source(program, "")
    assert "program(unsigned int q, unsigned int *y_out)" in text and "16843009u" in text


def test_the_header_says_what_is_proven(certificate):
    path, found = certificate
    function = ExactFunction("ue4m3_f32")
    text = exact_header(exact_language(function), [(found, words_of(function, found.program))])
    assert "Proven for every input: 127 inputs where q < 127." in text
    assert "unsigned int ue4m3_f32_3(unsigned int q)" in text and read_certificate(path) == found


TRICKS = """
import numpy as np
def sizes(x):
    return np.abs(x.view(np.int8).astype(np.int32)).astype(np.uint8).view(np.uint32)
def averages(x, y):
    return (x.view(np.uint8).astype(np.int32) + y.view(np.uint8) >> 1).astype(np.uint8).view(np.uint32)
def sums(x, y):
    return (x.view(np.uint8) + y.view(np.uint8)).view(np.uint32)
def largest(x, y):
    return np.maximum(x.view(np.int16), y.view(np.int16)).view(np.uint32)
def sign(x):
    return np.sign(x.view(np.int32)).view(np.uint32)
def lowest(x):
    return x & (~x + np.uint32(1))
def rest3(x):
    return x % np.uint32(3)
rest3.precondition = "x < 2**8"
def parity(x):
    return np.bitwise_count(x).astype(np.uint32) & 1
parity.precondition = "x < 2**8"
def ones(x):
    return np.bitwise_count(x).astype(np.uint32)
ones.precondition = "x < 2**4"
def spread(x):
    return (x & 15) | (x & 0xF0) << 4 | (x & 0xF00) << 8 | (x & 0xF000) << 12
def larger_size(x, y):
    a, b = ((each & np.uint32(0x7F7F7F7F)).view(np.uint8) for each in (x, y))
    return np.maximum(a, b).view(np.uint32)
larger_size.care = (0x7F7F7F7F,)
def ones_of_bytes(x):
    return np.bitwise_count(x.view(np.uint8)).astype(np.uint8).view(np.uint32)
codes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32).view(np.uint32)
codes = np.where(codes, (codes >> 20) - 8 * 120, 0)  # e2m1 as e4m3
codes = np.concatenate([codes, codes | 0x80]).astype(np.uint32)
def e2m1_e4m3(x):
    return sum(np.take_along_axis(codes, (x >> 4 * k & 15).astype(np.int64), 0) << 8 * k for k in range(4))
e2m1_e4m3.precondition = "x < 2**16"
def in_two(x):
    high = x.view(np.uint32) & np.uint32(0xFFFF0000)
    return high | (x - high.view(np.float32)).view(np.uint32) >> 16
in_two.types, in_two.precondition = ("f32",), "finite(x)"
def e4m3_f32(x):
    sign, power, digits = x >> 7, (x >> 3 & 15).astype(np.float32), (x & 7).astype(np.float32)
    size = np.where(power, (8 + digits) * np.exp2(power - 10), digits * np.float32(2.0**-9))
    return size.astype(np.float32).view(np.uint32) | sign << 31
e4m3_f32.precondition = "x < 256 and (x & 127) != 127"
def quantized(x, scale, zero):
    return np.clip(np.rint(np.nan_to_num(x * scale + zero, nan=0, posinf=1e9, neginf=-1e9)), 0, 255).astype(np.uint32)
def scaled(q, s):
    halves = [(s >> 16 * k).astype(np.uint16).view(np.float16) for k in (0, 1)]
    numbers = [((q >> 16 * k & 15).astype(np.float16) - np.float16(8)) * half for k, half in enumerate(halves)]
    low, high = (each.view(np.uint16).astype(np.uint32) for each in numbers)
    return low | high << 16
scaled.types, scaled.precondition = ("u32", "f16x2"), "finite_f16x2(s)"
def ue8m0_bf16(q):
    exponents = [q >> 8 * k & 255 for k in (0, 1)]
    low, high = (np.where(e == 0, 64, np.where(e == 255, 0x7FFF, e << 7)).astype(np.uint32) for e in exponents)
    return low | high << 16
ue8m0_bf16.precondition = "q < 2**16"
def digits(x):
    return x // 100 + 48 | (x // 10 % 10 + 48) << 8 | (x % 10 + 48) << 16
digits.precondition = "x < 256"
def next_up(x):
    return np.nextafter(x, np.float32(np.inf))
next_up.types, next_up.precondition = ("f32",), "finite(x)"
def average_up(x, y):
    low, high = (x & 0xFFFF) + (y & 0xFFFF) + 1 >> 1, (x >> 16) + (y >> 16) + 1 >> 1
    return low | high << 16
def transposed(a, b, c, d):
    return tuple(a >> k & 255 | (b >> k & 255) << 8 | (c >> k & 255) << 16 | (d >> k & 255) << 24 for k in (0, 8, 16, 24))
def nf4(q):
    codes = np.array("bc00 b992 b833 b652 b48d b1ea add4 0000 2d18 3126 33e0 3568 370d 3880 39c9 3c00".split())
    codes = np.array([int(each, 16) for each in codes], np.uint32)  # of bitsandbytes' table, in f16
    return codes[q & 15] | codes[q >> 4 & 15] << 16
def reversed_nibbles(q):
    return sum((q >> 28 - 4 * k & 15) << 4 * k for k in range(8))
def iq4_nl(q):
    codes = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.int8)
    fields = q.view(np.uint8).reshape(-1, 4)
    return codes[fields & 15].view(np.uint32)[:, 0], codes[fields >> 4].view(np.uint32)[:, 0]
def dots(a, b):
    fields = np.arange(0, 32, 4, dtype=np.uint32)
    return ((a[:, None] >> fields & 15) * (b[:, None] >> fields & 15)).sum(axis=1).astype(np.uint32)
def signs(q):
    found = np.full_like(q, 0xFFFFFFFF)
    for k in range(4):
        found -= (q >> k & 1) * np.uint32(0xFE << 8 * k)
    return found
def gray(g):
    for k, mask in ((1, 0x7F7F7F7F), (2, 0x3F3F3F3F), (4, 0x0F0F0F0F)):
        g = g ^ (g >> np.uint32(k) & np.uint32(mask))
    return g
def gray_halves(g):
    for k, mask in ((1, 0x7FFF7FFF), (2, 0x3FFF3FFF), (4, 0x0FFF0FFF), (8, 0x00FF00FF)):
        g = g ^ (g >> np.uint32(k) & np.uint32(mask))
    return g
def sizes16(x, y):
    a, b = x & np.uint32(0x7FFF7FFF), y & np.uint32(0x7FFF7FFF)
    return np.maximum(a.view(np.uint16), b.view(np.uint16)).view(np.uint32)
sizes16.types, sizes16.precondition = ("f16x2",) * 2, "no_nan_f16x2(x) and no_nan_f16x2(y)"
def narrowed(a, b):
    each = [x.view(np.uint32) for x in (a, b)]
    low, high = [(word + np.uint32(0x7FFF) + (word >> 16 & 1)) >> 16 for word in each]
    return low | high << 16
narrowed.types, narrowed.precondition = ("f32", "f32"), "no_nan(a) and no_nan(b)"
def zero_point(x):
    return x & np.uint32(15), x * np.uint32(0) + np.uint32(0x64086408)
def five(x):
    return x * np.uint32(0) + np.uint32(5)
zero_point.precondition = five.precondition = "x < 2**16"
quantized.types = ("f32",) * 3
quantized.precondition = "finite(x) and finite(scale) and finite(zero)"
"""


def first_program(tmp_path, monkeypatch, name):
    """A function of TRICKS, its first program and the program's slots."""
    if name not in ("e2m1_e4m3", "ue8m0_bf16"):  # a sixth of the goals is enough for programs as cheap, in a third of the time
        monkeypatch.setattr("evo.approximation.synthesis.MOST_GOALS", 50)
        monkeypatch.setattr("evo.approximation.synthesis.MOST_THOROUGH", 6)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "of_tricks.py").write_text(TRICKS)
    function = ExactFunction(f"of_tricks:{name}")
    language, words = exact_language(function), words_of(function, synthesized(function, "sm_90", 1)[0])
    slots = float(language.lowering.sums(words[None], slots_of(language.instruction_set, "sm_90"))[0])
    return function, words, slots


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "slots"),
    [
        ("sizes", 8),
        ("averages", 8),
        ("sums", 10),
        ("largest", 10),
        ("sign", 4),
        ("lowest", 4),
        ("rest3", 4),
        ("parity", 8),
        ("ones", 6),
        ("spread", 6),
        ("larger_size", 10),
        ("ones_of_bytes", 16),
        ("e2m1_e4m3", 10),
        ("in_two", 5),
        ("e4m3_f32", 3),
        ("quantized", 12),
        ("scaled", 4),
        ("ue8m0_bf16", 7),
        ("digits", 12),
        ("next_up", 7),
        ("average_up", 8),
        ("transposed", 16),
        ("nf4", 20),
        ("iq4_nl", 26),
        ("dots", 16),
        ("reversed_nibbles", 8),
        ("signs", 8),
        ("gray", 12),
        ("gray_halves", 16),
        ("sizes16", 6),
        ("narrowed", 2),
    ],
)
def test_tricks_are_found_as_cheap_as_by_hand(tmp_path, monkeypatch, name, slots):
    function, words, found_slots = first_program(tmp_path, monkeypatch, name)
    assert found_slots <= slots
    points = sample(function, 1 << 16, 99)
    results = VirtualMachine(exact_language(function).lowering).store(words[None], [*points, *[None] * len(function.outputs)])[0]
    assert not wrong_bits(function, results.view(np.uint32), function(*points)).any()


@pytest.mark.parametrize(("name", "slots", "constant"), [("zero_point", 2, "0x64086408"), ("five", 0, "0x00000005")])
def test_an_output_may_be_a_constant(tmp_path, monkeypatch, name, slots, constant):
    function, words, found_slots = first_program(tmp_path, monkeypatch, name)
    certificate = certified_exact(exact_language(function), words, function, target="sm_90")
    assert (found_slots, certificate.slots, certificate.method, certificate.num_valid) == (slots, slots, EVERY, 1 << 16)
    assert constant in exact_header(exact_language(function), [(certificate, words)]).lower()


PACKED = "0:b32 %c s32_of_f32 %d s32_of_f32 pack_s8 %a s32_of_f32 %b s32_of_f32 pack_s8"


def test_lop3_with_a_star_stands_for_all_tables():
    from evo.search.vocabulary import VocabularyOptions

    given = VocabularyOptions(instructions={"shl": 1, "lop3_*": 256})
    assert given.instructions == {"shl": 1.0, **{f"lop3_{table:02x}": 1.0 for table in range(256)}}


@pytest.mark.parametrize("config", ["configs/exact.yaml", "templates/exact/exact.yaml"])
def test_programs_may_have_all_instructions_of_words(config):
    """A first program with an instruction that the vocabulary lacks would be left out of the run."""
    names = [each.name for each in shipped_instruction_set("bits").instructions]
    modes = {f"prmt_{mode}" for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")}  # which prmt has by its selector
    lacking = set(names[names.index("shl") :]) - modes - set(load_config(REPOSITORY / config).program.vocabulary.instructions)
    assert not lacking


@pytest.mark.parametrize(("target", "lacking"), [("sm_90", set()), ("sm_75", {"fma2_bf16", "add2_bf16", "e4m3x2_of_f32"})])
def test_an_older_gpu_has_fewer_instructions(target, lacking):
    config = load_config(REPOSITORY / "configs/exact.yaml", (f"task_options.target={target}", "task_options.function=ordered"))
    problem = load_problem(config)
    instructions = problem.config.program.vocabulary.instructions
    assert {"fma2_bf16", "add2_bf16", "e4m3x2_of_f32"} - set(instructions) == lacking and "lop3_96" in instructions
    costs = slots_of(problem.language.instruction_set, target)
    names = [each.name for each in problem.language.instruction_set.instructions]
    assert not np.isnan([costs[names.index(name)] for name in instructions]).any()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ue4m3_f32", BY_HAND),
        ("of_words:asm", "%out0 e4m3x2_of_f16x2 %l f16x2_of_e4m3x2 %unsigned %linux add"),  # names that C or the text has
        ("e4m3x4_f16x2x2", "%q e4m3x2_of_f16x2 %q f16x2_of_e4m3x2"),  # registers of 16 bits, and two outputs
        ("f32x4_s8x4", PACKED),
        ("f32_bf16", "%x 0x3f800000:b32 e4m3x2_of_f32"),
    ],
)
def test_headers_are_compiled_by_nvrtc(module, name, text):
    nvrtc, assembler = pytest.importorskip("cuda.bindings.nvrtc"), pytest.importorskip("evo.native.nvptxcompiler")
    function = ExactFunction(name)
    language, words = exact_language(function), words_of(function, text)
    fields = {"function": name, "inputs": [*function.inputs], "types": [*function.types], "care": [*function.care]}
    found = ExactCertificate.model_construct(
        **fields, slots=1.0, num_instructions=1, target="sm_90", precondition="", num_valid=1
    )
    header = exact_header(language, [(found.model_copy(update={"method": TESTED}), words)])
    assert "Tested on 1 input, not proven." in header
    numbers = [f"__uint_as_float(p[{k}])" if kind == "f32" else f"p[{k}]" for k, kind in enumerate(function.types)]
    places = [f"q[{k}]" for k in range(len(function.outputs))]
    call = f"{name.rpartition(':')[2]}_1({', '.join([*numbers, *(places if len(places) > 1 else [])])});"
    call = call if len(places) > 1 else f"q[0] = {call}"
    source = f'{header}\nextern "C" __global__ void k(const unsigned *p, unsigned *q) {{ {call} }}'
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"k.cu", 0, [], [])
    [error] = nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=compute_90"])
    assert not int(error), header
    _, size = nvrtc.nvrtcGetPTXSize(program)
    nvrtc.nvrtcGetPTX(program, ptx := b" " * size)
    assembler.compile(ptx.decode().rstrip("\0"), ["--gpu-name=sm_90"])
