/*
 * ptx_inject.h - PTX Inject: named sites in a CUDA kernel that take other PTX after compilation.
 *
 * A *site* is marked in CUDA. The compiled PTX is read once into a handle, which tells the registers of the variables of each
 * name. Then a *stub*, PTX text over these registers, is put into every site, any number of times.
 *
 *     CUDA with sites -> nvcc or NVRTC -> PTX with markers -> ptx_inject_create -> handle
 *     handle + one stub for each name  -> ptx_inject_render_ptx -> PTX
 *
 * Marking a site
 *
 * The macro, wherever this header is included in device code:
 *
 *     float x = 5, y = 3, z;
 *     PTX_INJECT("func",
 *         PTX_IN (F32, x),           reads x
 *         PTX_MOD(F32, y),           reads and writes y
 *         PTX_OUT(F32, z)            writes z
 *     );
 *
 * or a comment, which ptx_inject_process_cuda (see there) turns into inline assembly before compilation. Either makes an
 * asm statement that is not volatile: the compiler may drop a site whose results are unused, move it out of a loop, and
 * copy it by inlining and unrolling. One name may occur many times; its sites must have the same variables and share one
 * stub.
 *
 * Usage on the host
 *
 *     #define PTX_INJECT_IMPLEMENTATION      in exactly one C or C++ file
 *     #include "ptx_inject.h"
 *
 *     PtxInjectHandle handle;
 *     ptx_inject_create(&handle, ptx);
 *     ptx_inject_inject_info_by_name(handle, "func", &inject_idx, NULL, NULL);
 *     ptx_inject_variable_info_by_name(handle, inject_idx, "x", NULL, &x, NULL, NULL, NULL);      "_x2": the register %_x2
 *     ...
 *     stubs[inject_idx] = "add.ftz.f32 %_x1, %_x2, %_x0;";
 *     ptx_inject_render_ptx(handle, stubs, num_injects, NULL, 0, &size);
 *     ptx_inject_render_ptx(handle, stubs, num_injects, malloc(size), size, &size);
 *     ptx_inject_destroy(handle);
 *
 * A stub may declare its own registers inside braces, with names other than the site's.
 *
 * Options, defined before this header is included
 *
 *     PTX_INJECT_DEBUG                 errors assert where they are found
 *     PTX_INJECT_STATIC                functions are static; each including file also defines PTX_INJECT_IMPLEMENTATION
 *     PTX_INJECT_MALLOC(size), PTX_INJECT_REALLOC(pointer, size), PTX_INJECT_FREE(pointer)
 *                                      replace those of stdlib.h; define all three or none
 *     PTX_INJECT_MAX_UNIQUE_INJECTS    limit on names; undefined: limited by memory
 *     PTX_INJECT_NO_DEFAULT_TYPES      the macro knows only types that you define (see PTX_TYPES_DESC)
 *     PTX_INJECT_ASM                   opens the macro's statement; default `asm`. Use `asm volatile` if stubs have effects
 *                                      other than their outputs, or read clocks
 *
 * Memory and threads
 *
 * ptx_inject_create and ptx_inject_create_with_types allocate; ptx_inject_destroy frees. ptx_inject_diagnose_ptx frees what it
 * allocates. No other function allocates. There is no global state. A handle never changes: any number of threads may query and render it at the
 * same time. Text arguments are C strings, not needed after the call. Results of queries live as long as the handle. No pointer
 * may be NULL unless its comment says so; a NULL gives PTX_INJECT_ERROR_INVALID_INPUT. Time is linear in the text, for each type in use.
 *
 * Markers, for programs that write inline assembly themselves
 *
 * The macro expands the example to this, with operands in the order mod, out, in. The registers are declared here, so that they
 * are the same at all sites; they may have other names, but not a compiler's (f1, r2, rd3, p1, SP, ...):
 *
 *     {
 *     .reg .f32 %_x0;
 *     mov.f32 %_x0, <y>;
 *     .reg .f32 %_x1;
 *     .reg .f32 %_x2;
 *     mov.f32 %_x2, <x>;
 *     // PTX_INJECT_START func
 *     // _x0 m f32 F32 y             register, m, o or i, its PTX type, data type, variable
 *     // _x1 o f32 F32 z
 *     // _x2 i f32 F32 x
 *     // PTX_INJECT_END
 *     mov.f32 <y>, %_x0;
 *     mov.f32 <z>, %_x1;
 *     }
 *
 * The comment makes only markers, and create puts the same registers and movs around the stub:
 *
 *     // PTX_INJECT_START func
 *     // <y> mod f32 y               operand, in, mod or out, data type, variable
 *     // <z> out f32 z
 *     // <x> in f32 x
 *     // PTX_INJECT_END
 *
 * A marker is the only thing on its line; inside a block comment it is ignored. A stub replaces everything from START to END.
 * Names of sites are made of letters, digits, _ and $; names of variables and types, of printable ASCII.
 *
 * Most of this header checks the two forms; each check reports the place and the reason of an error.
 */

#ifndef PTX_INJECT_H
#define PTX_INJECT_H

#define PTX_INJECT_VERSION_MAJOR 1
#define PTX_INJECT_VERSION_MINOR 1
#define PTX_INJECT_VERSION_PATCH 0
#define PTX_INJECT_VERSION (PTX_INJECT_VERSION_MAJOR * 10000 + PTX_INJECT_VERSION_MINOR * 100 + PTX_INJECT_VERSION_PATCH)
#define PTX_INJECT_VERSION_STRING "1.1.0"

/* ---- device side: the macro -------------------------------------------------------------------------------------- */

#if defined(__CUDACC__) || defined(__CUDA__)

/* PTX_INJECT(name, operands...);  a site. `name` is a string literal of letters, digits, _ and $; at most 64 operands.
   PTX_INJECT_TOK(name, operands...);  the same with a bare word as the name.
   Macros in all arguments are expanded first, so that one may stand for a name, a type or several operands. */
#define PTX_INJECT(...) PTX_INJECT__SITE(__VA_ARGS__, PTX_INJECT__LAST)
#define PTX_INJECT_TOK(...) PTX_INJECT__TOK(__VA_ARGS__, PTX_INJECT__LAST)

/* PTX_IN(TYPE, name[, expression])  the stub reads it
   PTX_OUT(TYPE, name[, expression]) the stub writes it; it must write it
   PTX_MOD(TYPE, name[, expression]) both
   Queries know the operand by `name`, which is also the default expression. The expression is an operand of inline assembly: an
   lvalue unless it is only read. Put one with a comma outside brackets in parentheses. */
#define PTX_IN(type, ...) PTX_INJECT__OPERAND(0i, type, __VA_ARGS__, __VA_ARGS__, )
#define PTX_OUT(type, ...) PTX_INJECT__OPERAND(0o, type, __VA_ARGS__, __VA_ARGS__, )
#define PTX_MOD(type, ...) PTX_INJECT__OPERAND(0m, type, __VA_ARGS__, __VA_ARGS__, )

/* #define PTX_TYPE_INFO_MASK PTX_TYPES_DESC(u32, u32, r, ID)   makes the type MASK.
   In order: the PTX type of its register, the type of mov, the constraint letter of inline assembly, and how the
   expression is bound: ID as it is; U16 and U32 by its bytes, which needs an lvalue (for __half, __half2). */
#define PTX_TYPES_DESC(reg_suffix, mov_postfix, constraint, bind_kind)   \
    #reg_suffix, #mov_postfix, #constraint, PTX_INJECT__BIND_##bind_kind

#ifndef PTX_INJECT_NO_DEFAULT_TYPES
#define PTX_TYPE_INFO_F16 PTX_TYPES_DESC(b16, b16, h, U16)
#define PTX_TYPE_INFO_F16X2 PTX_TYPES_DESC(b32, b32, r, U32)
#define PTX_TYPE_INFO_S32 PTX_TYPES_DESC(s32, s32, r, ID)
#define PTX_TYPE_INFO_U32 PTX_TYPES_DESC(u32, u32, r, ID)
#define PTX_TYPE_INFO_F32 PTX_TYPES_DESC(f32, f32, f, ID)
#define PTX_TYPE_INFO_B32 PTX_TYPES_DESC(b32, b32, r, ID)
#define PTX_TYPE_INFO_PHILOX PTX_TYPES_DESC(u32, u32, r, ID)
/* Six operands: the state of a Philox generator, members key (x and y) and ctr (x, y, z and w), which the stub reads. */
#define PTX_PHILOX(state)                                                                         \
    PTX_IN(PHILOX, philox_key_x, (state).key.x), PTX_IN(PHILOX, philox_key_y, (state).key.y),     \
        PTX_IN(PHILOX, philox_ctr_x, (state).ctr.x), PTX_IN(PHILOX, philox_ctr_y, (state).ctr.y), \
        PTX_IN(PHILOX, philox_ctr_z, (state).ctr.z), PTX_IN(PHILOX, philox_ctr_w, (state).ctr.w)
#endif

#ifndef PTX_INJECT_ASM
#define PTX_INJECT_ASM asm
#endif

#define PTX_INJECT__BIND_ID(expression) (expression)
#define PTX_INJECT__BIND_U16(expression) (*(unsigned short*)&(expression))
#define PTX_INJECT__BIND_U32(expression) (*(unsigned int*)&(expression))

/* An operand is a tuple (kind, data type, register type, mov type, constraint, bind macro, name, expression). Kinds are 0m, 0o
   and 0i, because no macro can have such a name. The operands are counted, sorted by kind and numbered in their first fields;
   then each part of the statement is written from all of them. n = 10 t + r operands are t groups of ten and r more, up to
   ten; PTX_INJECT__LAST ends each list. Each expansion takes compilers about a microsecond, so there are few. */
#define PTX_INJECT__OPERAND(kind, type, name, expression, ...) (kind, #type, PTX_TYPE_INFO_##type, #name, expression)
#define PTX_INJECT__LAST (0e)
#define PTX_INJECT__TOK(name, ...) PTX_INJECT__SITE(#name, __VA_ARGS__)
#define PTX_INJECT__SITE(...) PTX_INJECT__SITE_T(PTX_INJECT__COUNT(__VA_ARGS__), __VA_ARGS__)
#define PTX_INJECT__SITE_T(count, ...) PTX_INJECT__SITE_TR(PTX_INJECT__UNPACK count, __VA_ARGS__)
#define PTX_INJECT__SITE_TR(...) PTX_INJECT__SITE_TR_(__VA_ARGS__)
#define PTX_INJECT__SITE_TR_(t, ...) PTX_INJECT__SITE_##t(t, __VA_ARGS__)
#define PTX_INJECT__SITE_0(t, r, ...) PTX_INJECT__SORT(0, r, __VA_ARGS__)
#define PTX_INJECT__SITE_0m(t, type, reg, mov, constraint, bind, name, expression, ...) PTX_INJECT__MANY(__VA_ARGS__)
#define PTX_INJECT__SITE_0o(t, type, reg, mov, constraint, bind, name, expression, ...) PTX_INJECT__MANY(__VA_ARGS__)
#define PTX_INJECT__SITE_0i(t, type, reg, mov, constraint, bind, name, expression, ...) PTX_INJECT__MANY(__VA_ARGS__)
#define PTX_INJECT__SITE_0e(t, ...) PTX_INJECT__MANY(__VA_ARGS__)
#define PTX_INJECT__MANY(...) PTX_INJECT__MANY_T(PTX_INJECT__COUNT_MANY(__VA_ARGS__), __VA_ARGS__)
#define PTX_INJECT__MANY_T(count, ...) PTX_INJECT__MANY_TR(PTX_INJECT__UNPACK count, __VA_ARGS__)
#define PTX_INJECT__MANY_TR(...) PTX_INJECT__MANY_TR_(__VA_ARGS__)
#define PTX_INJECT__MANY_TR_(t, ...) PTX_INJECT__MANY_##t(t, __VA_ARGS__)
#define PTX_INJECT__MANY_1 PTX_INJECT__SORT
#define PTX_INJECT__MANY_2 PTX_INJECT__SORT
#define PTX_INJECT__MANY_3 PTX_INJECT__SORT
#define PTX_INJECT__MANY_4 PTX_INJECT__SORT
#define PTX_INJECT__MANY_5 PTX_INJECT__SORT
#define PTX_INJECT__MANY_6 PTX_INJECT__SORT
#define PTX_INJECT__MANY_0m(...) PTX_INJECT__TOO_MANY
#define PTX_INJECT__MANY_0o(...) PTX_INJECT__TOO_MANY
#define PTX_INJECT__MANY_0i(...) PTX_INJECT__TOO_MANY
#define PTX_INJECT__MANY_0e(...) PTX_INJECT__TOO_MANY
#define PTX_INJECT__TOO_MANY static_assert(false, "PTX_INJECT: a site has at most 64 operands")
#define PTX_INJECT__SORT(t, r, name, ...)                                                                                    \
    PTX_INJECT__NUMBER(                                                                                                      \
        t, r,                                                                                                                \
        name PTX_INJECT__EACH_T##t(r, PTX_INJECT__MODS, __VA_ARGS__) PTX_INJECT__EACH_T##t(r, PTX_INJECT__OUTS, __VA_ARGS__) \
            PTX_INJECT__EACH_T##t(r, PTX_INJECT__INS, __VA_ARGS__),                                                          \
        PTX_INJECT__LAST                                                                                                     \
    )
