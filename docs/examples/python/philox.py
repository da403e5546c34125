"""Random numbers from a counter: Philox 2x32-10, ten calls of a routine. u is uniform in [0, 1]; state counts on.

The generator's words have their own stack, so that a search never mixes them with other numbers. The
algorithm is that of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011). Prints ../expected/philox.txt.
"""

from evo import stack_ptx

words = stack_ptx.Words()
I = words.instructions
philox, load = words.constants.philox, words.load
r = words.registers(state="philox", u="f32")

MULTIPLIER, WEYL, SEED = 0xD256D193, 0x9E3779B9, 12345
KEY, LEFT, RIGHT = range(3)  # store entries


def store(entry):
    """The word that pops a generator's word into a store entry."""
    return words.store("philox", entry)


# left, right, key = high(left * MULTIPLIER) ^ key ^ right, low(left * MULTIPLIER), key + WEYL
philox_round = [
    *[philox(MULTIPLIER), load(LEFT), I.mul_lo_philox],
    *[philox(MULTIPLIER), load(LEFT), I.mul_hi_philox, load(KEY), I.xor_philox, load(RIGHT), I.xor_philox],
    *[store(LEFT), store(RIGHT)],
    *[philox(WEYL), load(KEY), I.add_philox, store(KEY)],
]
ROUND = words.routine(0)

program = [
    *[r.state, store(LEFT), philox(0), store(RIGHT), philox(SEED), store(KEY)],
    *[ROUND] * 10,
    *[load(LEFT), I.philox_to_u32, I.cvt_rn_f32_u32, 2.0**-32, I.mul_ftz_f32],
    *[philox(1), r.state, I.add_philox],
]
compiler = stack_ptx.Compiler(r, requests=[r.u, r.state], routines=[philox_round])
print(compiler.compile(program))
