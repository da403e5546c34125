"""The law of each operator: expected values come from its published definition, never from vary.h."""

import numpy as np
from scipy import stats

from evo.language.program import word
from evo.native.stack_ptx_words import WordType
from evo.native.vary import OPERATORS, Draw, program_lengths

F32, U32, S32 = 0, 1, 2
ADDITION, DELETION = 0.09, 0.0826  # the default rates of UMAD in these tests
# A vocabulary of one word.
NEW = word(WordType.PTX, 0, 999_999)
ENTRIES = [(NEW, 1.0, Draw.LITERAL, (0, 0))]


def payloads(words):
    return (words >> np.uint64(32)).astype(np.int64)


def floats(words):
    return (words >> np.uint64(32)).astype(np.uint32).view(np.float32)


def test_parents_are_even_over_the_pool_and_never_the_same_row(make, distinct_programs, assert_chi_square):
    pool = distinct_programs(7, 10, 16)
    _, parents, _ = make(only="crossover").offspring(5, 1, 0, 40_000, pool)
    counts = np.zeros((7, 7), int)
    np.add.at(counts, (parents[:, 0], parents[:, 1]), 1)
    assert np.trace(counts) == 0
    assert_chi_square(counts[~np.eye(7, dtype=bool)], np.ones(42))


def test_operators_are_drawn_by_weight(make, row, assert_chi_square):
    weights = {"umad": 0.5, "alternation": 0.1, "perturbation": 0.3, "replacement": 0.1}
    pool = np.array([row([word(WordType.CONSTANT, F32, 0x3F800000)] * 8, 16)] * 4)
    _, _, operators = make(operator_weights=weights).offspring(6, 1, 0, 40_000, pool)
    counts = np.bincount(operators, minlength=len(OPERATORS))
    drawn = [OPERATORS.index(name) for name in weights]
    assert counts[drawn].sum() == counts.sum()
    assert_chi_square(counts[drawn], list(weights.values()))


def test_umad_adds_and_deletes_at_its_rates(make, distinct_programs, assert_binomial, assert_chi_square):
    length, num = 64, 20_000
    pool = distinct_programs(3, length, 160)
    words, parents, _ = make(ENTRIES, only="umad").offspring(8, 1, 0, num, pool)
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


def test_alternation_switches_at_its_rate_and_place(make, distinct_programs, assert_binomial):
    length, rate = 500, 0.05
    pool = distinct_programs(2, length, 512)
    words, parents, _ = make(only="alternation", alternation_rate=rate, alternation_deviation=0.0).offspring(12, 1, 0, 400, pool)
    assert (program_lengths(words) == length).all()
    source, place = np.divmod(payloads(words[:, :length]), 10_000)
    assert (place == np.arange(length)).all()
    # Between two words the number of switches is geometric; an odd one shows: r / (1 + r).
    assert_binomial((np.diff(source, axis=1) != 0).sum(), source.size - len(source), rate / (1 + rate))
    assert_binomial((source[:, 0] == parents[:, 0]).sum(), len(source), 1 / (1 + rate))


def test_alternation_shifts_by_a_rounded_gaussian(make, distinct_programs, assert_chi_square):
    length, deviation = 4000, 10.0
    pool = distinct_programs(2, length, length)
    words, _, _ = make(only="alternation", alternation_rate=0.002, alternation_deviation=deviation).offspring(13, 1, 0, 400, pool)
    shifts = []
    for child, n in zip(words, program_lengths(words), strict=True):
        source, place = np.divmod(payloads(child[:n]), 10_000)
        step = place[1:] - (place[:-1] + 1)
        inside = place[:-1] > 100  # clear of the beginning, where positions are cut at zero
        assert (step[source[1:] == source[:-1]] == 0).mean() > 0.999  # except for two switches in a row
        shifts.append(step[(source[1:] != source[:-1]) & inside])
    shifts = np.concatenate(shifts)
    assert len(shifts) > 2000
    edges = np.arange(-25, 26, 5) + 0.5
    expected = np.diff(np.concatenate([[0.0], stats.norm.cdf(edges / deviation), [1.0]]))
    assert_chi_square(np.bincount(np.searchsorted(edges, shifts), minlength=len(expected)), expected)


