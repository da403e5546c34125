"""AST PTX from an expression to its stub and to its value: z = x * y + 1. Prints simple.txt."""

from evo.ast_ptx import AstPTX, I

# Registers that exist around the stub, by their bare names: x is %x in PTX.
ast = AstPTX(inputs=["x", "y"], output="z")
r = ast.registers

# Postorder: operands, in their order, before their instruction.
program = [r.x, r.y, I.mul_ftz_f32, 1.0, I.add_ftz_f32]
print(ast.compile(program))
print(f"at x = 3, y = 4: {ast.interpret(program, {'x': 3.0, 'y': 4.0}):g}")
