"""Moves values on a stack. A meta instruction emits no PTX; it decides what later ones work on.

Each program puts a, b, c, d on the stack (d is on top), does one thing, and takes the top three off again: into first, second
and third. Prints ../expected/meta_instructions.txt.
"""

from evo import stack_ptx

words = stack_ptx.Words()
meta, depth = words.meta, words.meta_constant
r = words.registers(dict.fromkeys(["a", "b", "c", "d", "first", "second", "third"], "f32"))
compiler = stack_ptx.Compiler(r, requests=[r.first, r.second, r.third])

# A depth or count comes from the meta stack; 0 is the top.
EXAMPLES = {
    "dup": [meta.dup("f32")],
    "yank_dup 2": [depth(2), meta.yank_dup("f32")],
    "swap": [meta.swap("f32")],
    "swap_with 2": [depth(2), meta.swap_with("f32")],
    "replace 2": [depth(2), meta.replace("f32")],
    "drop 1": [depth(1), meta.drop("f32")],
    "clear": [meta.clear("f32"), r.a],
    "rotate": [meta.rotate("f32")],
    "reverse": [meta.reverse("f32")],
}

for name, operation in EXAMPLES.items():
    print(name)
    print(compiler.compile([r.a, r.b, r.c, r.d, *operation]))
