"""Code whose graphs proofs trust, and code that could tell a traced array from an array."""

import math
import operator
import sys
from enum import IntEnum
from functools import cache, lru_cache, reduce
from types import ModuleType

import numpy as np
import pytest

from evo.approximation.bits import ExactFunction
from evo.approximation.exact import exact_language
from evo.approximation.exact_sweep import PARTS, TESTED, ExactSweep, traced
from evo.approximation.graph import evaluate
from evo.approximation.plain_code import plain
from evo.approximation.trace import trace
from evo.approximation.traced import UntraceableError
from evo.language.program import parse_program

TABLE = np.arange(16, dtype=np.uint32)
SHIFTS = {"low": (0, 4), "high": [8, 12]}
STATE = [0]
OTHER = ModuleType("other")
OTHER.__file__ = __file__
exec("def twice(x): return x * 2\ndef known(x): return type(x)\nTEN = 10\ndef __getattr__(name): return 3", vars(OTHER))
FACTORS = iter((1, 2))
WIDTHS = {4, 8}


class Ending(IntEnum):
    ONE = 1

    def __format__(self, spec):
        raise StopIteration


TEXTS = frozenset({"low", "high"})
SEEN, CALLS, NUMBERS = [], [], [7]


def of_a_helper(x, shift=4, *, mask=0xF):
    if shift is None:
        raise ValueError("no shift")
    if not x.dtype == np.uint32:
        raise TypeError("no words")
    return x >> shift & mask


def of_many_forms(x):
    with np.errstate(over="ignore"):
        fields = [x >> k & 15 for k in (*SHIFTS["low"], *SHIFTS["high"])]
    y = np.zeros_like(x)
    for k, field in enumerate(fields):
        y[:] |= TABLE[field] << np.uint32(math.floor(4.5) * k)
    y[x > 5] += np.uint32(1)
    first, *rest = fields

    def scaled(z):
        return z + OTHER.TEN

    total = reduce(operator.xor, rest, first) + sum(field for field in rest)
    return of_a_helper(y, mask=np.uint32(7)) + OTHER.twice(total) * scaled(first)


def made_with(factor):
    return lambda x: x * np.uint32(factor)


@cache
def squares(count):
    made = np.zeros(count, np.uint32)
    for k in range(count):
        made[k] = k * k
    return made


@cache
def of_text(count):
    return np.array([int(f"{k * k:d}") for k in range(count)], np.uint32)


CACHES = [squares]


@cache
def forged():
    CALLS.append(1)
    return np.uint32(len(str(CALLS)))


forged.__wrapped__ = lambda: 2


def rounded(x, way):
    if way not in {"up", "down"} or way is None:
        raise NotImplementedError(f"it is {way!r}")
    return x + np.uint32(way == "up")


def of_constants(x, width=4):
    if width not in WIDTHS or x.dtype.kind not in "u":
        raise ValueError(f"{type(x).__name__} of {width:d} bits: %s" % x.flags)
    y = CACHES[0](16)[x >> 4 & 15].astype(np.uint16, casting="unsafe", copy=False)
    return rounded(y.astype(np.uint32), "up") << 0


@pytest.mark.parametrize("function", [of_a_helper, of_many_forms, made_with(3), ExactFunction("e2m1x8_f16x2x4").call])
def test_usual_code_is_plain(function):
    assert {0, 1, 0xFFFFFFFF} <= {*plain(function)[1].tolist()}


def test_words_are_numbers_of_all_code_and_next_to_these():
    words = {*plain(of_many_forms)[1].tolist()}
    assert {0xF, 0x10, 0xE, 9, 10, 11, 12, 0x40900000, 0xFFFFFFF6} <= words  # 4.5 is 0x40900000 in float32


def test_caches_sets_and_texts_of_errors_have_graphs():
    words = np.arange(1 << 12, dtype=np.uint32)
    assert {0, 1, 4, 5, 8} <= {*plain(of_constants)[1].tolist()}
    [term] = trace(of_constants, [words])
    np.testing.assert_array_equal(evaluate([term], [words])[0], ((words >> 4 & 15) ** 2 + 1))


