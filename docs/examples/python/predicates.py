"""A comparison and a choice: z = x < y ? x : y. Predicates have their own stack. Prints ../expected/predicates.txt."""

from evo import stack_ptx

words = stack_ptx.Words()
I = words.instructions
r = words.registers(x="f32", y="f32", z="f32")
compiler = stack_ptx.Compiler(r, requests=[r.z])

# selp pops x and y off the f32 stack and the comparison off the pred stack.
print(compiler.compile([r.y, r.x, I.setp_lt_ftz_f32, r.y, r.x, I.selp_f32]))
