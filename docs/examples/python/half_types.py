"""Two f16 in one register: sum = low + high of `pair`, as f32.

f16x2_to_v2_f16 has two results; the first (low) is popped first. Prints ../expected/half_types.txt.
"""

from evo import stack_ptx

words = stack_ptx.Words()
I = words.instructions
r = words.registers(pair="f16x2", sum="f32")
compiler = stack_ptx.Compiler(r, requests=[r.sum])

print(compiler.compile([r.pair, I.f16x2_to_v2_f16, I.f16_to_f32, I.f16_to_f32, I.add_ftz_f32]))