def by_assignment(x):
    global FACTORS  # noqa: PLW0603 - refused for it
    FACTORS = x
    return x


def by_an_error(x):
    try:
        return x + np.uint32(bool(x))
    except Exception:  # noqa: BLE001 - refused for it
        return x


def by_any_error(x):
    try:
        return x[3] + x
    except:  # noqa: E722 - refused for it
        return x


def by_an_end(x):
    try:
        return x + 1
    finally:
        x = x + 2


def of_its_own_class(x):
    class Holder:
        value = x

    return Holder.value


def by_import(x):
    import sys

    return x if sys.flags else x + 1


def by_attribute(x):
    STATE.count = 1
    return x


def in_a_set(x):
    return x if {x.dtype, np.uint32} else x + 1


def ends(x):
    SEEN.append(type(x))
    raise StopIteration


def calls_in_an_error(x):
    def first(y):
        raise ValueError(ends(y))

    return x + np.uint32(len(list(map(first, [x]))))


def ends_beside_what_describes(x):
    def first(y):
        raise ValueError(many[len(many) - 1] + next(none))

    many, none = [1], zip()
    return x + np.uint32(len(list(map(first, [x]))))


def ends_in_an_error(x):
    def first(y):
        raise ValueError(f"{Ending.ONE}")

    return x + np.uint32(len(list(map(first, [x]))))


def of_the_order_of_texts(x):
    for k, text in enumerate(TEXTS):
        x = x + np.uint32(k if text == "low" else 0)
    return x


def adds_to_a_set(x):
    WIDTHS.add(len(WIDTHS) + 1000)
    return x + np.uint32(1)


def keeps_its_first_word(x):
    if not CALLS:
        CALLS.append(x[0] & 1)
    return x ^ CALLS[0]


def changes_its_closure():
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x + np.uint32(count)

    return function


def with_an_attribute(x):
    return x if with_an_attribute.kind(x) else x + 1


with_an_attribute.kind = lambda x: type(x) is np.ndarray


def of_its_own_builtins():
    names = {"__name__": __name__, "__file__": __file__, "__builtins__": {"len": lambda x: type(x) is np.ndarray}}
    exec("def function(x): return x if len(x) else x + 1", names)
    return names["function"]


class Callable(int):
    def __call__(self, x):
        return x if type(x) is np.ndarray else x + 1


PART = slice(Callable(0), 1)
OBJECTS = np.array([lambda x: x], object)
INTEGER, RECORD = Callable(3), np.array([(lambda x: x,)], [("a", object)])[0]


def in_an_error(x):
    if x.ndim > 1:
        raise (ValueError, StopIteration)[type(x) is np.ndarray]("no words")
    return x


def by_an_end_of_a_map(x):
    def first(y):
        kinds.append(0)
        raise StopIteration(f"{y}")

    kinds = []
    return x + np.uint32(len([*map(first, [x])]) + len(kinds))


def with_a_text(x):
    if x.ndim > 1:
        text = f"{x}"
        raise ValueError(text)
    return x


def of_any_order(x):
    for step in (lambda y: y + 1, lambda y: y * 2):
        x = step(x)
    return x + len(ORDER)


ORDER = {np.add, np.multiply}