#define PTX_INJECT__NUMBER(...) PTX_INJECT__NUMBER_(__VA_ARGS__)
#define PTX_INJECT__NUMBER_(t, r, name, ...)                                                                                 \
    PTX_INJECT__WRITE(t, r, name PTX_INJECT__INDEX_T##t((, "1", "2", "3", "4", "5", "6"), r, __VA_ARGS__), PTX_INJECT__LAST)
#define PTX_INJECT__WRITE(...) PTX_INJECT__WRITE_(__VA_ARGS__)
#define PTX_INJECT__WRITE_(t, r, name, ...)                                                                                                                                \
    PTX_INJECT_ASM(                                                                                                                                                        \
        "{\n\t" PTX_INJECT__EACH_T##t(                                                                                                                                     \
            r, PTX_INJECT__ENTER, __VA_ARGS__                                                                                                                              \
        ) "// PTX_INJECT_START " name                                                                                                                                      \
          "\n\t" PTX_INJECT__EACH_T##t(r, PTX_INJECT__MARK, __VA_ARGS__) "// PTX_INJECT_END\n\t" PTX_INJECT__EACH_T##t(                                                    \
              r, PTX_INJECT__LEAVE, __VA_ARGS__                                                                                                                            \
          ) "}" : PTX_INJECT__REST(PTX_INJECT__EACH_T##t(r, PTX_INJECT__OUTPUT, __VA_ARGS__)) : PTX_INJECT__REST(PTX_INJECT__EACH_T##t(r, PTX_INJECT__INPUT, __VA_ARGS__)) \
    )

#define PTX_INJECT__MODS(kind, ...) PTX_INJECT__IF_MOD_##kind(, (kind, __VA_ARGS__))
#define PTX_INJECT__OUTS(kind, ...) PTX_INJECT__IF_OUT_##kind(, (kind, __VA_ARGS__))
#define PTX_INJECT__INS(kind, ...) PTX_INJECT__IF_IN_##kind(, (kind, __VA_ARGS__))
#define PTX_INJECT__ENTER(i, kind, type, reg, mov, constraint, bind, name, expression)              \
    ".reg ." reg " %%_x" i ";\n\t" PTX_INJECT__IF_READ_##kind("mov." mov " %%_x" i ", %" i ";\n\t")
#define PTX_INJECT__MARK(i, kind, type, reg, mov, constraint, bind, name, expression) \
    "// _x" i PTX_INJECT__LETTER_##kind reg " " type " " name "\n\t"
#define PTX_INJECT__LEAVE(i, kind, type, reg, mov, constraint, bind, name, expression) \
    PTX_INJECT__IF_WRITTEN_##kind("mov." mov " %" i ", %%_x" i ";\n\t")
#define PTX_INJECT__OUTPUT(i, kind, type, reg, mov, constraint, bind, name, expression)  \
    PTX_INJECT__IF_WRITTEN_##kind(, PTX_INJECT__SIGN_##kind constraint bind(expression))
#define PTX_INJECT__INPUT(i, kind, type, reg, mov, constraint, bind, name, expression) \
    PTX_INJECT__IF_IN_##kind(, constraint bind(expression))

#define PTX_INJECT__IF_MOD_0m(...) __VA_ARGS__
#define PTX_INJECT__IF_MOD_0o(...)
#define PTX_INJECT__IF_MOD_0i(...)
#define PTX_INJECT__IF_OUT_0m(...)
#define PTX_INJECT__IF_OUT_0o(...) __VA_ARGS__
#define PTX_INJECT__IF_OUT_0i(...)
#define PTX_INJECT__IF_IN_0m(...)
#define PTX_INJECT__IF_IN_0o(...)
#define PTX_INJECT__IF_IN_0i(...) __VA_ARGS__
#define PTX_INJECT__IF_READ_0m(...) __VA_ARGS__
#define PTX_INJECT__IF_READ_0o(...)
#define PTX_INJECT__IF_READ_0i(...) __VA_ARGS__
#define PTX_INJECT__IF_WRITTEN_0m(...) __VA_ARGS__
#define PTX_INJECT__IF_WRITTEN_0o(...) __VA_ARGS__
#define PTX_INJECT__IF_WRITTEN_0i(...)
#define PTX_INJECT__LETTER_0m " m "
#define PTX_INJECT__LETTER_0o " o "
#define PTX_INJECT__LETTER_0i " i "
#define PTX_INJECT__SIGN_0m "+"
#define PTX_INJECT__SIGN_0o "="

#define PTX_INJECT__UNPACK(...) __VA_ARGS__
#define PTX_INJECT__HEAD(first, ...) first
#define PTX_INJECT__TAIL(first, ...) (__VA_ARGS__)
#define PTX_INJECT__REST(...) PTX_INJECT__REST_(__VA_ARGS__)
#define PTX_INJECT__REST_(first, ...) __VA_ARGS__

/* The operands' count as (t, r); if there are more than 10 or, in the second form, 64, one of the operands */
#define PTX_INJECT__COUNT(...)                                                                                                 \
    PTX_INJECT__COUNT_(__VA_ARGS__, (0, 10), (0, 9), (0, 8), (0, 7), (0, 6), (0, 5), (0, 4), (0, 3), (0, 2), (0, 1), (0, 0), )
#define PTX_INJECT__COUNT_(name, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, last, count, ...) count
/* clang-format puts each of many arguments on a line of its own. */
/* clang-format off */
#define PTX_INJECT__COUNT_MANY(...)                                                  \
    PTX_INJECT__COUNT_MANY_(__VA_ARGS__,                                             \
    (6, 4), (6, 3), (6, 2), (6, 1),                                                  \
    (5, 10), (5, 9), (5, 8), (5, 7), (5, 6), (5, 5), (5, 4), (5, 3), (5, 2), (5, 1), \
    (4, 10), (4, 9), (4, 8), (4, 7), (4, 6), (4, 5), (4, 4), (4, 3), (4, 2), (4, 1), \
    (3, 10), (3, 9), (3, 8), (3, 7), (3, 6), (3, 5), (3, 4), (3, 3), (3, 2), (3, 1), \
    (2, 10), (2, 9), (2, 8), (2, 7), (2, 6), (2, 5), (2, 4), (2, 3), (2, 2), (2, 1), \
    (1, 10), (1, 9), (1, 8), (1, 7), (1, 6), (1, 5), (1, 4), (1, 3), (1, 2), (1, 1), \
    )
#define PTX_INJECT__COUNT_MANY_(name,                                                \
    a0, a1, a2, a3, a4, a5, a6, a7, a8, a9,                                          \
    b0, b1, b2, b3, b4, b5, b6, b7, b8, b9,                                          \
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9,                                          \
    d0, d1, d2, d3, d4, d5, d6, d7, d8, d9,                                          \
    e0, e1, e2, e3, e4, e5, e6, e7, e8, e9,                                          \
    f0, f1, f2, f3, f4, f5, f6, f7, f8, f9,                                          \
    g0, g1, g2, g3,                                                                  \
    last, count, ...)                                                                \
    count
/* clang-format on */

/* f first f second ... of n operands, where f is called with an operand's fields */
#define PTX_INJECT__EACH_T0(r, ...) PTX_INJECT__EACH_##r(__VA_ARGS__)
#define PTX_INJECT__EACH_T1(r, f, a, b, c, d, e, g, h, i, j, k, ...)                              \
    PTX_INJECT__EACH_10(f, a, b, c, d, e, g, h, i, j, k, ) PTX_INJECT__EACH_T0(r, f, __VA_ARGS__)
#define PTX_INJECT__EACH_T2(r, f, a, b, c, d, e, g, h, i, j, k, ...)                              \
    PTX_INJECT__EACH_10(f, a, b, c, d, e, g, h, i, j, k, ) PTX_INJECT__EACH_T1(r, f, __VA_ARGS__)
#define PTX_INJECT__EACH_T3(r, f, a, b, c, d, e, g, h, i, j, k, ...)                              \
    PTX_INJECT__EACH_10(f, a, b, c, d, e, g, h, i, j, k, ) PTX_INJECT__EACH_T2(r, f, __VA_ARGS__)
#define PTX_INJECT__EACH_T4(r, f, a, b, c, d, e, g, h, i, j, k, ...)                              \
    PTX_INJECT__EACH_10(f, a, b, c, d, e, g, h, i, j, k, ) PTX_INJECT__EACH_T3(r, f, __VA_ARGS__)
#define PTX_INJECT__EACH_T5(r, f, a, b, c, d, e, g, h, i, j, k, ...)                              \
    PTX_INJECT__EACH_10(f, a, b, c, d, e, g, h, i, j, k, ) PTX_INJECT__EACH_T4(r, f, __VA_ARGS__)
#define PTX_INJECT__EACH_T6(r, f, a, b, c, d, e, g, h, i, j, k, ...)                              \
    PTX_INJECT__EACH_10(f, a, b, c, d, e, g, h, i, j, k, ) PTX_INJECT__EACH_T5(r, f, __VA_ARGS__)
#define PTX_INJECT__EACH_0(...)
#define PTX_INJECT__EACH_1(f, a, ...) f a
#define PTX_INJECT__EACH_2(f, a, b, ...) f a f b
#define PTX_INJECT__EACH_3(f, a, b, c, ...) f a f b f c
#define PTX_INJECT__EACH_4(f, a, b, c, d, ...) f a f b f c f d
#define PTX_INJECT__EACH_5(f, a, b, c, d, e, ...) f a f b f c f d f e
#define PTX_INJECT__EACH_6(f, a, b, c, d, e, g, ...) f a f b f c f d f e f g
#define PTX_INJECT__EACH_7(f, a, b, c, d, e, g, h, ...) f a f b f c f d f e f g f h
#define PTX_INJECT__EACH_8(f, a, b, c, d, e, g, h, i, ...) f a f b f c f d f e f g f h f i
#define PTX_INJECT__EACH_9(f, a, b, c, d, e, g, h, i, j, ...) f a f b f c f d f e f g f h f i f j
#define PTX_INJECT__EACH_10(f, a, b, c, d, e, g, h, i, j, k, ...) f a f b f c f d f e f g f h f i f j f k

/* , (0, fields of the first) , (1, fields of the second) ... of n operands, where `tens` are the digits before the last */
#define PTX_INJECT__INDEX_T0(tens, r, ...) PTX_INJECT__INDEX_##r(PTX_INJECT__HEAD tens, __VA_ARGS__)
#define PTX_INJECT__INDEX_T1(tens, r, a, b, c, d, e, g, h, i, j, k, ...)        \
    PTX_INJECT__INDEX_10(PTX_INJECT__HEAD tens, a, b, c, d, e, g, h, i, j, k, ) \
    PTX_INJECT__INDEX_T0(PTX_INJECT__TAIL tens, r, __VA_ARGS__)
#define PTX_INJECT__INDEX_T2(tens, r, a, b, c, d, e, g, h, i, j, k, ...)        \
    PTX_INJECT__INDEX_10(PTX_INJECT__HEAD tens, a, b, c, d, e, g, h, i, j, k, ) \
    PTX_INJECT__INDEX_T1(PTX_INJECT__TAIL tens, r, __VA_ARGS__)
#define PTX_INJECT__INDEX_T3(tens, r, a, b, c, d, e, g, h, i, j, k, ...)        \
    PTX_INJECT__INDEX_10(PTX_INJECT__HEAD tens, a, b, c, d, e, g, h, i, j, k, ) \
    PTX_INJECT__INDEX_T2(PTX_INJECT__TAIL tens, r, __VA_ARGS__)
#define PTX_INJECT__INDEX_T4(tens, r, a, b, c, d, e, g, h, i, j, k, ...)        \
    PTX_INJECT__INDEX_10(PTX_INJECT__HEAD tens, a, b, c, d, e, g, h, i, j, k, ) \
    PTX_INJECT__INDEX_T3(PTX_INJECT__TAIL tens, r, __VA_ARGS__)
#define PTX_INJECT__INDEX_T5(tens, r, a, b, c, d, e, g, h, i, j, k, ...)        \
    PTX_INJECT__INDEX_10(PTX_INJECT__HEAD tens, a, b, c, d, e, g, h, i, j, k, ) \
    PTX_INJECT__INDEX_T4(PTX_INJECT__TAIL tens, r, __VA_ARGS__)
#define PTX_INJECT__INDEX_T6(tens, r, a, b, c, d, e, g, h, i, j, k, ...)        \
    PTX_INJECT__INDEX_10(PTX_INJECT__HEAD tens, a, b, c, d, e, g, h, i, j, k, ) \
    PTX_INJECT__INDEX_T5(PTX_INJECT__TAIL tens, r, __VA_ARGS__)
#define PTX_INJECT__INDEX_0(...)
#define PTX_INJECT__INDEX_1(z, a, ...) , (z "0", PTX_INJECT__UNPACK a)
#define PTX_INJECT__INDEX_2(z, a, b, ...) PTX_INJECT__INDEX_1(z, a, ), (z "1", PTX_INJECT__UNPACK b)
#define PTX_INJECT__INDEX_3(z, a, b, c, ...) PTX_INJECT__INDEX_2(z, a, b, ), (z "2", PTX_INJECT__UNPACK c)
#define PTX_INJECT__INDEX_4(z, a, b, c, d, ...) PTX_INJECT__INDEX_3(z, a, b, c, ), (z "3", PTX_INJECT__UNPACK d)
#define PTX_INJECT__INDEX_5(z, a, b, c, d, e, ...) PTX_INJECT__INDEX_4(z, a, b, c, d, ), (z "4", PTX_INJECT__UNPACK e)
#define PTX_INJECT__INDEX_6(z, a, b, c, d, e, g, ...) PTX_INJECT__INDEX_5(z, a, b, c, d, e, ), (z "5", PTX_INJECT__UNPACK g)
#define PTX_INJECT__INDEX_7(z, a, b, c, d, e, g, h, ...) PTX_INJECT__INDEX_6(z, a, b, c, d, e, g, ), (z "6", PTX_INJECT__UNPACK h)
#define PTX_INJECT__INDEX_8(z, a, b, c, d, e, g, h, i, ...)                      \
    PTX_INJECT__INDEX_7(z, a, b, c, d, e, g, h, ), (z "7", PTX_INJECT__UNPACK i)
