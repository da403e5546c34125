"""Functions in CUDA C and PTX, against the emulator, which was written from the PTX ISA alone: a kernel there calls them."""

import struct

import numpy as np
import pytest
from emulated_gpu.ptx_machine import launch
from emulated_gpu.ptx_memory import Memory
from emulated_gpu.ptx_text import Module
from unit.emulator.ptx_cases import apply

from evo.approximation.bits import ExactFunction
from evo.approximation.certificate import check_certificate
from evo.approximation.exact import certified_exact, exact_language
from evo.approximation.nodes import program_text
from evo.approximation.ptx_function import PtxFunction
from evo.approximation.samples import sample
from evo.approximation.synthesis import synthesized
from evo.approximation.translation import translated
from evo.errors import UserError
from evo.kernel import nvrtc
from evo.language.program import parse_program
from evo.native.ptx_vm import VirtualMachine

# A function f each, and how a kernel writes what it gives for words a and b to the words of r.
FUNCTIONS = {
    "assembly": (
        """uint4 f(unsigned q, unsigned s) {
            uint4 r;
            asm("lop3.b32 %0, %1, 0x000f000f, 0x64006400, 0xea;" : "=r"(r.x) : "r"(q));
            asm("{ .reg .b32 t; prmt.b32 t, %1, %2, 0x5170; sub.f16x2 %0, t, %2; }" : "=r"(r.y) : "r"(q), "r"(0x64006400));
            asm("{ .reg .b32 t; mul.bf16x2 t, %1, %2; fma.rn.f16x2 %0, t, %2, %1; }" : "=r"(r.z) : "r"(q), "r"(s));
            asm("{ .reg .b16 l, h; mov.b32 {l, h}, %1; mov.b32 %0, {h, l}; }" : "=r"(r.w) : "r"(s));
            return r; }""",
        "uint4 v = f(a, b); r[0] = v.x; r[1] = v.y; r[2] = v.z; r[3] = v.w;",
    ),
    "branches": (
        """unsigned f(int a, unsigned b) {
            switch (b & 7) {
                case 0: return a / 10 + b % 7;
                case 1: if (a > 3) return __popc(a) + __clz(b); return max(a, -5);
                case 2: return a >> (b >> 8 & 31);
                case 3: return __brev(b) ^ __ffs(a);
                case 4: if (b >> 31) return 0xdeadbeef; break;
                case 5: return __byte_perm(a, b, b >> 3);
            }
            return __funnelshift_r(a, b, b >> 5); }""",
        "r[0] = f(a, b);",
    ),
    "floats": (
        """unsigned f(float x, float y) {
            unsigned c = (unsigned)(x * 2.0f) + (int)rintf(y) + (x < y) + 2 * (x != y) + 4 * !(x >= y) + 8 * isnan(x);
            return c ^ __float_as_uint(fmaf(x, y, fminf(x, 3.0f)) - 1e-3f); }""",
        "r[0] = f(__uint_as_float(a), __uint_as_float(b));",
    ),
    "integers": (
        """uint2 f(unsigned a, unsigned b) {
            unsigned long long p = (unsigned long long)a * b + 12345;
            long long t = (long long)(int)a + (int)b;
            t = t > 2147483647 ? 2147483647 : t < -2147483648LL ? -2147483648LL : t;
            short s = (short)a * (short)b;
            unsigned d = (unsigned)t - __umulhi(a, b) + __usad(a, b, 7);
            return make_uint2((unsigned)(p >> 29) + (unsigned char)a * 3 + s, d); }""",
        "uint2 v = f(a, b); r[0] = v.x; r[1] = v.y;",
    ),
    "fields": (
        """void f(unsigned a, unsigned b, unsigned (&y)[3]) {
            unsigned t;
            asm("bfe.u32 %0, %1, 5, 9;" : "=r"(y[0]) : "r"(a));
            asm("bfe.s32 %0, %1, %2, 12;" : "=r"(t) : "r"(a), "r"(b & 63));
            asm("bfi.b32 %0, %1, %2, 7, 20;" : "=r"(y[1]) : "r"(t), "r"(b));
            asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(y[2]) : "r"(a), "r"(b), "r"(a));
            y[2] += y[0]; }""",
        "f(a, b, *(unsigned(*)[3])r);",
    ),
    "stores": (
        """void f(unsigned a, unsigned short* low, unsigned* other) {
            low[0] = a >> 3; low[1] = a; other[0] = a * 7;
            if (a & 1) other[0] += 3; }""",
        "f(a, (unsigned short*)r, r + 1);",
    ),
    "conversions": (
        """unsigned f(float x, unsigned q) {
            unsigned short h, b; unsigned p, e, s;
            asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
            asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b) : "f"(x));
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(x), "f"(__uint_as_float(q)));
            asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(e) : "f"(x), "f"(__uint_as_float(q)));
            asm("{ .reg .s16 t; cvt.sat.s16.s32 t, %1; cvt.u32.s16 %0, t; }" : "=r"(s) : "r"(q));
            return h + b * 3 + (p ^ e) + s + (unsigned)(q * 3.5f); }""",
        "r[0] = f(__uint_as_float(a), b);",
    ),
}
KERNEL = """
extern "C" __global__ void kernel(const unsigned* as, const unsigned* bs, unsigned* rs) {{
    unsigned a = as[threadIdx.x], b = bs[threadIdx.x], *r = rs + {num} * threadIdx.x;
    {call}
}}
"""
THREADS = 1024


