"""Laws of variation: expected values come from the published definitions, from scipy or from enumeration, never from vary.h."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from evo.native.vary import OPERATORS, Draw, Variation, draw_indices, gaussian, philox, program_lengths

PTX, CONSTANT, INPUT, META_CONSTANT, RETURN = 1, 2, 3, 6, 10
F32, U32, S32 = 0, 1, 2
UMAD, ALTERNATION, CROSSOVER, PERTURBATION, REPLACEMENT = range(5)
ADDITION, DELETION = 0.09, 0.0826
# With fixed seeds each test either always passes or always fails: this only sets how wrong a law must be to be noticed.
P_VALUE = 1e-3


def word(kind, stack=0, payload=0):
    return kind | stack << 16 | payload << 32


# Entries: word, weight, draw, params.
NEW = word(PTX, 0, 999_999)
ENTRIES = [(NEW, 1.0, Draw.LITERAL, (0, 0))]
MIXED = [
    (word(PTX, 0, 5), 3.0, Draw.LITERAL, (0, 0)),
    (word(INPUT, 0, 1), 2.0, Draw.LITERAL, (0, 0)),
    (word(CONSTANT, F32), 1.0, Draw.GAUSSIAN, (0.5, 2.0)),
    (word(CONSTANT, F32), 1.0, Draw.UNIFORM, (-1.0, 3.0)),
    (word(CONSTANT, U32), 0.5, Draw.INTEGER, (0, 10)),
    (word(CONSTANT, S32), 0.5, Draw.INTEGER, (-3, 4)),
    (word(META_CONSTANT), 0.5, Draw.INTEGER, (0, 4)),
]
OPTIONS = {
    "operator_weights": (1.0, 1.0, 1.0, 1.0, 1.0),
    "umad_addition_rate": ADDITION,
    "umad_deletion_rate": DELETION,
    "alternation_rate": 0.01,
    "alignment_deviation": 10.0,
    "perturbation_rate": 0.3,
    "perturbation_relative": 0.1,
    "perturbation_absolute": 0.2,
    "replacement_rate": 0.05,
    "initial_min_length": 1,
    "initial_max_length": 40,
    "float_stacks": 1 << F32,
    "unsigned_stacks": 1 << U32,
    "signed_stacks": 1 << S32,
}


def make(entries=MIXED, only=None, **options):
    if only is not None:
        options["operator_weights"] = tuple(float(code == only) for code in range(len(OPERATORS)))
    words, weights, draws, params = zip(*entries, strict=True)
    return Variation(
        np.array(words, np.uint64),
        np.array(weights, np.float64),
        np.array(draws, np.uint32),
        np.array(params, np.float64),
        SimpleNamespace(**{**OPTIONS, **options}),
    )


def row(words, max_length):
    """A stored program: its words, a RETURN if there is room, zeros."""
    full = np.zeros(max_length, np.uint64)
    full[: len(words)] = words
    if len(words) < max_length:
        full[len(words)] = RETURN
    return full


def distinct_programs(num_programs, length, max_length, kind=PTX):
    """Programs in which every word tells its program (payload // 10,000) and its place (payload % 10,000)."""
    return np.array([row([word(kind, 0, 10_000 * p + i) for i in range(length)], max_length) for p in range(num_programs)])


def payloads(words):
    return (words >> np.uint64(32)).astype(np.int64)


def floats(words):
    return (words >> np.uint64(32)).astype(np.uint32).view(np.float32)


def assert_binomial(successes, trials, probability):
    assert stats.binomtest(int(successes), int(trials), probability).pvalue > P_VALUE, (successes / trials, probability)


def assert_chi_square(counts, probabilities):
    counts, probabilities = np.asarray(counts), np.asarray(probabilities, float)
    assert stats.chisquare(counts, counts.sum() * probabilities / probabilities.sum()).pvalue > P_VALUE, counts


def assert_valid(rows):
    max_length = rows.shape[1]
    types, stacks = rows & np.uint64(0xFFFF), rows >> np.uint64(16) & np.uint64(0xFFFF)
    lengths = np.where((types == RETURN).any(axis=1), (types == RETURN).argmax(axis=1), max_length)
    np.testing.assert_array_equal(program_lengths(rows), lengths)
    places = np.arange(max_length)
    tail = places > lengths[:, None]
    assert (rows[tail] == 0).all()
    assert (rows[places == lengths[:, None]] == RETURN).all()
    f32_constants = (types == CONSTANT) & (stacks == F32) & ~tail
    assert np.isfinite(floats(rows[f32_constants])).all()


# ---- random numbers ----


@pytest.mark.parametrize(
    ("counter", "key", "block"),
    [  # the known answers that come with Random123 (kat_vectors, philox4x32 10)
        ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**32 - 1,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            0x299F31D0_A4093822,
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_answers(counter, key, block):
    assert philox(key, counter) == block


def test_drawn_index_is_the_high_part_of_the_first_64_bits_of_its_block():
    seed, generation, stream, bound = 2**63 + 12345, 17, 0, 1000
    indices = draw_indices(seed, generation, stream, 50, 20, bound)
    for slot, index in enumerate(indices, start=50):
        high, low, _, _ = philox(seed, (generation, slot, 0, stream))
        assert index == ((high << 32 | low) * bound) >> 64


def test_gaussian_is_the_quantile_to_one_part_in_a_million():
    rng = np.random.default_rng(0)
    # Every octave of the tail alike: shifts of random bits.
    bits = rng.integers(0, 2**32, 300_000, dtype=np.uint32) >> rng.integers(0, 32, 300_000, dtype=np.uint32)
    tail = (2 * (bits >> 1).astype(np.float64) + 1) / 2**33
    expected = np.where(bits & 1, 1, -1) * stats.norm.isf(tail)
    np.testing.assert_allclose(gaussian(bits), expected, rtol=0, atol=1e-6)


def test_coefficients_of_the_gaussian_are_those_of_chebyshev_interpolation(repository):
    source = (repository / "csrc" / "vary.h").read_text()
    table = source.split("vary__gaussian_table")[1].split("= {")[1].split("};")[0]
    stored = np.array([[int(c) for c in line.strip(" {},").split(",")] for line in table.strip().splitlines()])
    for octave, coefficients in enumerate(stored):
        interpolant = np.polynomial.chebyshev.chebinterpolate(
            lambda s, octave=octave: stats.norm.isf((1.5 + s / 2) * 2.0 ** (octave - 33)), len(coefficients) - 1
        )
        powers = np.polynomial.chebyshev.cheb2poly(interpolant) * 2.0 ** np.arange(len(coefficients))
        np.testing.assert_allclose(coefficients, powers * 2**28, rtol=0, atol=2)


# ---- what new words are drawn ----


def test_vocabulary_is_drawn_by_weight():
    weights = np.array([1.0, 2.5, 0.0, 10.0, 0.01, 3.0, 0.7])
    entries = [(word(PTX, 0, i), w, Draw.LITERAL, (0, 0)) for i, w in enumerate(weights)]
    programs = make(entries, initial_min_length=200, initial_max_length=200).random_programs(1, 0, 0, 2000, 200)
    counts = np.bincount(payloads(programs).ravel(), minlength=len(weights))
    assert counts[2] == 0
    assert_chi_square(counts[weights > 0], weights[weights > 0])


def test_large_vocabulary_is_drawn_by_weight():
    weights = np.random.default_rng(1).random(3000)
    entries = [(word(PTX, 0, i), w, Draw.LITERAL, (0, 0)) for i, w in enumerate(weights)]
    programs = make(entries, initial_min_length=500, initial_max_length=500).random_programs(2, 0, 0, 1000, 500)
    assert_chi_square(np.bincount(payloads(programs).ravel(), minlength=3000), weights)


def constants(draw, params, num_programs=2000, stack=F32):
    entries = [(word(CONSTANT, stack), 1.0, draw, params)]
    programs = make(entries, initial_min_length=50, initial_max_length=50).random_programs(3, 0, 0, num_programs, 50)
    assert (programs & np.uint64(0xFFFFFFFF) == word(CONSTANT, stack)).all()
    return programs.ravel()


def test_gaussian_constants_have_mean_deviation_and_law():
    values = floats(constants(Draw.GAUSSIAN, (1.5, 3.0))).astype(np.float64)
    standard = (values - 1.5) / 3.0
    assert stats.kstest(standard, stats.norm.cdf).pvalue > P_VALUE
    n = len(standard)
    # Standard errors of the first four moments of a Gaussian.
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((standard**power).mean() - moment) < 4 * np.sqrt(variance / n)


def test_uniform_constants_are_even_in_their_range():
    values = floats(constants(Draw.UNIFORM, (-2.0, 6.0))).astype(np.float64)
    assert values.min() >= -2.0 and values.max() <= 6.0
    assert stats.kstest(values, stats.uniform(-2.0, 8.0).cdf).pvalue > P_VALUE


def test_integers_are_even_in_their_range():
    values = payloads(constants(Draw.INTEGER, (3, 20), stack=U32))
    assert values.min() == 3 and values.max() == 19
    assert_chi_square(np.bincount(values)[3:], np.ones(17))
    signed = payloads(constants(Draw.INTEGER, (-3, 4), stack=S32)).astype(np.uint32).view(np.int32)
    assert sorted(set(signed.tolist())) == list(range(-3, 4))


def test_initial_lengths_are_even_in_their_range():
    programs = make(initial_min_length=5, initial_max_length=24).random_programs(4, 0, 0, 20_000, 64)
    lengths = program_lengths(programs)
    assert lengths.min() == 5 and lengths.max() == 24
    assert_chi_square(np.bincount(lengths)[5:], np.ones(20))
    assert_valid(programs)


# ---- parents and operators ----


def test_parents_are_even_over_the_pool_and_never_the_same_row():
    pool = distinct_programs(7, 10, 16)
    _, parents, _ = make(only=CROSSOVER).offspring(5, 1, 0, 40_000, pool)
    counts = np.zeros((7, 7), int)
    np.add.at(counts, (parents[:, 0], parents[:, 1]), 1)
    assert np.trace(counts) == 0
    assert_chi_square(counts[~np.eye(7, dtype=bool)], np.ones(42))


def test_operators_are_drawn_by_weight():
    weights = (0.5, 0.1, 0.0, 0.3, 0.1)
    pool = np.array([row([word(CONSTANT, F32, 0x3F800000)] * 8, 16)] * 4)
    _, _, operators = make(operator_weights=weights).offspring(6, 1, 0, 40_000, pool)
    counts = np.bincount(operators, minlength=5)
    assert counts[CROSSOVER] == 0
    assert_chi_square(counts[np.array(weights) > 0], np.array(weights)[np.array(weights) > 0])


def test_more_draws_in_one_stream_do_not_shift_another():
    pool = distinct_programs(9, 20, 32)
    _, parents, operators = make().offspring(7, 1, 0, 500, pool)
    _, other_parents, other_operators = make(umad_addition_rate=0.9, alternation_rate=0.5, replacement_rate=0.9).offspring(7, 1, 0, 500, pool)
    np.testing.assert_array_equal(parents, other_parents)
    np.testing.assert_array_equal(operators, other_operators)


# ---- UMAD ----


def test_umad_adds_and_deletes_at_its_rates():
    length, num = 64, 20_000
    pool = distinct_programs(3, length, 160)
    words, parents, _ = make(ENTRIES, only=UMAD).offspring(8, 1, 0, num, pool)
    lengths = program_lengths(words)
    in_program = np.arange(160) < lengths[:, None]
    new = (words == NEW) & in_program
    old = in_program & ~new
    # A new word survives with 1 - d; it is deleted like any other.
    assert_binomial(new.sum(), num * length, ADDITION * (1 - DELETION))
    assert_binomial(old.sum(), num * length, 1 - DELETION)
    # Size-neutral: (1 + a) (1 - d) = 1 to four digits.
    assert abs(lengths.mean() - length) < 4 * lengths.std() / np.sqrt(num) + 2e-4 * length
    places = payloads(words) - 10_000 * parents[:, :1]
    assert ((places[old] >= 0) & (places[old] < length)).all()
    kept = np.bincount(places[old], minlength=length)
    assert_chi_square(np.column_stack([kept, num - kept]).ravel(), np.tile([1 - DELETION, DELETION], length))
    for child, mask in zip(places[:200], old[:200], strict=True):
        assert (np.diff(child[mask]) > 0).all()


def test_umad_on_one_word_has_the_law_of_its_cases():
    pool = np.array([row([word(PTX, 0, 1)], 8)])
    words, _, _ = make(ENTRIES, only=UMAD, umad_addition_rate=0.4, umad_deletion_rate=0.3).offspring(9, 1, 0, 20_000, pool)
    old = word(PTX, 0, 1)
    cases = {(NEW, old): 0.0, (old, NEW): 0.0, (NEW,): 0.0, (): 0.0}
    survives = 0.4 * 0.7
    cases[NEW, old] = cases[old, NEW] = survives / 2 * 0.7
    cases[NEW,] = survives * 0.3
    cases[()] = (1 - survives) * 0.3
    found = [tuple(int(w) for w in child[:n]) for child, n in zip(words, program_lengths(words), strict=True)]
    assert set(found) == set(cases)  # the program as it was is not among them
    assert_chi_square([found.count(case) for case in cases], list(cases.values()))


def test_umad_always_changes_the_program():
    pool = distinct_programs(1, 5, 16)
    words, _, _ = make(ENTRIES, only=UMAD, umad_addition_rate=1e-4, umad_deletion_rate=3e-4).offspring(10, 1, 0, 4000, pool)
    lengths = program_lengths(words)
    # One hit each but for about one in a thousand, addition to deletion as 1 to 3.
    assert np.isin(lengths, (4, 6)).mean() > 0.997
    assert_binomial((lengths > 5).sum(), 4000, 0.25)


def test_umad_gaps_longer_than_its_table_keep_the_law():
    length, rate = 3000, 1e-3
    pool = distinct_programs(1, length, 3100)
    words, _, _ = make(ENTRIES, only=UMAD, umad_addition_rate=1e-9, umad_deletion_rate=rate).offspring(11, 1, 0, 2000, pool)
    # At least one hit is made: the expectation rises by P(none).
    expected = 2000 * (length * rate + (1 - rate) ** length)
    deleted = (length - program_lengths(words)).sum()
    assert abs(deleted - expected) < 4 * np.sqrt(expected)


# ---- alternation ----


def test_alternation_switches_at_its_rate_and_place():
    length, rate = 500, 0.05
    pool = distinct_programs(2, length, 512)
    words, parents, _ = make(only=ALTERNATION, alternation_rate=rate, alignment_deviation=0.0).offspring(12, 1, 0, 400, pool)
    assert (program_lengths(words) == length).all()
    source, place = np.divmod(payloads(words[:, :length]), 10_000)
    assert (place == np.arange(length)).all()
    # Between two words the number of switches is geometric; an odd one shows: r / (1 + r).
    assert_binomial((np.diff(source, axis=1) != 0).sum(), source.size - len(source), rate / (1 + rate))
    assert_binomial((source[:, 0] == parents[:, 0]).sum(), len(source), 1 / (1 + rate))


def test_alternation_shifts_by_a_rounded_gaussian():
    length, deviation = 4000, 10.0
    pool = distinct_programs(2, length, length)
    words, _, _ = make(only=ALTERNATION, alternation_rate=0.002, alignment_deviation=deviation).offspring(13, 1, 0, 400, pool)
    shifts = []
    for child, n in zip(words, program_lengths(words), strict=True):
        source, place = np.divmod(payloads(child[:n]), 10_000)
        step = place[1:] - (place[:-1] + 1)
        inside = place[:-1] > 100  # clear of the beginning, where positions are cut at zero
        assert (step[source[1:] == source[:-1]] == 0).mean() > 0.999  # but for two switches in a row
        shifts.append(step[(source[1:] != source[:-1]) & inside])
    shifts = np.concatenate(shifts)
    assert len(shifts) > 2000
    edges = np.arange(-25, 26, 5) + 0.5
    expected = np.diff(np.concatenate([[0.0], stats.norm.cdf(edges / deviation), [1.0]]))
    assert_chi_square(np.bincount(np.searchsorted(edges, shifts), minlength=len(expected)), expected)


def test_alternation_always_switches():
    pool = distinct_programs(2, 6, 16)
    words, parents, _ = make(only=ALTERNATION, alternation_rate=1e-6, alignment_deviation=0.0).offspring(14, 1, 0, 6000, pool)
    source = payloads(words[:, :6]) // 10_000
    assert (source[:, -1] == parents[:, 1]).all()
    assert_chi_square(np.bincount((source == parents[:, :1]).sum(axis=1)), np.ones(6))


# ---- crossover, replacement, perturbation ----


def test_crossover_takes_each_common_place_from_either_parent_evenly():
    pool = np.concatenate([distinct_programs(2, 50, 80), distinct_programs(3, 70, 80)[2:]])
    words, parents, _ = make(only=CROSSOVER).offspring(15, 1, 0, 20_000, pool)
    sizes = np.array([50, 50, 70])[parents]
    np.testing.assert_array_equal(program_lengths(words), sizes[:, 0])
    source, place = np.divmod(payloads(words), 10_000)
    common, own = (np.arange(80) < limit[:, None] for limit in (sizes.min(axis=1), sizes[:, 0]))
    assert (place[own] == np.broadcast_to(np.arange(80), place.shape)[own]).all()
    from_second = source == parents[:, 1:]
    assert (from_second | (source == parents[:, :1]))[own].all()
    assert not from_second[own & ~common].any()
    assert_binomial(from_second[common].sum(), common.sum(), 0.5)
    everywhere = sizes.min(axis=1) == 50
    counts = from_second[everywhere, :50].sum(axis=0)
    assert_chi_square(np.column_stack([counts, everywhere.sum() - counts]).ravel(), np.ones(100))


def test_replacement_replaces_at_its_rate_and_at_least_one():
    length = 60
    pool = distinct_programs(2, length, 64)
    words, _, _ = make(ENTRIES, only=REPLACEMENT, replacement_rate=0.05).offspring(16, 1, 0, 10_000, pool)
    replaced = words[:, :length] == NEW
    assert (program_lengths(words) == length).all()
    counts = replaced.sum(axis=1)
    none = 0.95**length
    expected = stats.binom.pmf(np.arange(9), length, 0.05)
    expected[1] += none
    expected[0] = 0.0
    assert (counts >= 1).all()
    assert_chi_square(np.bincount(np.minimum(counts, 9), minlength=10)[1:], np.append(expected[1:], 1 - expected.sum()))
    assert (words[:, :length][~replaced] == pool[0, 0] % 2**32 + (payloads(words[:, :length][~replaced]).astype(np.uint64) << np.uint64(32))).all()


def test_perturbed_constants_are_gaussian_around_their_value():
    value, others = 2.0, 30
    constant = word(CONSTANT, F32, int(np.float32(value).view(np.uint32)))
    pool = np.array([row([word(PTX, 0, i) for i in range(others)] + [constant] * 20, 64)])
    words, _, _ = make(only=PERTURBATION).offspring(17, 1, 0, 4000, pool)
    np.testing.assert_array_equal(words[:, :others], np.broadcast_to(pool[0, :others], (4000, others)))
    values = floats(words[:, others : others + 20])
    changed = values != value
    assert (changed.sum(axis=1) >= 1).all()
    assert_binomial(changed.sum(), changed.size, 0.3)  # P(none of 20) is 8e-4
    deviation = 0.1 * value + 0.2
    assert stats.kstest((values[changed].astype(np.float64) - value) / deviation, stats.norm.cdf).pvalue > P_VALUE


def test_perturbed_integers_move_by_at_least_one_and_stay_in_range():
    pool = np.array([row([word(CONSTANT, U32, v) for v in (0, 1, 1000, 2**32 - 1)] + [word(CONSTANT, S32, v) for v in (0, 2**31, 2**31 - 1)], 8)])
    words, _, _ = make(only=PERTURBATION, perturbation_rate=1.0).offspring(18, 1, 0, 4000, pool)
    unsigned = payloads(words[:, :4])
    assert (unsigned != payloads(pool[0, :4])).all()
    assert unsigned.min() >= 0 and unsigned.max() < 2**32
    steps = unsigned[:, 2] - 1000
    # A magnitude of |z| (0.1 * 1000 + 0.2), up to the next whole step.
    magnitude = (np.abs(steps) - 1) / 100.2
    assert stats.kstest(magnitude + np.random.default_rng(0).random(4000) / 100.2, stats.halfnorm.cdf).pvalue > P_VALUE
    assert_binomial((steps > 0).sum(), 4000, 0.5)
    signed = payloads(words[:, 4:7]).astype(np.uint32).view(np.int32).astype(np.int64)
    assert (signed[:, 1] > -(2**31)).all() and (signed[:, 2] < 2**31 - 1).all() and (signed[:, 0] != 0).all()


# ---- any words, any options ----


@given(
    pool=hnp.arrays(np.uint64, st.tuples(st.integers(1, 6), st.integers(1, 90))),
    types=st.integers(0, 2**32 - 1),
    only=st.sampled_from([None, *range(5)]),
    rates=st.tuples(*[st.floats(1e-6, 1.0)] * 5),
    deviation=st.floats(0.0, 1e6),
    seed=st.integers(0, 2**64 - 1),
)
def test_every_offspring_of_any_pool_is_valid(pool, types, only, rates, deviation, seed):
    # Real words among the arbitrary ones; a pool's f32 constants are finite.
    kinds = np.random.default_rng(types).choice([PTX, CONSTANT, word(CONSTANT, U32), RETURN, 77], pool.shape, p=[0.4, 0.3, 0.1, 0.02, 0.18])
    pool = pool & np.uint64(0xBFFFFFFF_00000000) | kinds.astype(np.uint64)
    variation = make(
        only=only,
        umad_addition_rate=rates[0],
        umad_deletion_rate=rates[1],
        alternation_rate=rates[2],
        perturbation_rate=rates[3],
        replacement_rate=rates[4],
        alignment_deviation=deviation,
        perturbation_relative=deviation,
    )
    words, parents, operators = variation.offspring(seed, 3, 5, 40, pool)
    assert_valid(words)
    assert ((parents[:, 0] >= 0) & (parents < len(pool)).all(axis=1)).all()
    two = np.isin(operators, (ALTERNATION, CROSSOVER))
    np.testing.assert_array_equal(parents[:, 1] >= 0, two)
    lengths = program_lengths(words)
    for child, n, rows, operator in zip(words, lengths, parents, operators, strict=True):
        if operator in (ALTERNATION, CROSSOVER):
            known = set(pool[rows].ravel().tolist())
            assert set(child[:n].tolist()) <= known


@given(
    split=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    first_slot=st.integers(0, 2**32 - 400),
    generation=st.integers(0, 2**32 - 1),
    seed=st.integers(0, 2**64 - 1),
)
def test_batches_can_be_split_anywhere(split, first_slot, generation, seed):
    variation = make()
    pool = variation.random_programs(1, 0, 0, 30, 48)
    whole = variation.offspring(seed, generation, first_slot, sum(split), pool)
    whole_programs = variation.random_programs(seed, generation, first_slot, sum(split), 48)
    start = 0
    for count in split:
        part = variation.offspring(seed, generation, first_slot + start, count, pool)
        for some, every in zip(part, whole, strict=True):
            np.testing.assert_array_equal(some, every[start : start + count])
        programs = variation.random_programs(seed, generation, first_slot + start, count, 48)
        np.testing.assert_array_equal(programs, whole_programs[start : start + count])
        start += count


def test_seed_generation_and_slot_each_change_the_offspring():
    variation = make()
    pool = variation.random_programs(1, 0, 0, 30, 48)
    base = variation.offspring(1, 1, 0, 50, pool)[0]
    for other in ((2, 1, 0), (1 + 2**32, 1, 0), (1, 2, 0), (1, 1, 50)):
        assert not (variation.offspring(*other, 50, pool)[0] == base).all(axis=1).any()


def test_threads_share_one_variation():
    variation = make()
    pool = variation.random_programs(1, 0, 0, 200, 64)
    whole, _, _ = variation.offspring(1, 1, 0, 6400, pool)
    with ThreadPoolExecutor(4) as executor:
        parts = list(executor.map(lambda slot: variation.offspring(1, 1, slot, 100, pool)[0], range(0, 6400, 100)))
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_pool_may_be_read_only_or_strided():
    variation = make()
    pool = variation.random_programs(1, 0, 0, 20, 64)
    pool.flags.writeable = False
    whole, _, _ = variation.offspring(1, 1, 0, 50, pool)
    strided = np.repeat(pool, 2, axis=0)[::2]
    np.testing.assert_array_equal(variation.offspring(1, 1, 0, 50, strided)[0], whole)


def test_empty_batches_are_empty():
    variation = make()
    pool = variation.random_programs(1, 0, 0, 2, 64)
    assert variation.random_programs(1, 0, 0, 0, 64).shape == (0, 64)
    words, parents, operators = variation.offspring(1, 1, 0, 0, pool)
    assert words.shape == (0, 64) and parents.shape == (0, 2) and operators.shape == (0,)


# ---- mistakes ----


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entries": [(RETURN, 1.0, Draw.LITERAL, (0, 0))]}, "vocabulary entry 0: word 0x000000000000000a"),
        ({"entries": [*ENTRIES, (word(PTX), -1.0, Draw.LITERAL, (0, 0))]}, "vocabulary entry 1: weight -1.0"),
        ({"entries": [(word(PTX), float("nan"), Draw.LITERAL, (0, 0))]}, "vocabulary entry 0: weight nan"),
        ({"entries": [(word(PTX), 0.0, Draw.LITERAL, (0, 0))]}, "vocabulary: no word has a weight above 0"),
        ({"entries": [(word(PTX), 1.0, 9, (0, 0))]}, "with draw 9"),
        ({"entries": [(word(PTX), 1.0, Draw.GAUSSIAN, (0, 1))]}, "with draw GAUSSIAN and params (0.0, 1.0)"),
        ({"operator_weights": (1.0,)}, "operator_weights: (1.0,), expected a number of at least 0 for each of umad, alternation"),
        ({"operator_weights": (0.0,) * 5}, "one of them above 0"),
        ({"umad_addition_rate": 0.0}, "umad_addition_rate: 0.0, expected a number above 0 to 1"),
        ({"umad_deletion_rate": float("nan")}, "umad_deletion_rate: nan, expected a number from 0 to 1"),
        ({"alternation_rate": 1.5}, "alternation_rate: 1.5, expected a number above 0 to 1"),
        ({"alignment_deviation": -1.0}, "alignment_deviation: -1.0, expected a number from 0"),
        ({"perturbation_relative": 0.0, "perturbation_absolute": 0.0}, "both are 0"),
        ({"initial_min_length": 41}, "initial_min_length: 41, expected an integer from 0 to 40"),
        ({"unsigned_stacks": 1}, "a stack is in more than one of them"),
    ],
)
def test_wrong_vocabularies_and_options_are_named(changes, message):
    with pytest.raises(ValueError) as error:
        make(**changes)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v, pool: v.offspring(1, 1, 0, 1, pool[:0]), "pool: is empty"),
        (lambda v, pool: v.offspring(1, 1, 0, 1, pool.astype(np.int64)), "pool: expected uint64 of shape (rows, max_length), got int64"),
        (lambda v, pool: v.offspring(1, 1, 0, 1, pool[0]), "pool: expected uint64 of shape (rows, max_length), got uint64 of shape (64,)"),
        (lambda v, pool: v.offspring(-1, 1, 0, 1, pool), "seed: -1, expected an integer from 0 to 18446744073709551615"),
        (lambda v, pool: v.offspring(1, 2**32, 0, 1, pool), "generation: 4294967296"),
        (lambda v, pool: v.offspring(1, 1, 2**32 - 1, 2, pool), "num_offspring: 2, expected an integer from 0 to 1"),
        (lambda v, pool: v.random_programs(1, 0, 0, 1, 39), "initial programs of up to 40 words do not fit into a max_length of 39"),
        (lambda v, pool: draw_indices(1, 0, 99, 0, 1, 5), "stream: 99"),
        (lambda v, pool: draw_indices(1, 0, 0, 0, 1, 0), "bound: 0"),
    ],
)
def test_wrong_calls_are_named(call, message):
    variation = make()
    with pytest.raises(ValueError) as error:
        call(variation, variation.random_programs(1, 0, 0, 2, 64))
    assert message in str(error.value)


def test_wrong_shapes_are_named():
    words = np.array([word(PTX)], np.uint64)
    with pytest.raises(ValueError, match=r"vocabulary params: expected float64 of shape \(1, 2\), got float64 of shape \(2,\)"):
        Variation(words, np.ones(1), np.zeros(1, np.uint32), np.zeros(2), SimpleNamespace(**OPTIONS))