#define PTX_INJECT__INDEX_9(z, a, b, c, d, e, g, h, i, j, ...)                      \
    PTX_INJECT__INDEX_8(z, a, b, c, d, e, g, h, i, ), (z "8", PTX_INJECT__UNPACK j)
#define PTX_INJECT__INDEX_10(z, a, b, c, d, e, g, h, i, j, k, ...)                     \
    PTX_INJECT__INDEX_9(z, a, b, c, d, e, g, h, i, j, ), (z "9", PTX_INJECT__UNPACK k)

#endif /* __CUDACC__ */

/* Variables that a site may have; the macro takes 64. */
#define PTX_INJECT_MAX_ARGS 1024u

/* ---- host side --------------------------------------------------------------------------------------------------- */

#ifndef __CUDACC_RTC__

#include "detail/result.h"

#include <stdbool.h>
#include <stddef.h>

/* Before each declaration. It sets the linkage of the definition too. */
#define PTX_INJECT_API EVO__API(PTX_INJECT_STATIC)

#ifdef __cplusplus
extern "C" {
#endif

/* Results: name, value. */
#define PTX_INJECT__RESULTS(X)                                                                                \
    X(PTX_INJECT_SUCCESS, 0)                                                                                  \
    X(PTX_INJECT_ERROR_FORMATTING, 1) /* a malformed marker or annotation */                                  \
    X(PTX_INJECT_ERROR_INSUFFICIENT_BUFFER, 2) /* the text does not fit */                                    \
    X(PTX_INJECT_ERROR_INTERNAL, 3) /* never given: nothing here can fail halfway */                          \
    X(PTX_INJECT_ERROR_INVALID_INPUT, 4) /* NULL, a bad type; see the queries */                              \
    X(PTX_INJECT_ERROR_MAX_UNIQUE_INJECTS_EXCEEDED, 5) /* only if PTX_INJECT_MAX_UNIQUE_INJECTS is defined */ \
    X(PTX_INJECT_ERROR_WRONG_NUM_STUBS, 6)                                                                    \
    X(PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX, 7)                                                                  \
    X(PTX_INJECT_ERROR_INCONSISTENT_INJECTION, 8) /* sites of one name with different variables */            \
    X(PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND, 9)                                                           \
    X(PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND, 10)                                                      \
    X(PTX_INJECT_ERROR_OUT_OF_MEMORY, 11)

typedef enum { PTX_INJECT__RESULTS(EVO__ENUMERATOR) PTX_INJECT_RESULT_NUM_ELEMS } PtxInjectResult;

/* Use of a variable by a stub. */
typedef enum {
    PTX_INJECT_MUT_TYPE_OUT = 0, /* writes it on every path */
    PTX_INJECT_MUT_TYPE_MOD = 1, /* reads and writes it */
    PTX_INJECT_MUT_TYPE_IN = 2,  /* reads it */
    PTX_INJECT_MUT_TYPE_NUM_ENUMS
} PtxInjectMutType;

/* A type of the comment form. */
typedef struct PtxInjectDataTypeInfo {
    const char* name;              /* one word, as annotations say it */
    const char* register_type;     /* PTX type of the register */
    const char* mov_postfix;       /* type of the mov instructions to and from it */
    char register_char;            /* constraint letter of inline assembly */
    const char* register_cast_str; /* put before the CUDA operand: "*(unsigned short*)&". NULL or "": nothing */
} PtxInjectDataTypeInfo;

typedef struct PtxInjectHandleImpl* PtxInjectHandle;

/* Position and kind of an error in a text. */
typedef struct PtxInjectPlace {
    size_t line;        /* from 1; 0 if no place in the text is at fault */
    size_t column;      /* in bytes, from 1; 0 likewise */
    const char* reason; /* one line, static text; "" on success */
} PtxInjectPlace;

/* The enumerator's name, or "PTX_INJECT_RESULT_UNKNOWN". The text is static. */
PTX_INJECT_API const char* ptx_inject_result_to_string(PtxInjectResult result);

/* The default types, used if `types` is NULL: f16, f16X2, s32, u32, f32, b32. Static. num_types_out may be NULL. */
PTX_INJECT_API const PtxInjectDataTypeInfo* ptx_inject_default_types(size_t* num_types_out);

/* ---- annotated CUDA ---- */

// Turns annotations into asm statements that carry markers:
//
//     /* PTX_INJECT func                           asm(
//         in  f32 x                                    "// PTX_INJECT_START func\n\t"
//         mod f32 y                                    "// %0 mod f32 y\n\t"
//         // in f32 w                                  "// %1 in f32 x\n\t"
//     */                                               "// PTX_INJECT_END"
//                                                      : "+f"(y)
//                                                      : "f"(x)
//                                                  );
//
// The header is exactly "/* PTX_INJECT" and a blank, then the name: letters, digits, _ and $. Each line after it has one
// variable: in, mod or out, a type, and an operand of inline assembly (x, v.w, a[i + 1]), which is also the variable's name:
// printable ASCII, different for each variable. Text after // is a comment, so that a line can be skipped.
// Headers in // comments, other comments and strings are ignored; in a macro's definition they are refused.
//
// Writes the processed text and a NUL, which bytes_written_out does not count. With buffer NULL, and on INSUFFICIENT_BUFFER, it
// is the size of the buffer that is needed, NUL included. It may be NULL. The buffer's contents are valid only on success.
// types NULL, with num_types 0, are the default types.
// Errors: FORMATTING, INSUFFICIENT_BUFFER, INVALID_INPUT.
PTX_INJECT_API PtxInjectResult ptx_inject_process_cuda(
    const char* cuda, const PtxInjectDataTypeInfo* types, size_t num_types, char* buffer, size_t buffer_size,
    size_t* bytes_written_out
);

/* The result of ptx_inject_process_cuda for this text, with the place and reason of an error. */
PTX_INJECT_API PtxInjectResult
ptx_inject_diagnose_cuda(const char* cuda, const PtxInjectDataTypeInfo* types, size_t num_types, PtxInjectPlace* place_out);

/* ---- annotated PTX ---- */

/* Reads PTX with markers of either form; the comment form uses the default types. A text without markers has 0 injects. Free the
   handle with ptx_inject_destroy; on an error it is NULL.
   Errors: FORMATTING, INVALID_INPUT, MAX_UNIQUE_INJECTS_EXCEEDED, INCONSISTENT_INJECTION, OUT_OF_MEMORY. */
PTX_INJECT_API PtxInjectResult ptx_inject_create(PtxInjectHandle* handle_out, const char* ptx);

/* The same with your own types, which are copied. NULL, with num_types 0: the default types. */
PTX_INJECT_API PtxInjectResult
ptx_inject_create_with_types(PtxInjectHandle* handle_out, const char* ptx, const PtxInjectDataTypeInfo* types, size_t num_types);

/* The result of ptx_inject_create_with_types for this text, with the place and reason of an error. */
PTX_INJECT_API PtxInjectResult
ptx_inject_diagnose_ptx(const char* ptx, const PtxInjectDataTypeInfo* types, size_t num_types, PtxInjectPlace* place_out);

/* NULL is a no-op. */
PTX_INJECT_API PtxInjectResult ptx_inject_destroy(PtxInjectHandle handle);

/* ---- queries ----
   Injects, one for each name, are numbered by first appearance in the PTX; their variables, in marker order. Register names
   have no percent sign. Any out pointer may be NULL. */

PTX_INJECT_API PtxInjectResult ptx_inject_num_injects(PtxInjectHandle handle, size_t* num_injects_out);

/* Errors: INVALID_INPUT, INJECTION_NAME_NOT_FOUND. */
PTX_INJECT_API PtxInjectResult ptx_inject_inject_info_by_name(
    PtxInjectHandle handle, const char* inject_name, size_t* inject_idx_out, size_t* num_args_out, size_t* num_sites_out
);

/* Errors: INVALID_INPUT, OUT_OF_BOUNDS_IDX. */
PTX_INJECT_API PtxInjectResult ptx_inject_inject_info_by_index(
    PtxInjectHandle handle, size_t inject_idx, const char** inject_name_out, size_t* num_args_out, size_t* num_sites_out
);

/* Errors: INVALID_INPUT, including inject_idx out of range; INJECTION_ARG_NAME_NOT_FOUND. */
PTX_INJECT_API PtxInjectResult ptx_inject_variable_info_by_name(
    PtxInjectHandle handle, size_t inject_idx, const char* variable_name, size_t* arg_idx_out, const char** register_name_out,
    PtxInjectMutType* mut_type_out, const char** register_type_name_out, const char** data_type_name_out
);

/* Errors: INVALID_INPUT, including arg_idx out of range; OUT_OF_BOUNDS_IDX for inject_idx. */
PTX_INJECT_API PtxInjectResult ptx_inject_variable_info_by_index(
    PtxInjectHandle handle, size_t inject_idx, size_t arg_idx, const char** variable_name_out, const char** register_name_out,
    PtxInjectMutType* mut_type_out, const char** register_type_name_out, const char** data_type_name_out
);

/* ---- rendering ---- */

/* Writes the PTX, with stubs[i] in each site of inject i, and a NUL, which bytes_written_out does not count. With buffer NULL,
   and on INSUFFICIENT_BUFFER, it is the size of the buffer that is needed, NUL included. It may be NULL. Stubs are inserted
   unchanged, between line breaks; none may be NULL. num_stubs must be the number of injects; if it is 0, `stubs` may be NULL.
   Errors: INVALID_INPUT, WRONG_NUM_STUBS, INSUFFICIENT_BUFFER. */
PTX_INJECT_API PtxInjectResult ptx_inject_render_ptx(
    PtxInjectHandle handle, const char* const* stubs, size_t num_stubs, char* buffer, size_t buffer_size,
    size_t* bytes_written_out
);

/* The same with the stubs' lengths in bytes; the stubs need no NUL. */
PTX_INJECT_API PtxInjectResult ptx_inject_render_ptx_sized(
    PtxInjectHandle handle, const char* const* stubs, const size_t* stub_lengths, size_t num_stubs, char* buffer,
    size_t buffer_size, size_t* bytes_written_out
);

#ifdef __cplusplus
}
#endif

#endif /* __CUDACC_RTC__ */

#endif /* PTX_INJECT_H */

/* ---- implementation ---------------------------------------------------------------------------------------------- */

#if defined(PTX_INJECT_IMPLEMENTATION) && !defined(__CUDACC_RTC__)
#ifndef PTX_INJECT_IMPLEMENTATION_ONCE
#define PTX_INJECT_IMPLEMENTATION_ONCE

#include <stdint.h>
#include <string.h>

#define PTX_INJECT__ERROR(code) EVO__ERROR(PTX_INJECT_DEBUG, code)

#if !defined(PTX_INJECT_MALLOC) && !defined(PTX_INJECT_REALLOC) && !defined(PTX_INJECT_FREE)
#include <stdlib.h>
#define PTX_INJECT_MALLOC(size) malloc(size)
#define PTX_INJECT_REALLOC(pointer, size) realloc(pointer, size)
#define PTX_INJECT_FREE(pointer) free(pointer)
#elif !defined(PTX_INJECT_MALLOC) || !defined(PTX_INJECT_REALLOC) || !defined(PTX_INJECT_FREE)
#error "define all of PTX_INJECT_MALLOC, PTX_INJECT_REALLOC and PTX_INJECT_FREE, or none"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PTX_INJECT__HEADER "/* PTX_INJECT"
#define PTX_INJECT__MARKER "PTX_INJECT_"
#define PTX_INJECT__START "PTX_INJECT_START"
#define PTX_INJECT__END "PTX_INJECT_END"

#if defined(__GNUC__)
#define PTX_INJECT__INLINE static inline __attribute__((always_inline))
#else
#define PTX_INJECT__INLINE static inline
#endif

/* Part of a text. */
typedef struct PtxInject__Slice {
    const char* begin;
    size_t length;
} PtxInject__Slice;

/* A text that is being read, and the error found in it. */
typedef struct PtxInject__Source {
    const char* text;
    const char* end;
    const char* scanned; /* outside of comments and literals: what is before it was looked at for comments */
    int is_first;        /* there are only blanks and comments before it on its line */
    int in_directive;    /* of the preprocessor */
    const PtxInjectDataTypeInfo* types;
    size_t num_types;
    const PtxInjectDataTypeInfo* latest_type; /* the last that was found, or NULL */
    const char* fault; /* NULL if no place in the text is at fault */
    const char* reason;
} PtxInject__Source;

/* Return an error of the text, or another one, from the enclosing function. */
#define PTX_INJECT__REFUSE(source, place, why) PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_FORMATTING, source, place, why)
#define PTX_INJECT__REFUSE_AS(code, source, place, why) \
    do {                                                \
        (source)->fault = (place);                      \
        (source)->reason = (why);                       \
        return PTX_INJECT__ERROR(code);                 \
    } while (0)

#define PTX_INJECT__TRY(call)                      \
    do {                                           \
        const PtxInjectResult try_result = (call); \
        if (try_result != PTX_INJECT_SUCCESS) {    \
            return try_result;                     \
        }                                          \
    } while (0)

const char* ptx_inject_result_to_string(PtxInjectResult result) {
    EVO__RETURN_NAME(result, PTX_INJECT__RESULTS, "PTX_INJECT_RESULT_UNKNOWN")
}

/* ---- characters and words ---- */

static int ptx_inject__is_digit(char c) { return c >= '0' && c <= '9'; }

static int ptx_inject__is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static int ptx_inject__is_word(char c) { return ptx_inject__is_letter(c) || ptx_inject__is_digit(c) || c == '_'; }

static int ptx_inject__is_identifier(char c) { return ptx_inject__is_word(c) || c == '$'; }

/* Of a PTX type, a literal, or a name with members. */
static int ptx_inject__is_dotted(char c) { return ptx_inject__is_word(c) || c == '.'; }