@pytest.fixture
def function(request, tmp_path):
    path = tmp_path / "functions.cu"
    path.write_text(FUNCTIONS[request.param][0])
    return request.param, ExactFunction(str(path))


def emulated(name: str, words: list[np.ndarray], num_outputs: int) -> np.ndarray:
    """Words that the kernel writes, `(num_points, num_outputs)`."""
    source, call = FUNCTIONS[name]
    text = f"__device__ {source}{KERNEL.format(num=num_outputs, call=call)}"
    module = Module(nvrtc.compile(text.encode(), "kernel.cu", {}, ["--gpu-architecture=compute_90", "--fmad=false"]).decode())
    given, results = [*words, words[0]][:2], []
    for first in range(0, len(words[0]), THREADS):
        part = [np.ascontiguousarray(each[first : first + THREADS]) for each in given]
        out = np.zeros((len(part[0]), num_outputs), np.uint32)
        arrays = [*part, out]
        parameters = struct.pack("<3Q", *(each.ctypes.data for each in arrays))
        launch(module, "kernel", (1,), (len(out),), parameters, Memory.of_arrays(*arrays))
        results.append(out)
    return np.concatenate(results)


@pytest.mark.parametrize("function", FUNCTIONS, indirect=True)
def test_a_function_computes_what_a_kernel_with_it_does(function):
    name, function = function
    words = sample(function, 1 << 12, 3)
    results = np.stack(function(*words), axis=1)
    np.testing.assert_array_equal(results, emulated(name, words, len(function.outputs)))