def test_crossover_takes_each_common_place_from_either_parent_evenly(make, distinct_programs, assert_binomial, assert_chi_square):
    pool = np.concatenate([distinct_programs(2, 50, 80), distinct_programs(3, 70, 80)[2:]])
    words, parents, _ = make(only="crossover").offspring(15, 1, 0, 20_000, pool)
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
    # Neighbours are independent.
    assert_binomial((from_second[everywhere, :49] == from_second[everywhere, 1:50]).sum(), everywhere.sum() * 49, 0.5)
    counts = from_second[everywhere, :50].sum(axis=0)
    assert_chi_square(np.column_stack([counts, everywhere.sum() - counts]).ravel(), np.ones(100))


def test_replacement_replaces_at_its_rate_and_at_least_one(make, distinct_programs, assert_chi_square):
    length = 60
    pool = distinct_programs(2, length, 64)
    words, parents, _ = make(ENTRIES, only="replacement", replacement_rate=0.05).offspring(16, 1, 0, 10_000, pool)
    replaced = words[:, :length] == NEW
    assert (program_lengths(words) == length).all()
    counts = replaced.sum(axis=1)
    none = 0.95**length
    expected = stats.binom.pmf(np.arange(9), length, 0.05)
    expected[1] += none
    expected[0] = 0.0
    assert (counts >= 1).all()
    assert_chi_square(np.bincount(np.minimum(counts, 9), minlength=10)[1:], np.append(expected[1:], 1 - expected.sum()))
    assert (words[:, :length] == pool[parents[:, 0], :length])[~replaced].all()


def test_perturbed_constants_are_gaussian_around_their_value(make, row, assert_binomial, assert_law):
    value, others = 2.0, 30
    constant = word(WordType.CONSTANT, F32, int(np.float32(value).view(np.uint32)))
    pool = np.array([row([word(WordType.PTX, 0, i) for i in range(others)] + [constant] * 20, 64)])
    words, _, _ = make(only="perturbation").offspring(17, 1, 0, 4000, pool)
    np.testing.assert_array_equal(words[:, :others], np.broadcast_to(pool[0, :others], (4000, others)))
    values = floats(words[:, others : others + 20])
    changed = values != value
    assert (changed.sum(axis=1) >= 1).all()
    assert_binomial(changed.sum(), changed.size, 0.3)  # P(none of 20) is 8e-4
    deviation = 0.1 * value + 0.2
    assert_law((values[changed].astype(np.float64) - value) / deviation, stats.norm.cdf)


def test_perturbed_integers_move_by_at_least_one_and_stay_in_range(make, row, assert_binomial, assert_law):
    unsigned_words = [word(WordType.CONSTANT, U32, v) for v in (0, 1, 1000, 2**32 - 1)]
    signed_words = [word(WordType.CONSTANT, S32, v) for v in (0, 2**31, 2**31 - 1)]
    pool = np.array([row(unsigned_words + signed_words, 8)])
    words, _, _ = make(only="perturbation", perturbation_rate=1.0).offspring(18, 1, 0, 4000, pool)
    unsigned = payloads(words[:, :4])
    assert (unsigned != payloads(pool[0, :4])).all()
    assert unsigned.min() >= 0 and unsigned.max() < 2**32
    steps = unsigned[:, 2] - 1000
    # A magnitude of |z| (0.1 * 1000 + 0.2), up to the next whole step.
    magnitude = (np.abs(steps) - 1) / 100.2
    assert_law(magnitude + np.random.default_rng(0).random(4000) / 100.2, stats.halfnorm.cdf)
    assert_binomial((steps > 0).sum(), 4000, 0.5)
    signed = payloads(words[:, 4:7]).astype(np.uint32).view(np.int32).astype(np.int64)
    assert (signed[:, 1] > -(2**31)).all() and (signed[:, 2] < 2**31 - 1).all() and (signed[:, 0] != 0).all()
