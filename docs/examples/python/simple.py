"""Stack PTX from a program to its stub: z = x * y + 1. Prints ../expected/simple.txt."""

from evo import stack_ptx

words = stack_ptx.Words()  # of the default instruction set
I = words.instructions

# Registers that exist around the stub, by their bare names: x is %x in PTX.
r = words.registers(x="f32", y="f32", z="f32")

# A program's registers, and those that its stub writes, each from the top of its stack.
compiler = stack_ptx.Compiler(r, requests=[r.z])

# The top of the stack is an instruction's first operand; a Python float is an f32 constant.
print(compiler.compile([r.x, r.y, I.mul_ftz_f32, 1.0, I.add_ftz_f32]))