# With %d for the result: its type, and those of the operands.
INSTRUCTIONS = {
    "add.sat.s32 %d, %a, %b": "s32 s32 s32",
    "abs.s32 %d, %a": "s32 s32",
    "neg.s16 %d, %a": "s16 s16",
    "mul.hi.s16 %d, %a, %b": "s16 s16 s16",
    "mul.wide.s16 %d, %a, %b": "s32 s16 s16",
    "mad.wide.u16 %d, %a, %b, %c": "u32 u16 u16 u32",
    "mad.lo.u16 %d, %a, %b, %c": "u16 u16 u16 u16",
    "mul.hi.s32 %d, %a, %b": "s32 s32 s32",
    "mad.hi.u32 %d, %a, %b, %c": "u32 u32 u32 u32",
    "sad.s32 %d, %a, %b, %c": "u32 s32 s32 u32",
    "dp4a.u32.u32 %d, %a, %b, %c": "u32 u32 u32 u32",
    "dp4a.s32.s32 %d, %a, %b, %c": "s32 s32 s32 s32",
    "shl.b16 %d, %a, %b": "b16 b16 u32",
    "shr.s16 %d, %a, %b": "s16 s16 u32",
    "shl.b32 %d, %a, %b": "b32 b32 u32",
    "shr.s32 %d, %a, %b": "s32 s32 u32",
    "shr.u32 %d, %a, %b": "u32 u32 u32",
    "shf.r.wrap.b32 %d, %a, %b, %c": "b32 b32 b32 u32",
    "prmt.b32 %d, %a, %b, %c": "b32 b32 b32 b32",
    "prmt.b32.rc8 %d, %a, %b, %c": "b32 b32 b32 b32",
    "bfe.u32 %d, %a, %b, %c": "u32 u32 u32 u32",
    "bfe.s32 %d, %a, %b, %c": "s32 s32 u32 u32",
    "bfi.b32 %d, %a, %b, %c, 9": "b32 b32 b32 u32",
    "clz.b32 %d, %a": "u32 b32",
    "bfind.u32 %d, %a": "u32 u32",
    "bfind.shiftamt.u32 %d, %a": "u32 u32",
    "lop3.b32 %d, %a, %b, %c, 0x2d": "b32 b32 b32 b32",
    "min.s16 %d, %a, %b": "s16 s16 s16",
    **{f"setp.{name}.s32 %d, %a, %b": "pred s32 s32" for name in ("eq", "ne", "lt", "ge")},
    **{f"setp.{name}.u32 %d, %a, %b": "pred u32 u32" for name in ("lo", "ls", "hi", "hs")},
    **{f"setp.{name}.f32 %d, %a, %b": "pred f32 f32" for name in "eq ne lt le gt ge equ neu ltu leu gtu geu num nan".split()},
    **{f"setp.{name}.f16 %d, %a, %b": "pred b16 b16" for name in ("lt", "neu")},
    **{
        f"cvt.{name}.{to}.f32 %d, %a": f"{to} f32" for name in ("rni", "rzi", "rmi", "rpi") for to in ("s32", "u32", "s16", "u16")
    },
    "cvt.rzi.f32.f32 %d, %a": "f32 f32",
    "cvt.rn.f32.s32 %d, %a": "f32 s32",
    "cvt.rn.f32.u16 %d, %a": "f32 u16",
    "cvt.rn.f16.s32 %d, %a": "b16 s32",
    "cvt.rzi.s16.f16 %d, %a": "s16 b16",
    "cvt.sat.s16.u32 %d, %a": "s16 u32",
    "cvt.sat.u16.s32 %d, %a": "u16 s32",
    "cvt.s32.s16 %d, %a": "s32 s16",
    "cvt.s32.s8 %d, %a": "s32 s32",
    "cvt.s8.s32 %d, %a": "s32 s32",
    "cvt.rn.bf16.f32 %d, %a": "b16 f32",
    **{f"{name}.f32 %d, %a, %b": "f32 f32 f32" for name in ("add", "sub.rn", "mul", "min", "max")},
    **{f"{name}.f16 %d, %a, %b": "b16 b16 b16" for name in ("add", "sub", "mul", "min", "max")},
    **{f"{name}.bf16x2 %d, %a, %b": "b32 b32 b32" for name in ("add.rn", "mul", "min", "max")},
    **{f"fma.rn.{kind} %d, %a, %b, %c": "b32 b32 b32 b32" for kind in ("f16x2", "bf16x2")},
    "abs.f16x2 %d, %a": "b32 b32",
    "neg.bf16x2 %d, %a": "b32 b32",
    "neg.f32 %d, %a": "f32 f32",
    "abs.f32 %d, %a": "f32 f32",
    "abs.bf16 %d, %a": "b16 b16",
}
EDGES = [0, 1, 2, 31, 32, 33, 127, 128, 255, 0x7FFF, 0x8000, 0xFFFF, 1 << 31, (1 << 31) - 1, 0xFFFFFFFF, 0x3F800000, 0xBFC00000]
EDGES += [0x3F000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00800000, 0x807FFFFF, 0x4F000000, 0xCF000000, 0x477FE000, 0x3C003C00]