/* White space within a line; the CR of a CRLF is one. */
static int ptx_inject__is_blank(char c) {
    return c == ' ' || ((unsigned char)c - (unsigned)'\t' <= (unsigned)('\r' - '\t') && c != '\n');
}

/* Names are written into PTX, which is ASCII. */
static int ptx_inject__is_printable(char c) { return c >= ' ' && c <= '~'; }

static int ptx_inject__is_printable_or_tab(char c) { return ptx_inject__is_printable(c) || c == '\t'; }

static PtxInject__Slice ptx_inject__between(const char* begin, const char* end) {
    PtxInject__Slice slice;
    slice.begin = begin;
    slice.length = (size_t)(end - begin);
    return slice;
}

static PtxInject__Slice ptx_inject__slice(const char* string) { return ptx_inject__between(string, string + strlen(string)); }

static const char* ptx_inject__skip_blanks(const char* at, const char* end) {
    while (at < end && ptx_inject__is_blank(*at)) ++at;
    return at;
}

static const char* ptx_inject__line_end(const char* at, const char* end) {
    const char* newline = (const char*)memchr(at, '\n', (size_t)(end - at));
    return newline != NULL ? newline : end;
}

/* The next run of non-blanks, empty at the end of the line. */
static PtxInject__Slice ptx_inject__next_token(const char** at, const char* line_end) {
    const char* begin = ptx_inject__skip_blanks(*at, line_end);
    *at = begin;
    while (*at < line_end && !ptx_inject__is_blank(**at)) ++*at;
    return ptx_inject__between(begin, *at);
}

/* The rest of the line, without blanks around it. */
static PtxInject__Slice ptx_inject__rest(const char* at, const char* line_end) {
    const char* begin = ptx_inject__skip_blanks(at, line_end);
    while (line_end > begin && ptx_inject__is_blank(line_end[-1])) --line_end;
    return ptx_inject__between(begin, line_end);
}

static int ptx_inject__same(PtxInject__Slice first, PtxInject__Slice second) {
    return first.length == second.length && memcmp(first.begin, second.begin, first.length) == 0;
}

PTX_INJECT__INLINE int ptx_inject__equal(PtxInject__Slice slice, const char* string) {
    for (size_t i = 0; i < slice.length; ++i)
        if (slice.begin[i] != string[i])  /* stops at the string's end too: a slice has no NUL */
            return 0;
    return string[slice.length] == '\0';
}

/* The first character that is not of a kind, or NULL if all are. */
PTX_INJECT__INLINE const char* ptx_inject__find_other(PtxInject__Slice slice, int (*is_of_kind)(char)) {
    const char* end = slice.begin + slice.length;
    while (slice.begin < end && is_of_kind(*slice.begin)) ++slice.begin;
    return slice.begin < end ? slice.begin : NULL;
}

/* Is it not empty, and all of one kind? */
PTX_INJECT__INLINE int ptx_inject__consists_of(PtxInject__Slice slice, int (*is_of_kind)(char)) {
    return slice.length > 0 && ptx_inject__find_other(slice, is_of_kind) == NULL;
}

static int ptx_inject__begins(const char* at, const char* end, const char* string, size_t length) {
    return (size_t)(end - at) >= length && memcmp(at, string, length) == 0;
}

/* Is `word` at a place, followed by a blank or the end of its line? */
static int ptx_inject__begins_with_word(const char* at, const char* end, const char* word, size_t length) {
    return ptx_inject__begins(at, end, word, length) &&
        (at + length == end || at[length] == '\n' || ptx_inject__is_blank(at[length]));
}

#define PTX_INJECT__IS(word, at, end) ptx_inject__begins_with_word(at, end, word, sizeof(word) - 1)

/* ---- types ---- */

const PtxInjectDataTypeInfo* ptx_inject_default_types(size_t* num_types_out) {
    static const PtxInjectDataTypeInfo types[] = {
        {"f16", "b16", "b16", 'h', "*(unsigned short*)&"},
        {"f16X2", "b32", "b32", 'r', "*(unsigned int*)&"},
        {"s32", "s32", "s32", 'r', ""},
        {"u32", "u32", "u32", 'r', ""},
        {"f32", "f32", "f32", 'f', ""},
        {"b32", "b32", "b32", 'r', ""},
    };
    if (num_types_out != NULL) *num_types_out = sizeof types / sizeof types[0];
    return types;
}

/* Reason why a type is wrong, or NULL. */
static const char* ptx_inject__fault_of_type(const PtxInjectDataTypeInfo* type) {
    if (type->name == NULL || !ptx_inject__consists_of(ptx_inject__slice(type->name), ptx_inject__is_printable) ||
        strpbrk(type->name, " \"\\%") != NULL) {
        return "a type's name must be a word of ASCII without quotes, backslashes and percent signs";
    }
    if (type->register_type == NULL || type->mov_postfix == NULL ||
        !ptx_inject__consists_of(ptx_inject__slice(type->register_type), ptx_inject__is_dotted) ||
        !ptx_inject__consists_of(ptx_inject__slice(type->mov_postfix), ptx_inject__is_dotted)) {
        return "a type's register_type and mov_postfix must be PTX types, as in u32";
    }
    if (!ptx_inject__is_letter(type->register_char))
        return "a type's register_char must be a constraint letter of inline assembly";
    if (type->register_cast_str != NULL &&
        ptx_inject__find_other(ptx_inject__slice(type->register_cast_str), ptx_inject__is_printable) != NULL) {
        return "a type's register_cast_str must be one line of ASCII";
    }
    return NULL;
}

/* One of the first types, or NULL. */
static const PtxInjectDataTypeInfo* ptx_inject__find_type(
    const PtxInject__Source* source, PtxInject__Slice name, size_t num_types
) {
    for (size_t i = 0; i < num_types; ++i)
        if (ptx_inject__equal(name, source->types[i].name)) return &source->types[i];
    return NULL;
}

/* Begins to read a text with some types or, for NULL, the default ones. */
static PtxInjectResult ptx_inject__open(
    PtxInject__Source* source, const char* text, const PtxInjectDataTypeInfo* types, size_t num_types
) {
    memset(source, 0, sizeof *source);
    source->reason = "";
    if (text == NULL || (types == NULL && num_types > 0))
        PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_INVALID_INPUT, source, NULL, "the text or the types are NULL");
    source->text = text;
    source->end = text + strlen(text);
    source->scanned = text;
    source->is_first = 1;
    source->types = types;
    source->num_types = num_types;
    if (types == NULL) source->types = ptx_inject_default_types(&source->num_types);
    for (size_t i = 0; types != NULL && i < num_types; ++i) {
        const char* reason = ptx_inject__fault_of_type(&types[i]);
        if (reason == NULL && ptx_inject__find_type(source, ptx_inject__slice(types[i].name), i) != NULL)
            reason = "two types have one name";
        if (reason != NULL) PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_INVALID_INPUT, source, NULL, reason);
    }
    return PTX_INJECT_SUCCESS;
}

/* Finds the type that a text names. */
static PtxInjectResult ptx_inject__read_type(
    PtxInject__Source* source, PtxInject__Slice name, const PtxInjectDataTypeInfo** type_out
) {
    *type_out = source->latest_type; /* variables of one type often follow each other */
    if (*type_out == NULL || !ptx_inject__equal(name, (*type_out)->name))
        *type_out = source->latest_type = ptx_inject__find_type(source, name, source->num_types);
    if (*type_out == NULL) {
        PTX_INJECT__REFUSE(
            source, name.begin,
            source->types == ptx_inject_default_types(NULL)
                ? "not a type known here, which are f16 f16X2 s32 u32 f32 b32: further ones have to be given"
                : "not one of the types that were given"
        );
    }
    return PTX_INJECT_SUCCESS;
}

static const char* const ptx_inject__mut_types[] = {"out", "mod", "in"};

/* Reads in, mod or out. */
static PtxInjectResult ptx_inject__read_mut_type(
    PtxInject__Source* source, PtxInject__Slice word, PtxInjectMutType* mut_type_out
) {
    for (int i = 0; i < PTX_INJECT_MUT_TYPE_NUM_ENUMS; ++i) {
        if (ptx_inject__equal(word, ptx_inject__mut_types[i])) {
            *mut_type_out = (PtxInjectMutType)i;
            return PTX_INJECT_SUCCESS;
        }
    }
    PTX_INJECT__REFUSE(source, word.begin, "in, mod or out was expected");
}

/* Reports the error by line and column. */
static void ptx_inject__tell(const PtxInject__Source* source, PtxInjectPlace* place_out) {
    const char* line = source->text;
    const char* at;

    place_out->line = 0;
    place_out->column = 0;
    place_out->reason = source->reason;
    if (source->fault != NULL) {
        place_out->line = 1;
        for (at = source->text; at < source->fault; ++at) {
            if (*at == '\n') {
                ++place_out->line;
                line = at + 1;
            }
        }
        place_out->column = (size_t)(source->fault - line) + 1;
    }
}

/* ---- output ---- */

/* Bytes in the caller's memory, only counted once they do not fit, or in memory that grows until there is no more. */
typedef struct PtxInject__Writer {
    char* bytes;
    size_t capacity; /* 0 once something did not fit: nothing is written after a gap */
    size_t length;   /* also of what does not fit; SIZE_MAX if it is more */
    int is_growing;  /* 0 after a failure too */
} PtxInject__Writer;

static PtxInject__Writer ptx_inject__writer(char* buffer, size_t size) {
    PtxInject__Writer writer;
    writer.bytes = buffer;
    writer.capacity = buffer != NULL ? size : 0;
    writer.length = 0;
    writer.is_growing = 0;
    return writer;
}

/* A writer with more room, if that is possible. By value, so that compilers keep writers in registers. */
static PtxInject__Writer ptx_inject__grown(PtxInject__Writer writer, size_t num_more) {
    const size_t twice = writer.capacity < 512 ? 1024 : 2 * writer.capacity;
    const size_t capacity = num_more >= twice - writer.length ? writer.length + num_more + 1 : twice;
    char* bytes = NULL;
    if (writer.is_growing && num_more <= SIZE_MAX / 4 - writer.length) bytes = (char*)PTX_INJECT_REALLOC(writer.bytes, capacity);
    writer.is_growing = bytes != NULL;
    writer.capacity = bytes != NULL ? capacity : 0;
    writer.bytes = bytes != NULL ? bytes : writer.bytes;
    return writer;
}

/* There is always room for one more byte, a NUL. `bytes` NULL: leaves them as they are. */
PTX_INJECT__INLINE void ptx_inject__write(PtxInject__Writer* writer, const void* bytes, size_t length) {
    if (writer->length >= writer->capacity || length >= writer->capacity - writer->length) {
        *writer = ptx_inject__grown(*writer, length);
        if (writer->capacity == 0) {
            writer->length = length > SIZE_MAX - 1 - writer->length ? SIZE_MAX - 1 : writer->length + length;
            return;
        }
    }
    if (bytes != NULL) memcpy(writer->bytes + writer->length, bytes, length);
    writer->length += length;
}

PTX_INJECT__INLINE void ptx_inject__write_slice(PtxInject__Writer* writer, PtxInject__Slice slice) {
    ptx_inject__write(writer, slice.begin, slice.length);
}

PTX_INJECT__INLINE void ptx_inject__write_string(PtxInject__Writer* writer, const char* string) {
    ptx_inject__write(writer, string, strlen(string));
}

static void ptx_inject__write_number(PtxInject__Writer* writer, size_t number) {
    char digits[3 * sizeof number];
    char* const end = digits + sizeof digits;
    char* begin = end;
    do {
        *--begin = (char)('0' + (int)(number % 10));
        number /= 10;
    } while (number > 0);
    ptx_inject__write(writer, begin, (size_t)(end - begin));
}

/* Text as it must stand in a string literal of an asm statement. */
static void ptx_inject__write_escaped(PtxInject__Writer* writer, PtxInject__Slice text) {
    for (size_t i = 0; i < text.length; ++i) {
        const char c = text.begin[i];
        if (c == '"' || c == '\\')
            ptx_inject__write(writer, "\\", 1);
        else if (c == '%')
            ptx_inject__write(writer, "%", 1);
        ptx_inject__write(writer, &c, 1);
    }
}

/* Ends the text of a buffer with a NUL. */
PTX_INJECT__INLINE PtxInjectResult ptx_inject__finish(const PtxInject__Writer* writer, size_t* bytes_written_out) {
    const int is_written = writer->capacity > 0;
    if (is_written) writer->bytes[writer->length] = '\0';
    if (bytes_written_out != NULL) *bytes_written_out = writer->length + (is_written ? 0 : 1);
    return is_written || writer->bytes == NULL ? PTX_INJECT_SUCCESS : PTX_INJECT__ERROR(PTX_INJECT_ERROR_INSUFFICIENT_BUFFER);
}

/* ---- the scanner: comments, literals and directives ---- */

/* Does a backslash join the line that ends at a line break to the next one? */
static int ptx_inject__goes_on(const char* text, const char* newline) {
    const char* last = newline > text && newline[-1] == '\r' ? newline - 1 : newline;
    return last > text && last[-1] == '\\';
}

/* From a quote to the one that closes the literal, or to the end of the line if none does. */
static const char* ptx_inject__literal_end(const char* at, const char* end) {
    const char quote = *at++;
    while (at < end && *at != '\n' && *at != quote) {
        if (*at == '\\' && end - at >= 2) at += (end - at >= 3 && at[1] == '\r' && at[2] == '\n') ? 2 : 1;
        ++at;
    }
    return at;
}

/* From the quote of a raw string to its end: R"name( ... )name". NULL if it is none. */
static const char* ptx_inject__skip_raw_string(const char* at, const char* end) {
    const char* name = at + 1;
    size_t length = 0;

    while (length <= 16 && (size_t)(end - name) > length && strchr("() \\\t\v\f\r\n\"", name[length]) == NULL) ++length;
    if (length > 16 || (size_t)(end - name) <= length || name[length] != '(') return NULL;
    for (at = name + length + 1; (at = (const char*)memchr(at, ')', (size_t)(end - at))) != NULL; ++at)
        if ((size_t)(end - at) >= length + 2 && memcmp(at + 1, name, length) == 0 && at[length + 1] == '"')
            return at + length + 2;
    return end;
}

