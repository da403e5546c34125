"""A word list that programs call: z = x * x + y * y. A routine works on the same stacks as its caller.

Prints ../expected/routines.txt.
"""

from evo import stack_ptx

words = stack_ptx.Words()
I, meta = words.instructions, words.meta
r = words.registers(x="f32", y="f32", z="f32")

square = [meta.dup("f32"), I.mul_ftz_f32]
SQUARE = words.routine(0)

compiler = stack_ptx.Compiler(r, requests=[r.z], routines=[square])
print(compiler.compile([r.x, SQUARE, r.y, SQUARE, I.add_ftz_f32]))