@pytest.mark.parametrize("text", INSTRUCTIONS)
def test_an_instruction_computes_what_the_emulator_says(text, tmp_path):
    result, *kinds = INSTRUCTIONS[text].split()
    random = np.random.default_rng(len(text))
    words = [random.choice(np.array(EDGES, np.uint32), 900) for _ in kinds]
    words = [np.where(random.random(900) < 0.3, random.integers(0, 1 << 32, 900, np.uint32), each) for each in words]
    names = "abc"[: len(kinds)]
    lines = [f".reg .{kind} %{name}; ld.param.{kind} %{name}, [{name}];" for name, kind in zip(names, kinds, strict=True)]
    kept = "selp.u32 %w, 1, 0, %d;" if result == "pred" else f"cvt.u32.u{result[1:]} %w, %d;"
    kept = "mov.b32 %w, %d;" if result[1:] == "32" else kept
    given = ", ".join(f".param .b32 {name}" for name in names)
    body = f"{' '.join(lines)} .reg .{result} %d; .reg .b32 %w; {text}; {kept} st.param.b32 [r], %w; ret;"
    (tmp_path / "f.ptx").write_text(f".func (.param .b32 r) f({given})\n{{\n{body}\n}}\n")
    function = PtxFunction(str(tmp_path / "f.ptx"))
    cut = [each.astype(np.uint16) if kind[1:] == "16" else each for each, kind in zip(words, kinds, strict=True)]
    expected = apply(text, np.dtype(np.uint16 if result[1:] == "16" else np.uint32), result, *zip(kinds, cut, strict=True))
    np.testing.assert_array_equal(function(*words)[0], expected)


@pytest.mark.parametrize(
    ("name", "holds"), [("nan", lambda a, b: np.isnan(a) | np.isnan(b)), ("gt", np.greater), ("leu", np.less_equal)]
)
def test_a_comparison_of_halves_gives_ones_or_masks(name, holds, tmp_path):
    halves = np.array([0, 0x8000, 1, 0x3C00, 0xC000, 0x7C00, 0xFC00, 0x7E00, 0xFFFF], np.uint16)
    a, b = (each.ravel() for each in np.meshgrid(halves, halves))
    (tmp_path / "f.ptx").write_text(f"""
        .func (.param .align 8 .b8 r[8]) f(.param .b32 a, .param .b32 b) {{
            .reg .b32 %r<4>; ld.param.b32 %r0, [a]; ld.param.b32 %r1, [b];
            set.{name}.f16x2.f16x2 %r2, %r0, %r1; set.{name}.u32.f16x2 %r3, %r0, %r1;
            st.param.v2.b32 [r], {{%r2, %r3}}; ret;
        }}""")
    words = [(each | each[::-1].astype(np.uint32) << 16).astype(np.uint32) for each in (a, b)]
    expected = holds(a.view(np.float16), b.view(np.float16))
    if name == "leu":
        expected |= np.isnan(a.view(np.float16)) | np.isnan(b.view(np.float16))
    for result, one in zip(PtxFunction(str(tmp_path / "f.ptx"))(*words), (0x3C00, 0xFFFF), strict=True):
        np.testing.assert_array_equal(result, expected * one | (expected[::-1] * one).astype(np.uint32) << 16)


@pytest.mark.parametrize("function", ["assembly", "fields", "integers", "stores"], indirect=True)
def test_its_instructions_are_a_program(function):
    _, function = function
    language = exact_language(function)
    program = program_text(translated(function), function)
    words = sample(function, 1 << 12, 5)
    unused = [None] * len(function.outputs)
    found = VirtualMachine(language.lowering).store(parse_program(language, program, "test")[None], [*words, *unused])[0]
    for result, expected in zip(found.view(np.uint32), function(*words), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unsigned f(unsigned a) { return a + ; }", r"functions\.cu\(1\): error: expected an expression"),
        ("__global__ void k(unsigned* p) { *p = 1; }", "is a kernel, must be a device function"),
        ("unsigned f(unsigned a) { return a; } unsigned g(unsigned a) { return ~a; }", "FILE:NAME; the file has: f, g"),
        ("unsigned f(unsigned a) { while (a & 1) a = a * 3 ^ a >> 1; return a; }", "a loop that the compiler did not unroll"),
        ("float f(float x) { return __sinf(x); }", r"sin\.approx\.f32 is not known here"),
        ("unsigned f(unsigned a, unsigned b) { return a / b; }", r"'div\.u32 .*' is not known here"),
        ("unsigned f(unsigned a) { return a + threadIdx.x; }", "%tid.x, which is neither a register"),
        ("unsigned g(unsigned); unsigned f(unsigned a) { return g(a); }", "calls a function that the compiler did not inline"),
        ("void f(unsigned long long a, unsigned b, unsigned* y) { *y = a == 5 ? 1 : b * 3; }", "an integer of 64 bits beside"),
        ('unsigned f(unsigned a) { if (a == 7) asm volatile("exit;"); return a; }', "'exit' is not known here"),
        ("#warning hi\nunsigned f(unsigned a) { return zz; }", r"\(2\): error: identifier \"zz\" is undefined"),
        ("void f(unsigned a, unsigned* y) { y[a & 1] = a; }", "an address depends on inputs"),
        ("void f(unsigned a, unsigned* y) { if (a & 1) *y = a; }", "inputs at which it does not write each of its outputs"),
        ("__shared__ unsigned s; unsigned f(unsigned a) { s = a; return s; }", "neither a register of its own nor a number"),
        ("void f(unsigned a) {}", "it gives no result"),
        (None, "No such file"),
    ],
)
def test_what_is_no_function_of_words_is_refused(text, message, tmp_path):
    path = tmp_path / "functions.cu"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        ExactFunction(str(path))
    assert "\n" not in str(caught.value)