/* The end of a comment, or NULL if it has none. */
static const char* ptx_inject__skip_comment(const char* at, const char* end) {
    for (at += 2; (at = (const char*)memchr(at, '*', (size_t)(end - at))) != NULL; ++at)
        if (end - at >= 2 && at[1] == '/') return at + 2;
    return NULL;
}

/* From a word or number to its end. Quotes between the digits of a number begin no literal. */
static const char* ptx_inject__skip_word(const char* at, const char* end) {
    const int is_number = ptx_inject__is_digit(*at);
    while (at < end && (ptx_inject__is_word(*at) || (is_number && *at == '\'' && end - at >= 2 && ptx_inject__is_word(at[1]))))
        ++at;
    return at;
}

/* Does a raw string follow a word? */
static int ptx_inject__introduces_raw_string(const char* word, const char* word_end, const char* end) {
    const PtxInject__Slice slice = ptx_inject__between(word, word_end);
    return word_end < end && *word_end == '"' &&
        (ptx_inject__equal(slice, "R") || ptx_inject__equal(slice, "LR") || ptx_inject__equal(slice, "uR") ||
         ptx_inject__equal(slice, "UR") || ptx_inject__equal(slice, "u8R"));
}

/* From a place outside of comments to the end of the literal, the word or the character there. */
static const char* ptx_inject__skip_code(const char* at, const char* end) {
    const char* begin = at;
    if (ptx_inject__is_word(*at)) {
        at = ptx_inject__skip_word(begin, end);
        if (!ptx_inject__introduces_raw_string(begin, at, end)) return at;
        begin = ptx_inject__skip_raw_string(at, end);
        if (begin != NULL) return begin;
        begin = at;
    }
    if (*at == '"' || *at == '\'') {
        at = ptx_inject__literal_end(begin, end);
        return at < end && *at == *begin ? at + 1 : at;
    }
    return at + 1;
}

/* Moves source->scanned to the next block comment before `limit`, and says whether there is one. */
static int ptx_inject__find_block_comment(PtxInject__Source* source, const char* limit) {
    const char* end = source->end;
    const char* at = source->scanned;

    while (at < limit) {
        if (*at == '/' && end - at >= 2 && at[1] == '*') {
            source->scanned = at;
            return 1;
        }
        if (*at == '/' && end - at >= 2 && at[1] == '/') {
            at = ptx_inject__line_end(at, end);
            while (at < end && ptx_inject__goes_on(source->text, at)) at = ptx_inject__line_end(at + 1, end);
            continue;
        }
        if (*at == '\n') {
            source->in_directive = source->in_directive && ptx_inject__goes_on(source->text, at);
            source->is_first = 1;
        } else if (!ptx_inject__is_blank(*at)) {
            source->in_directive = source->in_directive || (source->is_first && *at == '#');
            source->is_first = 0;
        }
        at = ptx_inject__skip_code(at, end);
    }
    source->scanned = at;
    return 0;
}

/* Moves source->scanned past the block comment where it is. */
static void ptx_inject__pass_comment(PtxInject__Source* source) {
    const char* end = ptx_inject__skip_comment(source->scanned, source->end);
    source->scanned = end != NULL ? end : source->end;
}

/* The end of the block comment that contains a place, or NULL. Places must ascend. */
static const char* ptx_inject__comment_around(PtxInject__Source* source, const char* place) {
    while (ptx_inject__find_block_comment(source, place)) {
        ptx_inject__pass_comment(source);
        if (source->scanned > place) return source->scanned;
    }
    return NULL;
}

/* The next annotation, or NULL. */
static const char* ptx_inject__find_annotation(PtxInject__Source* source) {
    const size_t length = sizeof PTX_INJECT__HEADER - 1;
    while (ptx_inject__find_block_comment(source, source->end)) {
        const char* at = source->scanned;
        if (PTX_INJECT__IS(PTX_INJECT__HEADER, at, source->end) ||
            (ptx_inject__begins(at, source->end, PTX_INJECT__HEADER, length) && at[length] == '*')) {
            return at;
        }
        ptx_inject__pass_comment(source);
    }
    return NULL;
}

/* ---- annotated CUDA ---- */

typedef struct PtxInject__Variable {
    PtxInjectMutType mut_type;
    const PtxInjectDataTypeInfo* type;
    PtxInject__Slice operand;
} PtxInject__Variable;

typedef struct PtxInject__Annotation {
    PtxInject__Slice name;
    const char* end;         /* its closing mark */
    PtxInject__Slice indent; /* of its line, if it is first there */
    const char* newline;
    int is_apart; /* there is white space before it, or nothing */
    PtxInject__Variable variables[PTX_INJECT_MAX_ARGS];
    size_t num_variables;
} PtxInject__Annotation;

/* Indentation beyond this is not repeated, so that the output stays linear in the input. */
#define PTX_INJECT__MAX_INDENT 256u

/* Can it be put between parentheses? If not, reports why. */
static PtxInjectResult ptx_inject__check_operand(PtxInject__Source* source, PtxInject__Slice operand) {
    const char* end = operand.begin + operand.length;
    const char* at = ptx_inject__find_other(operand, ptx_inject__is_printable_or_tab);
    size_t depth = 0;

    if (at != NULL)
        PTX_INJECT__REFUSE(source, at, "an operand is printable ASCII, as PTX is; PTX_INJECT can give another one a name");
    for (at = operand.begin; at < end; at = ptx_inject__skip_code(at, end)) {
        if (ptx_inject__is_word(*at)) {
            if (ptx_inject__introduces_raw_string(at, ptx_inject__skip_word(at, end), end))
                PTX_INJECT__REFUSE(source, at, "an operand has no raw strings");
        } else if (*at == '"' || *at == '\'') {
            if (ptx_inject__literal_end(at, end) >= end) PTX_INJECT__REFUSE(source, at, "a quote is not closed on its line");
        } else if (*at == '(' || *at == '[' || *at == '{') {
            ++depth;
        } else if (*at == ')' || *at == ']' || *at == '}') {
            if (depth == 0) PTX_INJECT__REFUSE(source, at, "a bracket is closed that was not opened");
            --depth;
        } else if (depth == 0 && (*at == ',' || *at == ';')) {
            PTX_INJECT__REFUSE(source, at, "one variable a line, without a comma or semicolon after it");
        } else if (ptx_inject__begins(at, end, "/*", 2)) {
            PTX_INJECT__REFUSE(source, at, "a remark after an operand begins with //");
        } else if (*at == '\\') {
            PTX_INJECT__REFUSE(source, at, "no backslash stands in an operand: in a macro, use PTX_INJECT");
        }
    }
    if (depth > 0) PTX_INJECT__REFUSE(source, operand.begin, "a bracket is not closed on its line");
    return PTX_INJECT_SUCCESS;
}

/* An operand goes to the end of its line or to a // outside of literals. */
static PtxInjectResult ptx_inject__read_operand(
    PtxInject__Source* source, const char* begin, const char* line_end, PtxInject__Slice* operand_out
) {
    const char* at = begin;
    while (at < line_end && !ptx_inject__begins(at, line_end, "//", 2))
        at = ptx_inject__is_word(*at) ? ptx_inject__skip_word(at, line_end) : ptx_inject__skip_code(at, line_end);
    *operand_out = ptx_inject__rest(begin, at);
    if (operand_out->length == 0) PTX_INJECT__REFUSE(source, begin, "the operand is missing: in|mod|out TYPE operand");
    return ptx_inject__check_operand(source, *operand_out);
}

/* Checks that a name is made of letters, digits, _ and $. */
static PtxInjectResult ptx_inject__check_name(
    PtxInject__Source* source, PtxInject__Slice name, const char* place, const char* reason_if_missing
) {
    const char* other = ptx_inject__find_other(name, ptx_inject__is_identifier);
    if (name.length == 0) PTX_INJECT__REFUSE(source, place, reason_if_missing);
    if (other != NULL) PTX_INJECT__REFUSE(source, other, "a name is made of letters, digits, _ and $");
    return PTX_INJECT_SUCCESS;
}

/* Reads the variables of one line after another. */
static PtxInjectResult ptx_inject__read_variables(PtxInject__Source* source, const char* at, PtxInject__Annotation* annotation) {
    annotation->num_variables = 0;
    while (at < annotation->end) {
        const char* line_end = ptx_inject__line_end(at, annotation->end);
        const PtxInject__Slice first = ptx_inject__next_token(&at, line_end);
        PtxInject__Variable variable;

        if (first.length > 0 && !ptx_inject__begins(first.begin, line_end, "//", 2)) {
            PTX_INJECT__TRY(ptx_inject__read_mut_type(source, first, &variable.mut_type));
            PTX_INJECT__TRY(ptx_inject__read_type(source, ptx_inject__next_token(&at, line_end), &variable.type));
            PTX_INJECT__TRY(ptx_inject__read_operand(source, at, line_end, &variable.operand));
            if (annotation->num_variables == PTX_INJECT_MAX_ARGS)
                PTX_INJECT__REFUSE(source, variable.operand.begin, "a site has at most PTX_INJECT_MAX_ARGS variables");
            for (size_t i = 0; i < annotation->num_variables; ++i)
                if (ptx_inject__same(annotation->variables[i].operand, variable.operand))
                    PTX_INJECT__REFUSE(source, variable.operand.begin, "two variables of one name at one site");
            annotation->variables[annotation->num_variables++] = variable;
        }
        at = line_end < annotation->end ? line_end + 1 : line_end;
    }
    return PTX_INJECT_SUCCESS;
}

static PtxInjectResult ptx_inject__read_annotation(
    PtxInject__Source* source, const char* header, PtxInject__Annotation* annotation_out
) {
    const char* end = ptx_inject__skip_comment(header, source->end);
    const char* at = header + sizeof PTX_INJECT__HEADER - 1;
    const char* line = header;
    const char* line_end;
    PtxInject__Slice rest;

    if (end == NULL) PTX_INJECT__REFUSE(source, header, "the annotation is not closed by */");
    annotation_out->end = end - 2;
    line_end = ptx_inject__line_end(at, annotation_out->end);
    annotation_out->name = ptx_inject__next_token(&at, line_end);
    PTX_INJECT__TRY(ptx_inject__check_name(source, annotation_out->name, header, "the name is missing: /* PTX_INJECT name"));
    rest = ptx_inject__rest(at, line_end);
    if (rest.length > 0 && !ptx_inject__begins(rest.begin, line_end, "//", 2))
        PTX_INJECT__REFUSE(source, rest.begin, "only the name stands on the first line; each variable has one of its own");
    annotation_out->newline = line_end < annotation_out->end && line_end[-1] == '\r' ? "\r\n" : "\n";
    while (line > source->text && ptx_inject__is_blank(line[-1])) --line;
    const int is_first = line == source->text || line[-1] == '\n';
    annotation_out->is_apart = line < header || is_first;
    annotation_out->indent = ptx_inject__between(line, header);
    if (!is_first || annotation_out->indent.length > PTX_INJECT__MAX_INDENT) annotation_out->indent.length = 0;
    return ptx_inject__read_variables(source, line_end < annotation_out->end ? line_end + 1 : line_end, annotation_out);
}

/* Begins a new line with some text. */
static void ptx_inject__write_line(PtxInject__Writer* writer, const PtxInject__Annotation* annotation, const char* text) {
    ptx_inject__write_string(writer, annotation->newline);
    ptx_inject__write_slice(writer, annotation->indent);
    ptx_inject__write_string(writer, text);
}

/* Writes `, "=f"(z)` or, for the first of its list, `: "=f"(z)`. */
static void ptx_inject__write_constraint(PtxInject__Writer* writer, const PtxInject__Variable* variable, int is_first) {
    static const char* const signs[] = {"=", "+", ""};
    const char* cast = variable->type->register_cast_str != NULL ? variable->type->register_cast_str : "";
    /* Around more than a name with members. */
    const int has_parentheses = cast[0] != '\0' && ptx_inject__find_other(variable->operand, ptx_inject__is_dotted) != NULL;

    ptx_inject__write_string(writer, is_first ? ": \"" : ", \"");
    ptx_inject__write_string(writer, signs[variable->mut_type]);
    ptx_inject__write(writer, &variable->type->register_char, 1);
    ptx_inject__write_string(writer, "\"(");
    ptx_inject__write_string(writer, cast);
    ptx_inject__write_string(writer, has_parentheses ? "(" : "");
    ptx_inject__write_slice(writer, variable->operand);
    ptx_inject__write_string(writer, has_parentheses ? "))" : ")");
}