@pytest.mark.parametrize(
    "function",
    [
        by_assignment,
        by_an_error,
        by_any_error,
        by_an_end,
        of_its_own_class,
        by_import,
        by_attribute,
        in_a_set,
        calls_in_an_error,
        ends_beside_what_describes,
        ends_in_an_error,
        of_the_order_of_texts,
        adds_to_a_set,
        lambda x: x + TABLE.astype(np.uint32, copy=False, subok=False)[3],
        changes_its_closure(),
        lambda x: x if type(x) == np.ndarray else x + 1,  # noqa: E721 - refused for it
        lambda x: x if isinstance(x, np.ndarray) else x + 1,
        lambda x: x if x.dtype is np.dtype(np.uint32) else x + 1,
        lambda x: x if x in [x] else x + 1,
        lambda x: x if hasattr(x, "ctypes") else x + 1,
        lambda x: x if id(x) % 2 else x + 1,
        lambda x: x if repr(x)[0] == "a" else x + 1,
        lambda x: x if f"{x}"[0] == "a" else x + 1,
        lambda x: x if x.flags.owndata else x + 1,
        lambda x: x if x.strides[0] == 4 else x + 1,
        lambda x: x if x.base is None else x + 1,
        lambda x: x.__class__ and x,
        lambda x: np.random.default_rng(0).integers(9) + x,
        lambda x: x if np.shares_memory(x, x) else x + 1,
        lambda x: x * next(FACTORS),
        lambda x: OTHER.known(x) and x,
        lambda x: x + OTHER.made_later,
        lambda x: x + np.uint32(list.append(NUMBERS, 1) is None),
        lambda x: [*map(list.append, [NUMBERS], [1])] and x,
        lambda x, kind=dict: kind.pop(SHIFTS, "low") and x,
        lambda x: x + forged(),
        made_with(OTHER),
        lambda x: x + of_text(3)[0],
        lambda x: x << Ending.ONE,
        lambda x: x if x in (TABLE, 3) else x + 1,
        lambda x: x + np.uint32(x.data in WIDTHS),
        in_an_error,
        by_an_end_of_a_map,
        with_a_text,
        of_any_order,
        lambda x: x + sys.getrefcount(x),
        lambda x: [*(yield_ for yield_ in (globals(),))] and x,
        lambda x: x if "%.1s" % x == "[" else x + 1,  # noqa: UP031 - refused for it
        lambda x: x if x.dtype is (np.uint32 if x.size else None) else x + 1,
        with_an_attribute,
        of_its_own_builtins(),
        lambda x: INTEGER(x) + x,
        lambda x: x[:, None][:, PART].sum(axis=1),
        lambda x: RECORD["a"](x) + x,
        lambda x: OBJECTS[0](x) + x,
        lambda x: x if np.array_equal(x, TABLE) else x + 1,
        np.vectorize(lambda x: x + 1),
        ExactFunction,
    ],
)
def test_code_that_may_tell_arrays_apart_is_not_plain(function):
    with pytest.raises(UntraceableError):
        plain(function)


def test_code_is_not_plain_where_numpy_was_changed(monkeypatch):
    monkeypatch.setattr(np, "gcd", lambda *_: 0)
    with pytest.raises(UntraceableError, match="has changed NumPy"):
        plain(lambda x: np.gcd(x, x))


def puts_an_input(x):
    STATE[0] = x
    return x + np.uint32(1)


def turns(x):
    STATE[0] = 1 - STATE[0]
    return x + np.uint32(1)


def adds_to_its_table(x):
    TABLE[3] += np.uint32(1)
    return TABLE[x & 15]


def counts_in_a_cache(x):
    kept().append(1)
    return x + np.uint32(1)


def counts_twice(x):
    STATE[0] = STATE[0] + 1.0
    STATE[0] = STATE[0] + 1.0  # which may lie where the first number lay
    return x + np.uint32(STATE[0] > 1000)


def counts_elsewhere(x):
    return x + np.uint32(COUNTERS[0]())


@cache
def kept():
    return [0]


@lru_cache(maxsize=1)
def forgotten(k):
    return [k]


def appends_to_a_default(x, seen=[]):  # noqa: B006 - refused for it
    seen.append(1)
    return x + np.uint32(len(seen) > 99)


def adds_through_a_view(x):
    rows = np.asarray(TABLE).reshape(4, 4).view(np.int32).T
    rows[0] += 1
    return x + np.uint32(1)


def adds_by_an_operation(x):
    np.add(TABLE, np.uint32(1), out=TABLE)
    return x + np.uint32(1)


def of_its_numbers():
    numbers = [1, 2]
    items = {"last": numbers}

    def function(x):
        for each in items.values():
            each += [len(each)]
        return x + np.uint32(len(numbers) > 99)

    return function


def of_two_types(x):
    return x + np.uint32(cached(True) + cached(1))


@cache
def cached(k):
    return int(k)


COUNTS = ModuleType("counts")
COUNTS.__file__ = __file__
exec("STATE = [0]\ndef count():\n    STATE.append(1)\n    return len(STATE) > 99", vars(COUNTS))
COUNTERS = (COUNTS.count,)


