"""A thread's place in the grid: i = ctaid.x * ntid.x + tid.x, and the sum of all parts of %tid.

%tid is a vector: it pushes its four elements, the last one on top. Prints ../expected/special_registers.txt.
"""

from evo import stack_ptx

words = stack_ptx.Words()
I, special = words.instructions, words.special
r = words.registers(i="u32", sum="u32")
compiler = stack_ptx.Compiler(r, requests=[r.i, r.sum])

sum_of_parts = [special.tid, I.add_u32, I.add_u32, I.add_u32]
index = [special.tid_x, special.ntid_x, special.ctaid_x, I.mad_lo_u32]
print(compiler.compile([*sum_of_parts, *index]))