/* Writes the asm statement that takes an annotation's place. */
static void ptx_inject__write_asm(const PtxInject__Annotation* annotation, PtxInject__Writer* writer) {
    static const PtxInjectMutType order[] = {PTX_INJECT_MUT_TYPE_MOD, PTX_INJECT_MUT_TYPE_OUT, PTX_INJECT_MUT_TYPE_IN};
    PtxInjectMutType previous = PTX_INJECT_MUT_TYPE_IN;
    size_t num_written = 0;

    ptx_inject__write_string(writer, annotation->is_apart ? "asm(" : " asm(");
    ptx_inject__write_line(writer, annotation, "    \"// " PTX_INJECT__START " ");
    ptx_inject__write_slice(writer, annotation->name);
    ptx_inject__write_string(writer, "\\n\\t\"");
    for (size_t i = 0; i < 3; ++i) {
        for (size_t k = 0; k < annotation->num_variables; ++k) {
            const PtxInject__Variable* variable = &annotation->variables[k];
            if (variable->mut_type == order[i]) {
                ptx_inject__write_line(writer, annotation, "    \"// %");
                ptx_inject__write_number(writer, num_written++);
                ptx_inject__write_string(writer, " ");
                ptx_inject__write_string(writer, ptx_inject__mut_types[variable->mut_type]);
                ptx_inject__write_string(writer, " ");
                ptx_inject__write_string(writer, variable->type->name);
                ptx_inject__write_string(writer, " ");
                ptx_inject__write_escaped(writer, variable->operand);
                ptx_inject__write_string(writer, "\\n\\t\"");
            }
        }
    }
    ptx_inject__write_line(writer, annotation, "    \"// " PTX_INJECT__END "\"");

    num_written = 0;
    for (size_t i = 0; i < 3; ++i) {
        for (size_t k = 0; k < annotation->num_variables; ++k) {
            const PtxInject__Variable* variable = &annotation->variables[k];
            if (variable->mut_type == order[i]) {
                const int is_first_input = order[i] == PTX_INJECT_MUT_TYPE_IN && (num_written == 0 || previous != order[i]);
                if (is_first_input && num_written == 0) ptx_inject__write_line(writer, annotation, "    :"); /* no outputs */
                ptx_inject__write_line(writer, annotation, "    ");
                ptx_inject__write_constraint(writer, variable, num_written == 0 || is_first_input);
                previous = order[i];
                ++num_written;
            }
        }
    }
    ptx_inject__write_line(writer, annotation, ");");
}

static PtxInjectResult ptx_inject__process(PtxInject__Source* source, PtxInject__Writer* writer) {
    const char* copied = source->text;
    const char* header;
    PtxInject__Annotation annotation;

    while ((header = ptx_inject__find_annotation(source)) != NULL) {
        if (source->in_directive)
            PTX_INJECT__REFUSE(source, header, "an annotation in a directive of the preprocessor: in a macro, use PTX_INJECT");
        PTX_INJECT__TRY(ptx_inject__read_annotation(source, header, &annotation));
        ptx_inject__write(writer, copied, (size_t)(header - copied));
        ptx_inject__write_asm(&annotation, writer);
        copied = annotation.end + 2;
        source->scanned = copied;
        source->is_first = 0;
    }
    ptx_inject__write(writer, copied, (size_t)(source->end - copied));
    return PTX_INJECT_SUCCESS;
}

PtxInjectResult ptx_inject_process_cuda(
    const char* cuda, const PtxInjectDataTypeInfo* types, size_t num_types, char* buffer, size_t buffer_size,
    size_t* bytes_written_out
) {
    PtxInject__Source source;
    PtxInject__Writer writer = ptx_inject__writer(buffer, buffer_size);

    PTX_INJECT__TRY(ptx_inject__open(&source, cuda, types, num_types));
    PTX_INJECT__TRY(ptx_inject__process(&source, &writer));
    return ptx_inject__finish(&writer, bytes_written_out);
}

PtxInjectResult ptx_inject_diagnose_cuda(
    const char* cuda, const PtxInjectDataTypeInfo* types, size_t num_types, PtxInjectPlace* place_out
) {
    PtxInject__Source source;
    PtxInject__Writer writer = ptx_inject__writer(NULL, 0);
    PtxInjectResult result;

    if (place_out == NULL) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    result = ptx_inject__open(&source, cuda, types, num_types);
    if (result == PTX_INJECT_SUCCESS) result = ptx_inject__process(&source, &writer);
    ptx_inject__tell(&source, place_out);
    return result;
}

/* ---- handles ---- */

/* Strings are offsets into the handle's strings. */
typedef struct PtxInject__Inject {
    size_t name;
    size_t first_arg;
    size_t num_args;
    size_t num_sites;
    size_t body_offset; /* first site's, from its name to its END, in the text that create reads; 0 in the comment form */
    size_t body_length;
} PtxInject__Inject;

typedef struct PtxInject__Arg {
    size_t name;
    size_t register_name;
    size_t register_type;
    size_t data_type;
    PtxInjectMutType mut_type;
} PtxInject__Arg;

typedef struct PtxInject__Site {
    size_t inject_idx;
    size_t text_offset; /* the stub stands before this byte of the handle's text */
} PtxInject__Site;

/* An entry of the hash table of names. */
typedef struct PtxInject__Entry {
    uint64_t hash;
    size_t index_plus_one; /* 0: free */
} PtxInject__Entry;

struct PtxInjectHandleImpl {
    PtxInject__Writer text; /* all but the stubs */
    PtxInject__Writer strings;
    PtxInject__Writer injects;
    PtxInject__Writer args;
    PtxInject__Writer sites;
    PtxInject__Entry* entries; /* hash table, at most half full */
    size_t num_entries;        /* a power of two, or 0 */
};

#define PTX_INJECT__ITEMS(type, writer) ((type*)(void*)(writer).bytes)
#define PTX_INJECT__COUNT_ITEMS(type, writer) ((writer).length / sizeof(type))
#define PTX_INJECT__INJECTS(handle) PTX_INJECT__ITEMS(PtxInject__Inject, (handle)->injects)
#define PTX_INJECT__NUM_INJECTS(handle) PTX_INJECT__COUNT_ITEMS(PtxInject__Inject, (handle)->injects)

PtxInjectResult ptx_inject_destroy(PtxInjectHandle handle) {
    if (handle != NULL) {
        PTX_INJECT_FREE(handle->text.bytes);
        PTX_INJECT_FREE(handle->strings.bytes);
        PTX_INJECT_FREE(handle->injects.bytes);
        PTX_INJECT_FREE(handle->args.bytes);
        PTX_INJECT_FREE(handle->sites.bytes);
        PTX_INJECT_FREE(handle->entries);
        PTX_INJECT_FREE(handle);
    }
    return PTX_INJECT_SUCCESS;
}

#define PTX_INJECT__MIX UINT64_C(0x9E3779B97F4A7C15) /* 2^64 / golden ratio, odd */

static uint64_t ptx_inject__hash(PtxInject__Slice name) {
    uint64_t hash = (uint64_t)name.length * PTX_INJECT__MIX;
    while (name.length > 0) {
        const size_t length = name.length < sizeof hash ? name.length : sizeof hash;
        uint64_t word = 0;
        memcpy(&word, name.begin, length);
        hash = ((hash ^ (hash >> 29)) + word) * PTX_INJECT__MIX;
        name.begin += length;
        name.length -= length;
    }
    return hash ^ (hash >> 32);
}

/* The entry that holds a name, or the free one for it. There must be a table. */
static PtxInject__Entry* ptx_inject__find_entry(const struct PtxInjectHandleImpl* handle, uint64_t hash, PtxInject__Slice name) {
    const PtxInject__Inject* injects = PTX_INJECT__INJECTS(handle);
    size_t i = (size_t)hash & (handle->num_entries - 1);
    for (;; i = (i + 1) & (handle->num_entries - 1)) {
        PtxInject__Entry* entry = &handle->entries[i];
        if (entry->index_plus_one == 0 ||
            (entry->hash == hash && ptx_inject__equal(name, handle->strings.bytes + injects[entry->index_plus_one - 1].name))) {
            return entry;
        }
    }
}

/* ---- reading markers ---- */

/* One line between START and END. */
typedef struct PtxInject__Marker {
    PtxInject__Slice register_name; /* in the comment form the compiler's, with its percent sign, or a literal */
    PtxInjectMutType mut_type;
    PtxInject__Slice register_type;
    PtxInject__Slice data_type;
    PtxInject__Slice name;
    const PtxInjectDataTypeInfo* type; /* NULL in the macro form */
    char stable[12]; /* in the comment form: the register around the stub, " %_x" and the number of the variable */
    size_t stable_length;
} PtxInject__Marker;

typedef struct PtxInject__Reader {
    struct PtxInjectHandleImpl* handle;
    PtxInject__Source* source;
    PtxInject__Writer markers; /* of the site that is being read */
    PtxInject__Slice previous; /* site, from its START to the end of its END's line, if it gets the stub alone */
} PtxInject__Reader;

#define PTX_INJECT__MARKERS(reader) PTX_INJECT__ITEMS(PtxInject__Marker, (reader)->markers)
#define PTX_INJECT__NUM_MARKERS(reader) PTX_INJECT__COUNT_ITEMS(PtxInject__Marker, (reader)->markers)

#define PTX_INJECT__REFUSE_MEMORY(source) PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_OUT_OF_MEMORY, source, NULL, "out of memory")

static PtxInject__Slice ptx_inject__stable(const PtxInject__Marker* marker) {
    return ptx_inject__between(marker->stable, marker->stable + marker->stable_length);
}

static PtxInject__Slice ptx_inject__stable_name(const PtxInject__Marker* marker) {
    return ptx_inject__between(marker->stable + 2, marker->stable + marker->stable_length);
}

/* Adds an item, or room for one if it is NULL, to an array of the handle or reader. */
PTX_INJECT__INLINE PtxInjectResult
ptx_inject__add(PtxInject__Reader* reader, PtxInject__Writer* items, const void* item, size_t size) {
    ptx_inject__write(items, item, size);
    if (!items->is_growing) PTX_INJECT__REFUSE_MEMORY(reader->source);
    return PTX_INJECT_SUCCESS;
}

/* Adds some bytes and a NUL to the strings, and gives their place. */
static size_t ptx_inject__add_string(struct PtxInjectHandleImpl* handle, PtxInject__Slice string) {
    const size_t offset = handle->strings.length;
    ptx_inject__write_slice(&handle->strings, string);
    ptx_inject__write(&handle->strings, "", 1);
    return offset;
}

/* Enlarges the table if one more name would make it more than half full. */
static PtxInjectResult ptx_inject__grow_table(PtxInject__Reader* reader) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    const size_t num_entries = handle->num_entries == 0 ? 256 : 4 * handle->num_entries;
    PtxInject__Entry* old = handle->entries;
    PtxInject__Entry* entries = NULL;
    size_t k;

    if (2 * (PTX_INJECT__NUM_INJECTS(handle) + 1) <= handle->num_entries) return PTX_INJECT_SUCCESS;
    if (num_entries <= SIZE_MAX / 4 / sizeof(PtxInject__Entry))
        entries = (PtxInject__Entry*)PTX_INJECT_MALLOC(num_entries * sizeof(PtxInject__Entry));
    if (entries == NULL) PTX_INJECT__REFUSE_MEMORY(reader->source);
    memset(entries, 0, num_entries * sizeof(PtxInject__Entry));
    for (size_t i = 0; i < handle->num_entries; ++i) {
        if (old[i].index_plus_one != 0) {
            for (k = (size_t)old[i].hash & (num_entries - 1); entries[k].index_plus_one != 0; k = (k + 1) & (num_entries - 1)) {
            }
            entries[k] = old[i];
        }
    }
    PTX_INJECT_FREE(old);
    handle->entries = entries;
    handle->num_entries = num_entries;
    return PTX_INJECT_SUCCESS;
}

/* A letter class of NVVM's virtual registers and digits, or one of its stack pointers. */
static int ptx_inject__is_compilers(PtxInject__Slice name) {
    static const char* const classes[] = {"p", "rs", "r", "rd", "rq", "rc", "f", "fd", "h", "hh", "b"};
    const char* end = name.begin + name.length;
    const char* digits = ptx_inject__find_other(name, ptx_inject__is_letter);

    if (digits == NULL) return ptx_inject__equal(name, "SP") || ptx_inject__equal(name, "SPL");
    if (ptx_inject__find_other(ptx_inject__between(digits, end), ptx_inject__is_digit) != NULL) return 0;
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; ++i)
        if (ptx_inject__equal(ptx_inject__between(name.begin, digits), classes[i])) return 1;
    return 0;
}

/* A compiler's register with its percent sign, other than those declared around a stub (_x0, _x1, ...), or, if it is only read, a
   literal. */
static int ptx_inject__is_operand(PtxInject__Slice text, PtxInjectMutType mut_type) {
    const char* end = text.begin + text.length;
    if (text.length > 0 && text.begin[0] == '%') {
        const PtxInject__Slice name = ptx_inject__between(text.begin + 1, end);
        const int is_stable = name.length > 2 && memcmp(name.begin, "_x", 2) == 0 &&
            ptx_inject__consists_of(ptx_inject__between(name.begin + 2, end), ptx_inject__is_digit);
        return !is_stable && ptx_inject__consists_of(name, ptx_inject__is_identifier);
    }
    if (text.length > 0 && text.begin[0] == '-') text = ptx_inject__between(text.begin + 1, end);
    return mut_type == PTX_INJECT_MUT_TYPE_IN && ptx_inject__consists_of(text, ptx_inject__is_dotted) &&
        ptx_inject__is_digit(text.begin[0]);
}

