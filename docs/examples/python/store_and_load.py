"""Store entries for values that are used again: s = x + y, z = s * s - x.

A load needs no type: a store entry knows which stack its value came from. Prints ../expected/store_and_load.txt.
"""

from evo import stack_ptx

words = stack_ptx.Words()
I = words.instructions
r = words.registers(x="f32", y="f32", z="f32")
compiler = stack_ptx.Compiler(r, requests=[r.z])

ENTRY = 0
s = [r.y, r.x, I.add_ftz_f32, words.store("f32", ENTRY)]
print(compiler.compile([*s, r.x, words.load(ENTRY), words.load(ENTRY), I.mul_ftz_f32, I.sub_ftz_f32]))
