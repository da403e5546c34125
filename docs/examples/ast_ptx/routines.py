"""AST PTX with routines, which are written out at each call: z = sqrt(x * x + y * y). Prints routines.txt."""

from evo.ast_ptx import Argument, AstPTX, I, Routine

a, b = Argument(0), Argument(1)
square = Routine("square", 1, [a, a, I.mul_ftz_f32])
distance = Routine("distance", 2, [a, square, b, square, I.add_ftz_f32, I.sqrt_approx_ftz_f32])

ast = AstPTX(inputs=["x", "y"], output="z", routines=[square, distance])
r = ast.registers
print(ast.compile([r.x, r.y, distance]))