/* Reads a line after its //. */
static PtxInjectResult ptx_inject__read_marker(
    PtxInject__Source* source, const char* at, const char* line_end, size_t arg_idx, PtxInject__Marker* marker
) {
    const char* unprintable = ptx_inject__find_other(ptx_inject__rest(at, line_end), ptx_inject__is_printable_or_tab);
    PtxInject__Slice mut_type;

    if (unprintable != NULL) PTX_INJECT__REFUSE(source, unprintable, "a marker is printable ASCII, as PTX is");
    marker->register_name = ptx_inject__next_token(&at, line_end);
    mut_type = ptx_inject__next_token(&at, line_end);
    if (mut_type.length == 1) {
        switch (mut_type.begin[0]) {
            case 'o': marker->mut_type = PTX_INJECT_MUT_TYPE_OUT; break;
            case 'm': marker->mut_type = PTX_INJECT_MUT_TYPE_MOD; break;
            case 'i': marker->mut_type = PTX_INJECT_MUT_TYPE_IN; break;
            default: PTX_INJECT__REFUSE(source, mut_type.begin, "not one of m, o, i, mod, out, in");
        }
        if (!ptx_inject__consists_of(marker->register_name, ptx_inject__is_identifier) ||
            ptx_inject__is_compilers(marker->register_name)) {
            PTX_INJECT__REFUSE(
                source, marker->register_name.begin,
                "a register is named with letters, digits, _ and $, and not as compilers do (f1, r2, rd3, p1, SP)"
            );
        }
        marker->type = NULL;
        marker->register_type = ptx_inject__next_token(&at, line_end);
        if (!ptx_inject__consists_of(marker->register_type, ptx_inject__is_dotted))
            PTX_INJECT__REFUSE(source, marker->register_type.begin, "not a PTX type, as in f32");
        marker->data_type = ptx_inject__next_token(&at, line_end);
    } else {
        PtxInject__Writer stable = ptx_inject__writer(marker->stable, sizeof marker->stable);
        ptx_inject__write(&stable, " %_x", 4);
        ptx_inject__write_number(&stable, arg_idx);
        marker->stable_length = stable.length;
        PTX_INJECT__TRY(ptx_inject__read_mut_type(source, mut_type, &marker->mut_type));
        if (!ptx_inject__is_operand(marker->register_name, marker->mut_type)) {
            PTX_INJECT__REFUSE(
                source, marker->register_name.begin,
                "not a register (or, to be read, a literal), or one with the name of a site's (%_x0)"
            );
        }
        marker->data_type = ptx_inject__next_token(&at, line_end);
        PTX_INJECT__TRY(ptx_inject__read_type(source, marker->data_type, &marker->type));
        marker->register_type = ptx_inject__slice(marker->type->register_type);
    }
    marker->name = ptx_inject__rest(at, line_end);
    if (marker->name.length == 0) PTX_INJECT__REFUSE(source, at, "the variable's name is missing");
    return PTX_INJECT_SUCCESS;
}

/* Reads the lines after the name up to the END into reader->markers. */
static PtxInjectResult ptx_inject__read_body(
    PtxInject__Reader* reader, const char* start, const char* at, const char** body_end_out
) {
    PtxInject__Source* source = reader->source;
    const char* line_end;
    reader->markers.length = 0;
    for (at = ptx_inject__line_end(at, source->end);; at = line_end) {
        const size_t num_markers = PTX_INJECT__NUM_MARKERS(reader);
        PtxInject__Marker* markers;
        PtxInject__Marker* marker;

        if (at == source->end) PTX_INJECT__REFUSE(source, start, "no // PTX_INJECT_END follows this PTX_INJECT_START");
        line_end = ptx_inject__line_end(at + 1, source->end);
        at = ptx_inject__skip_blanks(at + 1, line_end);
        if (at == line_end) continue;
        if (!ptx_inject__begins(at, line_end, "//", 2))
            PTX_INJECT__REFUSE(source, at, "only // lines stand between PTX_INJECT_START and PTX_INJECT_END");
        at = ptx_inject__skip_blanks(at + 2, line_end);
        if (PTX_INJECT__IS(PTX_INJECT__END, at, line_end)) {
            *body_end_out = at + sizeof PTX_INJECT__END - 1;
            return PTX_INJECT_SUCCESS;
        }
        if (PTX_INJECT__IS(PTX_INJECT__START, at, line_end))
            PTX_INJECT__REFUSE(source, at, "a PTX_INJECT_START before the PTX_INJECT_END of the one before");
        if (num_markers == PTX_INJECT_MAX_ARGS)
            PTX_INJECT__REFUSE(source, at, "a site has at most PTX_INJECT_MAX_ARGS variables");
        PTX_INJECT__TRY(ptx_inject__add(reader, &reader->markers, NULL, sizeof *marker));
        markers = PTX_INJECT__ITEMS(PtxInject__Marker, reader->markers);
        marker = &markers[num_markers];
        PTX_INJECT__TRY(ptx_inject__read_marker(source, at, line_end, num_markers, marker));
        for (size_t i = 0; i < num_markers; ++i)
            if (ptx_inject__same(markers[i].name, marker->name))
                PTX_INJECT__REFUSE(source, marker->name.begin, "two variables of one name at one site");
        if ((marker->type == NULL) != (markers[0].type == NULL))
            PTX_INJECT__REFUSE(source, at, "markers of both forms at one site");
    }
}

/* Adds the arguments of reader->markers. Their words, which lie in [begin, end), are copied at once. */
static PtxInjectResult ptx_inject__add_args(PtxInject__Reader* reader, const char* begin, const char* end) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    const size_t offset = ptx_inject__add_string(handle, ptx_inject__between(begin, end));
    size_t i;

/* A word's place in the copy, where the blank or line break after it becomes a NUL. */
#define PTX_INJECT__PLACE(word)                                                             \
    (handle->strings.bytes[offset + (size_t)((word).begin - begin) + (word).length] = '\0', \
     offset + (size_t)((word).begin - begin))

    for (i = 0; i < PTX_INJECT__NUM_MARKERS(reader) && handle->strings.is_growing; ++i) {
        const PtxInject__Marker* marker = &PTX_INJECT__MARKERS(reader)[i];
        PtxInject__Arg arg;

        arg.mut_type = marker->mut_type;
        arg.name = PTX_INJECT__PLACE(marker->name);
        arg.data_type = PTX_INJECT__PLACE(marker->data_type);
        if (marker->type == NULL) {
            arg.register_name = PTX_INJECT__PLACE(marker->register_name);
            arg.register_type = PTX_INJECT__PLACE(marker->register_type);
        } else {
            arg.register_name = ptx_inject__add_string(handle, ptx_inject__stable_name(marker));
            arg.register_type = ptx_inject__add_string(handle, marker->register_type);
        }
        PTX_INJECT__TRY(ptx_inject__add(reader, &handle->args, &arg, sizeof arg));
    }
#undef PTX_INJECT__PLACE
    return PTX_INJECT_SUCCESS;
}

/* The first of reader->markers that differs from the inject's; their number, if none differs up to the shorter length. */
static size_t ptx_inject__first_difference(const PtxInject__Reader* reader, const PtxInject__Inject* inject) {
    const struct PtxInjectHandleImpl* handle = reader->handle;
    const char* strings = handle->strings.bytes;
    size_t i;

    for (i = 0; i < PTX_INJECT__NUM_MARKERS(reader) && i < inject->num_args; ++i) {
        const PtxInject__Marker* marker = &PTX_INJECT__MARKERS(reader)[i];
        const PtxInject__Arg* arg = &PTX_INJECT__ITEMS(PtxInject__Arg, handle->args)[inject->first_arg + i];
        const PtxInject__Slice register_name = marker->type != NULL ? ptx_inject__stable_name(marker) : marker->register_name;
        if (marker->mut_type != arg->mut_type || !ptx_inject__equal(marker->name, strings + arg->name) ||
            !ptx_inject__equal(register_name, strings + arg->register_name) ||
            !ptx_inject__equal(marker->register_type, strings + arg->register_type) ||
            !ptx_inject__equal(marker->data_type, strings + arg->data_type)) {
            break;
        }
    }
    return i;
}

static PtxInjectResult ptx_inject__add_site(PtxInject__Reader* reader, size_t inject_idx) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    PtxInject__Site site;
    site.inject_idx = inject_idx;
    site.text_offset = handle->text.length;
    ++PTX_INJECT__INJECTS(handle)[inject_idx].num_sites;
    return ptx_inject__add(reader, &handle->sites, &site, sizeof site);
}

/* Writes `mov.f32 %_x0, source;` or `mov.f32 destination, %_x0;` on a line of its own. */
static void ptx_inject__write_mov(
    PtxInject__Writer* text, PtxInject__Slice indent, const PtxInject__Marker* marker, int is_into_stub
) {
    ptx_inject__write_slice(text, indent);
    ptx_inject__write_string(text, "mov.");
    ptx_inject__write_string(text, marker->type->mov_postfix);
    if (is_into_stub) {
        ptx_inject__write_slice(text, ptx_inject__stable(marker));
        ptx_inject__write_string(text, ", ");
        ptx_inject__write_slice(text, marker->register_name);
    } else {
        ptx_inject__write_string(text, " ");
        ptx_inject__write_slice(text, marker->register_name);
        ptx_inject__write_string(text, ",");
        ptx_inject__write_slice(text, ptx_inject__stable(marker));
    }
    ptx_inject__write_string(text, ";\n");
}

/* Adds a site of the comment form: stable registers and movs around the stub. */
static PtxInjectResult ptx_inject__add_wrapped_site(PtxInject__Reader* reader, PtxInject__Slice indent, size_t inject_idx) {
    PtxInject__Writer* text = &reader->handle->text;
    const PtxInject__Marker* markers = PTX_INJECT__MARKERS(reader);
    const size_t num_markers = PTX_INJECT__NUM_MARKERS(reader);

    ptx_inject__write_string(text, "{\n");
    for (size_t i = 0; i < num_markers; ++i) {
        ptx_inject__write_slice(text, indent);
        ptx_inject__write_string(text, ".reg .");
        ptx_inject__write_slice(text, markers[i].register_type);
        ptx_inject__write_slice(text, ptx_inject__stable(&markers[i]));
        ptx_inject__write_string(text, ";\n");
        if (markers[i].mut_type != PTX_INJECT_MUT_TYPE_OUT) ptx_inject__write_mov(text, indent, &markers[i], 1);
    }
    PTX_INJECT__TRY(ptx_inject__add_site(reader, inject_idx));
    ptx_inject__write_string(text, "\n");
    for (size_t i = 0; i < num_markers; ++i)
        if (markers[i].mut_type != PTX_INJECT_MUT_TYPE_IN) ptx_inject__write_mov(text, indent, &markers[i], 0);
    ptx_inject__write_slice(text, indent);
    ptx_inject__write_string(text, "}");
    return PTX_INJECT_SUCCESS;
}

/* Reads one site. `start` is its PTX_INJECT_START, `indent` the text before that line's //; *body_end_out is just past its
   PTX_INJECT_END. */
static PtxInjectResult ptx_inject__read_site(
    PtxInject__Reader* reader, PtxInject__Slice indent, const char* start, const char** body_end_out
) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    PtxInject__Source* source = reader->source;
    const char* body = start + sizeof PTX_INJECT__START - 1;
    const char* body_end;
    const char* line_end = ptx_inject__line_end(body, source->end);
    const PtxInject__Slice name = ptx_inject__next_token(&body, line_end);
    const PtxInject__Slice rest = ptx_inject__rest(body, line_end);
    const uint64_t hash = ptx_inject__hash(name);
    PtxInject__Entry* entry;
    PtxInject__Inject model; /* of this name or, if it is new, of the previous one, which often has the same variables */
    size_t num_markers, num_same;
    int is_wrapped = 0;

    PTX_INJECT__TRY(ptx_inject__check_name(source, name, start, "the name is missing: // PTX_INJECT_START name"));
    if (rest.length > 0) PTX_INJECT__REFUSE(source, rest.begin, "a name is one word");
    PTX_INJECT__TRY(ptx_inject__grow_table(reader));
    entry = ptx_inject__find_entry(handle, hash, name);
    const int is_new = entry->index_plus_one == 0;
    const size_t inject_idx = is_new ? PTX_INJECT__NUM_INJECTS(handle) : entry->index_plus_one - 1;
    memset(&model, 0, sizeof model);
    if (PTX_INJECT__NUM_INJECTS(handle) > 0) model = PTX_INJECT__INJECTS(handle)[is_new ? inject_idx - 1 : inject_idx];
    if (model.body_length > 0 &&
        ptx_inject__begins_with_word(body, source->end, source->text + model.body_offset, model.body_length)) {
        body_end = body + model.body_length; /* identical text */
        num_markers = num_same = model.num_args;
    } else {
        PTX_INJECT__TRY(ptx_inject__read_body(reader, start, body, &body_end));
        num_markers = PTX_INJECT__NUM_MARKERS(reader);
        num_same = ptx_inject__first_difference(reader, &model);
        is_wrapped = num_markers > 0 && PTX_INJECT__MARKERS(reader)[0].type != NULL;
    }
    if (ptx_inject__rest(body_end, ptx_inject__line_end(body_end, source->end)).length > 0)
        PTX_INJECT__REFUSE(source, body_end, "nothing follows PTX_INJECT_END on its line");
    *body_end_out = body_end;
    reader->previous = ptx_inject__between(start, is_wrapped ? start : ptx_inject__line_end(body_end, source->end));

    if (is_new) {
#ifdef PTX_INJECT_MAX_UNIQUE_INJECTS
        if (inject_idx >= (size_t)(PTX_INJECT_MAX_UNIQUE_INJECTS)) {
            PTX_INJECT__REFUSE_AS(
                PTX_INJECT_ERROR_MAX_UNIQUE_INJECTS_EXCEEDED, source, name.begin, "more names than PTX_INJECT_MAX_UNIQUE_INJECTS"
            );
        }
#endif
        if (num_same < num_markers || num_same < model.num_args) {
            model.first_arg = PTX_INJECT__COUNT_ITEMS(PtxInject__Arg, handle->args);
            model.num_args = num_markers;
            PTX_INJECT__TRY(ptx_inject__add_args(reader, body, body_end));
        }
        model.name = ptx_inject__add_string(handle, name);
        model.num_sites = 0;
        model.body_offset = (size_t)(body - source->text);
        model.body_length = is_wrapped ? 0 : (size_t)(body_end - body);
        PTX_INJECT__TRY(ptx_inject__add(reader, &handle->injects, &model, sizeof model));
        entry->hash = hash;
        entry->index_plus_one = inject_idx + 1;
    } else if (num_same < num_markers || num_same < model.num_args) {
        PTX_INJECT__REFUSE_AS(
            PTX_INJECT_ERROR_INCONSISTENT_INJECTION, source,
            num_same < num_markers ? PTX_INJECT__MARKERS(reader)[num_same].register_name.begin : start,
            num_same < num_markers ? "another variable than at the first site of this name"
                                   : "fewer variables than at the first site of this name"
        );
    }
    if (is_wrapped)
        PTX_INJECT__TRY(ptx_inject__add_wrapped_site(reader, indent, inject_idx));
    else
        PTX_INJECT__TRY(ptx_inject__add_site(reader, inject_idx));
    if (!handle->text.is_growing || !handle->strings.is_growing) PTX_INJECT__REFUSE_MEMORY(source);
    return PTX_INJECT_SUCCESS;
}