# Statements between z = x and the result z of words x and y, and what they make of these, or the message.
STATEMENTS = {
    "{.reg .b32 t1; mov.b32 t1, 4; {.reg .b32 t; mov.b32 t, x; add.u32 t1, t, t;} mov.b32 z, t1;}": lambda x, y: 2 * x,
    "{.reg.b32 z; mov.b32 z, 9;}": lambda x, y: x,
    ".reg .b32 t< 2 >; mov.b32 t1, y; mov.b32 z, t1;": lambda x, y: y,
    ".reg .b32 t<2>; mov.b32 t2, y; mov.b32 z, t2;": "uses t2, which is neither a register",
    ".reg .pred p<2>; setp.eq.u32 p0, x, 1; setp.lt.or.u32 p0|p1, x, y, p0; selp.b32 z, 1, 0, p1;": lambda x, y: (
        (x >= y) | (x == 1)
    ),
    ".reg .pred p; setp.lt.u32 p, x, y; @!p bra L; add.u32 z, z, 5; L: add.u32 z, z, 1;": lambda x, y: x + 5 * (x < y) + 1,
    "\n.loc 1 3 5\n add.u32 z, z, y;": lambda x, y: x + y,
    "{L: add.u32 z, z, 1;} {L: add.u32 z, z, 1;}": "label L stands in it twice",
    ".reg .pred p; setp.eq.u32 p, x, 1; @p bra L;": "label L is missing",
    "max.f32 z, x, y, 0f40000000;": "max.f32 is not known here",
    "max.s32 z, x, x, y;": "'max.s32 z, x, x, y' is not known here",
    "add.u32 z, x;": "'add.u32 z, x' is not known here",
    "mov.b32 z, x, y;": "'mov.b32 z, x, y' is not known here",
    "add.u16 z, x, y;": "x does not have type u16",
    "add.u32 z, x, 1_0;": "1_0 is not a number",
    "add.u32 z, x, 0x100000001;": "0x100000001 is beyond",
    "add.f32 z, x, 2;": "2 is not a number of type f32",
    "st.param.b32 [r+4], x;": "beyond the parameter",
    '.pragma "x";': "is not known here",
    "add.u16x2 z, x, y;": lambda x, y: (x + y & 0xFFFF) | ((x >> 16) + (y >> 16) & 0xFFFF) << 16,
    "min.s16x2 z, x, y;": lambda x, y: np.minimum(x.view(np.int16), y.view(np.int16)).view(np.uint32),
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements_mean_what_they_say_or_are_refused(text, tmp_path):
    path, expected = tmp_path / "f.ptx", STATEMENTS[text]
    path.write_text(f""".func (.param .b32 r) f(.param .b32 x, .param .b32 y) {{
        .reg .b32 x, y, z; ld.param.b32 x, [x]; ld.param.b32 y, [y]; mov.b32 z, x; {text} st.param.b32 [r], z; ret;
    }}""")
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            ExactFunction(str(path))
        return
    x, y = (
        each.ravel().astype(np.uint32)
        for each in np.meshgrid([0, 1, 2, 7, 0x8000FFFF, 0x00010001], [1, 3, 0x00020001, 0xFFFFFFFF])
    )
    np.testing.assert_array_equal(ExactFunction(str(path))(x, y)[0], np.asarray(expected(x, y)).astype(np.uint32))


def test_only_bytes_that_are_written_matter(tmp_path):
    path = tmp_path / "f.cu"
    path.write_text("void f(unsigned a, unsigned short* y) { y[1] = y[1] + 1; }\n")
    function = ExactFunction(str(path))
    assert (function.inputs, function.care) == (("a", "y"), (0xFFFF0000,))
    words = [np.array([each], np.uint32) for each in (5, 0x0007FFFF)]
    assert function(*words)[0][0] & 0xFFFF0000 == 0x00080000
    path.write_text("void f(unsigned a, unsigned short* y) { y[0] = a; y[1] = y[1] + 1; }\n")
    function = ExactFunction(str(path))
    assert function.care == (0xFFFFFFFF,) and function(*words)[0][0] == 0x00080005


def test_an_output_that_is_not_always_written_is_never_proven(tmp_path):
    path = tmp_path / "f.cu"
    path.write_text("void f(unsigned a, unsigned* y) { if (a != 0x12345678) *y = a ^ 0x55; }\n")
    function = ExactFunction(str(path))
    language = exact_language(function)
    words = parse_program(language, "0:b32 0x55:b32 %a lop3_3c", "test")
    with pytest.raises(UserError, match="inputs at which it does not write each of its outputs"):
        certified_exact(language, words, function, target="sm_90")


def test_distances_of_bytes_are_known(tmp_path):
    path = tmp_path / "distances.cu"
    path.write_text("unsigned f(unsigned a, unsigned b) { return __vabsdiffu4(a, b); }\n")
    words = np.random.default_rng(5).integers(0, 1 << 32, (2, 256), dtype=np.uint32)
    distances = np.abs(np.subtract(*words.view(np.uint8).astype(int))).astype(np.uint8).view(np.uint32)
    np.testing.assert_array_equal(ExactFunction(str(path))(*words)[0], distances)


def test_parameters_are_named_and_typed_as_in_the_source(tmp_path):
    path = tmp_path / "functions.cu"
    path.write_text(
        "#include <cuda_fp16.h>\n#include <stdint.h>\n#include <cstdint>\n"
        "half2 f(half2 x, float scale, const uint32_t* q) { static_assert(sizeof(int64_t) == 8); return __hmul2(x, x); }\n"
    )
    function = ExactFunction(f"{path}:f")
    assert (function.inputs, function.types) == (("x", "scale"), ("f16x2", "f32"))
    path.write_text("void f(uint2 q, const unsigned* table, unsigned* y) { *y = q.x + table[1]; }\n")
    function = ExactFunction(str(path))
    assert (function.inputs, function.types) == (("q_0", "q_1", "table"), ("u32",) * 3)
    numbers = [np.array([each], np.uint32) for each in (5, 0, 7)]
    assert function(*numbers)[0] == 12


def test_a_cheaper_program_is_found_and_proven(tmp_path, monkeypatch):
    monkeypatch.setattr("evo.approximation.synthesis.MOST_GOALS", 30)
    monkeypatch.setattr("evo.approximation.synthesis.MOST_THOROUGH", 3)
    path = tmp_path / "functions.cu"
    path.write_text("unsigned f(unsigned q) { return (q & 15) * 16 + (q >> 12 & 15) + (q & 0xf00) / 256 * 65536; }\n")
    function = ExactFunction(str(path))
    [program, *_] = synthesized(function, "sm_90", 1)
    language = exact_language(function)
    found = certified_exact(language, parse_program(language, program, "test"), function, target="sm_90")
    assert (found.method, found.function, found.slots) == ("every input, in parts", "functions.cu:f", 8.0)
    certificate, other = tmp_path / "proof.json", tmp_path / "other"
    certificate.write_text(found.text())
    assert check_certificate(certificate, code=str(path)) == found
    other.mkdir()
    (other / "functions.cu").write_text("unsigned f(unsigned q) { return q * 2; }\n")
    for code in (None, str(tmp_path / "functions.ptx"), str(other / "functions.cu")):
        with pytest.raises(UserError):
            check_certificate(certificate, code=code)