@pytest.mark.parametrize(
    "function",
    [
        puts_an_input,
        turns,
        adds_to_its_table,
        counts_in_a_cache,
        counts_twice,
        counts_elsewhere,
        appends_to_a_default,
        adds_through_a_view,
        adds_by_an_operation,
        of_its_numbers(),
        of_two_types,
        lambda x: x + forgotten(1)[0] + forgotten(2)[0],
        lambda x: x + ((NUMBERS.pop() and NUMBERS.append(7)) or np.uint32(1)),
    ],
)
def test_code_that_changes_what_it_did_not_make_has_no_graph(function):
    words = [np.arange(8, dtype=np.uint32)]
    copy, _ = plain(function)
    with pytest.raises((UntraceableError, ValueError), match=r"did not make|read-only|forgets|two types"):
        copy(*words)  # which does not reach the module
    with pytest.raises(UntraceableError):
        trace(copy, words)
    assert (STATE, NUMBERS, TABLE.tolist()) == ([0], [7], [*range(16)])


@cache
def empty():
    return np.zeros(4, np.uint32)


def fills_what_it_caches(x):
    table = empty()
    if not table.any():
        table[:] = x[0] | 1
    return x + table[x & 3]


NAN = np.array([np.nan])


@cache
def made_anew(_):
    CALLS.append(0)
    return 1


@pytest.mark.parametrize("name", ["keeps_its_first_word", "fills_what_it_caches", "by_nan"])
def test_functions_that_their_first_call_changes_have_no_graph(name):
    for _ in range(2):  # the second time, what they keep is there
        function = ExactFunction(f"{__name__}:{name}")
        assert function.call is globals()[name] and function.numbers is None
        with pytest.raises(UntraceableError, match="has changed what its module holds"):
            traced(function)


def by_nan(x):
    return x + np.uint32(made_anew(float(NAN[0])))


@cache
def iterator():
    return iter(range(9))


@cache
def of_a_type(kind):
    return 3


@cache
def changed():
    return np.zeros(4, np.uint32)


changed()[0] = 1


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x + next(zip(iterator(), (1,), strict=False))[0], "other than"),
        (lambda x: x + of_a_type(np.uint8), "hands other"),
        (lambda x: x + changed()[x & 3], "changes what it caches"),
    ],
)
def test_caches_of_other_than_constants_have_no_graph(function, why):
    with pytest.raises(UntraceableError, match=why):
        trace(function, [np.arange(8, dtype=np.uint32)])


ONE_NAN = np.array([np.nan], np.float32)


def test_lists_are_compared_as_of_arrays():
    words = [np.arange(8, dtype=np.uint32)]
    copy, _ = plain(lambda x: x + np.uint32([np.asarray(ONE_NAN)] == [ONE_NAN]))
    assert copy(*words)[0] == 1  # as it is one object
    with pytest.raises(UntraceableError, match="compares NaNs"):
        trace(copy, words)


def test_floats_beyond_words_are_cast_as_of_one():
    numbers = np.array([-3e9, np.nan, 7.5, 5e9] * 4, np.float32)
    [term] = trace(lambda x: x.astype(np.uint32), [np.abs(numbers[2:3])])
    with np.errstate(invalid="ignore"):
        one_by_one = [int(numbers[k : k + 1].astype(np.uint32)[0]) for k in range(len(numbers))]
        assert evaluate([term], [numbers])[0].tolist() == one_by_one


@pytest.mark.parametrize(("text", "method"), [("x ^ y", PARTS), ("x ^ y if isinstance(x, np.ndarray) else x", TESTED)])
def test_only_plain_code_is_proven_by_its_graph(text, method, monkeypatch):
    module = ModuleType("of_words")
    module.__file__ = __file__
    exec(f"import numpy as np\ndef function(x, y): return {text}", vars(module))
    monkeypatch.setitem(sys.modules, "of_words", module)
    function = ExactFunction("of_words:function")
    words = parse_program(language := exact_language(function), "%x %y xor_b32", "test")
    assert ExactSweep(language, words, function).method == method