/* The // of a marker, given its word; NULL if the word is not the first thing in a line's comment. *indent_out: the blanks before
   it. */
static const char* ptx_inject__comment_begin(const char* text, const char* word, PtxInject__Slice* indent_out) {
    const char* comment;
    const char* line;

    while (word > text && ptx_inject__is_blank(word[-1])) --word;
    if (word - text < 2 || word[-1] != '/' || word[-2] != '/') return NULL;
    comment = word - 2;
    for (line = comment; line > text && ptx_inject__is_blank(line[-1]); --line) {
    }
    *indent_out = ptx_inject__between(line, comment);
    if (indent_out->length > PTX_INJECT__MAX_INDENT) indent_out->length = 0;
    return line == text || line[-1] == '\n' ? comment : NULL;
}

/* The next PTX_INJECT_, found by its J, the rarest of its letters in PTX. */
static const char* ptx_inject__find_marker(const char* text, const char* at, const char* end) {
    const size_t before = sizeof "PTX_IN" - 1;
    for (; (at = (const char*)memchr(at, 'J', (size_t)(end - at))) != NULL; ++at) {
        if ((size_t)(at - text) >= before &&
            ptx_inject__begins(at - before, end, PTX_INJECT__MARKER, sizeof PTX_INJECT__MARKER - 1)) {
            return at - before;
        }
    }
    return NULL;
}

/* Is there a block comment? Compilers write none. */
static int ptx_inject__has_block_comment(const char* text, const char* end) {
    const char* at = text;
    for (; (at = (const char*)memchr(at, '*', (size_t)(end - at))) != NULL; ++at)
        if (at > text && at[-1] == '/') return 1;
    return 0;
}

static PtxInjectResult ptx_inject__read(PtxInject__Reader* reader) {
    PtxInject__Source* source = reader->source;
    PtxInject__Writer* out = &reader->handle->text;
    const char* copied = source->text;
    const char* at = source->text;
    const int has_block_comments = ptx_inject__has_block_comment(source->text, source->end);

    reader->previous = ptx_inject__between(at, at);
    while ((at = ptx_inject__find_marker(source->text, at, source->end)) != NULL) {
        const size_t length = reader->previous.length;
        const int is_repeated = length > 0 && ptx_inject__begins(at, source->end, reader->previous.begin, length) &&
            (at + length == source->end || at[length] == '\n');
        const int is_start = is_repeated || PTX_INJECT__IS(PTX_INJECT__START, at, source->end);
        const char* comment = NULL;
        const char* behind;
        PtxInject__Slice indent;

        if (is_start || PTX_INJECT__IS(PTX_INJECT__END, at, source->end))
            comment = ptx_inject__comment_begin(source->text, at, &indent);
        if (comment == NULL) {
            at += sizeof PTX_INJECT__MARKER - 1;
            continue;
        }
        behind = has_block_comments ? ptx_inject__comment_around(source, comment) : NULL;
        if (behind != NULL) {
            at = behind;
            continue;
        }
        if (!is_start) PTX_INJECT__REFUSE(source, at, "no // PTX_INJECT_START precedes this PTX_INJECT_END");
        ptx_inject__write(out, copied, (size_t)(comment - copied));
        if (is_repeated) {
            const size_t num_sites = PTX_INJECT__COUNT_ITEMS(PtxInject__Site, reader->handle->sites);
            const PtxInject__Site* last = PTX_INJECT__ITEMS(PtxInject__Site, reader->handle->sites) + num_sites - 1;
            PTX_INJECT__TRY(ptx_inject__add_site(reader, last->inject_idx));
            at += length;
        } else {
            PTX_INJECT__TRY(ptx_inject__read_site(reader, indent, at, &at));
        }
        copied = at;
    }
    return ptx_inject__add(reader, out, copied, (size_t)(source->end - copied));
}

static PtxInjectResult ptx_inject__create(PtxInject__Source* source, PtxInjectHandle* handle_out) {
    PtxInject__Reader reader;
    struct PtxInjectHandleImpl* handle = (struct PtxInjectHandleImpl*)PTX_INJECT_MALLOC(sizeof *handle);
    PtxInjectResult result;

    *handle_out = NULL;
    if (handle == NULL) PTX_INJECT__REFUSE_MEMORY(source);
    memset(handle, 0, sizeof *handle);
    handle->text.is_growing = handle->strings.is_growing = 1;
    handle->injects.is_growing = handle->args.is_growing = handle->sites.is_growing = 1;
    reader.handle = handle;
    reader.source = source;
    reader.markers = ptx_inject__writer(NULL, 0);
    reader.markers.is_growing = 1;
    /* The macro form needs no more than the text, the comment form seldom more than this. */
    handle->text = ptx_inject__grown(handle->text, (size_t)(source->end - source->text) / 2 * 3 + 1);
    result = ptx_inject__read(&reader);
    PTX_INJECT_FREE(reader.markers.bytes);
    if (result != PTX_INJECT_SUCCESS) {
        (void)ptx_inject_destroy(handle);
        return result;
    }
    *handle_out = handle;
    return PTX_INJECT_SUCCESS;
}

PtxInjectResult ptx_inject_create_with_types(
    PtxInjectHandle* handle_out, const char* ptx, const PtxInjectDataTypeInfo* types, size_t num_types
) {
    PtxInject__Source source;

    if (handle_out == NULL) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    *handle_out = NULL;
    PTX_INJECT__TRY(ptx_inject__open(&source, ptx, types, num_types));
    return ptx_inject__create(&source, handle_out);
}

PtxInjectResult ptx_inject_create(PtxInjectHandle* handle_out, const char* ptx) {
    return ptx_inject_create_with_types(handle_out, ptx, NULL, 0);
}

PtxInjectResult ptx_inject_diagnose_ptx(
    const char* ptx, const PtxInjectDataTypeInfo* types, size_t num_types, PtxInjectPlace* place_out
) {
    PtxInject__Source source;
    PtxInjectHandle handle = NULL;
    PtxInjectResult result;

    if (place_out == NULL) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    result = ptx_inject__open(&source, ptx, types, num_types);
    if (result == PTX_INJECT_SUCCESS) result = ptx_inject__create(&source, &handle);
    ptx_inject__tell(&source, place_out);
    (void)ptx_inject_destroy(handle);
    return result;
}

/* ---- queries ---- */

/* Writes an answer that was asked for. */
#define PTX_INJECT__ANSWER(pointer, value) \
    do {                                   \
        if ((pointer) != NULL) {           \
            *(pointer) = (value);          \
        }                                  \
    } while (0)

PtxInjectResult ptx_inject_num_injects(PtxInjectHandle handle, size_t* num_injects_out) {
    if (handle == NULL) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    PTX_INJECT__ANSWER(num_injects_out, PTX_INJECT__NUM_INJECTS(handle));
    return PTX_INJECT_SUCCESS;
}

PtxInjectResult ptx_inject_inject_info_by_index(
    PtxInjectHandle handle, size_t inject_idx, const char** inject_name_out, size_t* num_args_out, size_t* num_sites_out
) {
    const PtxInject__Inject* inject;

    if (handle == NULL) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    if (inject_idx >= PTX_INJECT__NUM_INJECTS(handle)) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX);
    inject = &PTX_INJECT__INJECTS(handle)[inject_idx];
    PTX_INJECT__ANSWER(inject_name_out, handle->strings.bytes + inject->name);
    PTX_INJECT__ANSWER(num_args_out, inject->num_args);
    PTX_INJECT__ANSWER(num_sites_out, inject->num_sites);
    return PTX_INJECT_SUCCESS;
}

PtxInjectResult ptx_inject_inject_info_by_name(
    PtxInjectHandle handle, const char* inject_name, size_t* inject_idx_out, size_t* num_args_out, size_t* num_sites_out
) {
    PtxInject__Slice name;
    const PtxInject__Entry* entry = NULL;

    if (handle == NULL || inject_name == NULL) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    name = ptx_inject__slice(inject_name);
    if (handle->num_entries > 0) entry = ptx_inject__find_entry(handle, ptx_inject__hash(name), name);
    if (entry == NULL || entry->index_plus_one == 0) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND);
    PTX_INJECT__ANSWER(inject_idx_out, entry->index_plus_one - 1);
    return ptx_inject_inject_info_by_index(handle, entry->index_plus_one - 1, NULL, num_args_out, num_sites_out);
}

PtxInjectResult ptx_inject_variable_info_by_index(
    PtxInjectHandle handle, size_t inject_idx, size_t arg_idx, const char** variable_name_out, const char** register_name_out,
    PtxInjectMutType* mut_type_out, const char** register_type_name_out, const char** data_type_name_out
) {
    const PtxInject__Inject* inject;
    const PtxInject__Arg* arg;

    if (handle == NULL) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    if (inject_idx >= PTX_INJECT__NUM_INJECTS(handle)) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX);
    inject = &PTX_INJECT__INJECTS(handle)[inject_idx];
    if (arg_idx >= inject->num_args) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    arg = &PTX_INJECT__ITEMS(PtxInject__Arg, handle->args)[inject->first_arg + arg_idx];
    PTX_INJECT__ANSWER(variable_name_out, handle->strings.bytes + arg->name);
    PTX_INJECT__ANSWER(register_name_out, handle->strings.bytes + arg->register_name);
    PTX_INJECT__ANSWER(mut_type_out, arg->mut_type);
    PTX_INJECT__ANSWER(register_type_name_out, handle->strings.bytes + arg->register_type);
    PTX_INJECT__ANSWER(data_type_name_out, handle->strings.bytes + arg->data_type);
    return PTX_INJECT_SUCCESS;
}

PtxInjectResult ptx_inject_variable_info_by_name(
    PtxInjectHandle handle, size_t inject_idx, const char* variable_name, size_t* arg_idx_out, const char** register_name_out,
    PtxInjectMutType* mut_type_out, const char** register_type_name_out, const char** data_type_name_out
) {
    const PtxInject__Inject* inject;
    const PtxInject__Arg* args;
    size_t arg_idx = 0;

    if (handle == NULL || variable_name == NULL || inject_idx >= PTX_INJECT__NUM_INJECTS(handle))
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    inject = &PTX_INJECT__INJECTS(handle)[inject_idx];
    args = PTX_INJECT__ITEMS(PtxInject__Arg, handle->args);
    while (arg_idx < inject->num_args &&
           strcmp(handle->strings.bytes + args[inject->first_arg + arg_idx].name, variable_name) != 0) {
        ++arg_idx;
    }
    if (arg_idx == inject->num_args) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND);
    PTX_INJECT__ANSWER(arg_idx_out, arg_idx);
    return ptx_inject_variable_info_by_index(
        handle, inject_idx, arg_idx, NULL, register_name_out, mut_type_out, register_type_name_out, data_type_name_out
    );
}

/* ---- rendering ---- */

/* `lengths` NULL: the stubs are strings. */
static PtxInjectResult ptx_inject__render(
    PtxInjectHandle handle, const char* const* stubs, const size_t* lengths, size_t num_stubs, char* buffer, size_t buffer_size,
    size_t* bytes_written_out
) {
    PtxInject__Writer writer = ptx_inject__writer(buffer, buffer_size);
    const PtxInject__Site* sites;
    size_t previous_idx = SIZE_MAX;
    size_t stub_length = 0;
    size_t copied = 0;

    if (handle == NULL || (stubs == NULL && num_stubs > 0)) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    if (num_stubs != PTX_INJECT__NUM_INJECTS(handle)) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_WRONG_NUM_STUBS);
    for (size_t i = 0; i < num_stubs; ++i)
        if (stubs[i] == NULL) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    sites = PTX_INJECT__ITEMS(PtxInject__Site, handle->sites);
    const size_t num_sites = PTX_INJECT__COUNT_ITEMS(PtxInject__Site, handle->sites);
    for (size_t i = 0; i < num_sites; ++i) {
        if (sites[i].inject_idx != previous_idx) {
            previous_idx = sites[i].inject_idx;
            stub_length = lengths != NULL ? lengths[previous_idx] : strlen(stubs[previous_idx]);
        }
        ptx_inject__write(&writer, handle->text.bytes + copied, sites[i].text_offset - copied);
        ptx_inject__write(&writer, stubs[previous_idx], stub_length);
        copied = sites[i].text_offset;
    }
    ptx_inject__write(&writer, handle->text.bytes + copied, handle->text.length - copied);
    return ptx_inject__finish(&writer, bytes_written_out);
}

PtxInjectResult ptx_inject_render_ptx(
    PtxInjectHandle handle, const char* const* stubs, size_t num_stubs, char* buffer, size_t buffer_size,
    size_t* bytes_written_out
) {
    return ptx_inject__render(handle, stubs, NULL, num_stubs, buffer, buffer_size, bytes_written_out);
}

PtxInjectResult ptx_inject_render_ptx_sized(
    PtxInjectHandle handle, const char* const* stubs, const size_t* stub_lengths, size_t num_stubs, char* buffer,
    size_t buffer_size, size_t* bytes_written_out
) {
    if (stub_lengths == NULL && num_stubs > 0) return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    return ptx_inject__render(handle, stubs, stub_lengths, num_stubs, buffer, buffer_size, bytes_written_out);
}

#ifdef __cplusplus
}
#endif

#endif /* PTX_INJECT_IMPLEMENTATION_ONCE */
#endif /* PTX_INJECT_IMPLEMENTATION */
