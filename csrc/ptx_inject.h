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
 * allocates, as do ptx_inject_process_cuda and ptx_inject_diagnose_cuda, which allocate only for more than 64 types. No other
 * function allocates. There is no global state. A handle never changes: any number of threads may query and render it at the
 * same time. Text arguments are C strings, not needed after the call. Results of queries live as long as the handle. No pointer
 * may be NULL unless its comment says so; a NULL gives PTX_INJECT_ERROR_INVALID_INPUT. Time is linear in the text.
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
        t,                                                                                                                   \
        r,                                                                                                                   \
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
#define PTX_INJECT__INDEX_2(z, a, b, ...) , (z "0", PTX_INJECT__UNPACK a), (z "1", PTX_INJECT__UNPACK b)
#define PTX_INJECT__INDEX_3(z, a, b, c, ...)                                                      \
    , (z "0", PTX_INJECT__UNPACK a), (z "1", PTX_INJECT__UNPACK b), (z "2", PTX_INJECT__UNPACK c)
#define PTX_INJECT__INDEX_4(z, a, b, c, d, ...)                                                                                  \
    , (z "0", PTX_INJECT__UNPACK a), (z "1", PTX_INJECT__UNPACK b), (z "2", PTX_INJECT__UNPACK c), (z "3", PTX_INJECT__UNPACK d)
#define PTX_INJECT__INDEX_5(z, a, b, c, d, e, ...)                                                 \
    , (z "0", PTX_INJECT__UNPACK a), (z "1", PTX_INJECT__UNPACK b), (z "2", PTX_INJECT__UNPACK c), \
        (z "3", PTX_INJECT__UNPACK d), (z "4", PTX_INJECT__UNPACK e)
#define PTX_INJECT__INDEX_6(z, a, b, c, d, e, g, ...)                                               \
    , (z "0", PTX_INJECT__UNPACK a), (z "1", PTX_INJECT__UNPACK b), (z "2", PTX_INJECT__UNPACK c),  \
        (z "3", PTX_INJECT__UNPACK d), (z "4", PTX_INJECT__UNPACK e), (z "5", PTX_INJECT__UNPACK g)
#define PTX_INJECT__INDEX_7(z, a, b, c, d, e, g, h, ...)                                             \
    , (z "0", PTX_INJECT__UNPACK a), (z "1", PTX_INJECT__UNPACK b), (z "2", PTX_INJECT__UNPACK c),   \
        (z "3", PTX_INJECT__UNPACK d), (z "4", PTX_INJECT__UNPACK e), (z "5", PTX_INJECT__UNPACK g), \
        (z "6", PTX_INJECT__UNPACK h)
#define PTX_INJECT__INDEX_8(z, a, b, c, d, e, g, h, i, ...)                                          \
    , (z "0", PTX_INJECT__UNPACK a), (z "1", PTX_INJECT__UNPACK b), (z "2", PTX_INJECT__UNPACK c),   \
        (z "3", PTX_INJECT__UNPACK d), (z "4", PTX_INJECT__UNPACK e), (z "5", PTX_INJECT__UNPACK g), \
        (z "6", PTX_INJECT__UNPACK h), (z "7", PTX_INJECT__UNPACK i)
#define PTX_INJECT__INDEX_9(z, a, b, c, d, e, g, h, i, j, ...)                                       \
    , (z "0", PTX_INJECT__UNPACK a), (z "1", PTX_INJECT__UNPACK b), (z "2", PTX_INJECT__UNPACK c),   \
        (z "3", PTX_INJECT__UNPACK d), (z "4", PTX_INJECT__UNPACK e), (z "5", PTX_INJECT__UNPACK g), \
        (z "6", PTX_INJECT__UNPACK h), (z "7", PTX_INJECT__UNPACK i), (z "8", PTX_INJECT__UNPACK j)
#define PTX_INJECT__INDEX_10(z, a, b, c, d, e, g, h, i, j, k, ...)                                   \
    , (z "0", PTX_INJECT__UNPACK a), (z "1", PTX_INJECT__UNPACK b), (z "2", PTX_INJECT__UNPACK c),   \
        (z "3", PTX_INJECT__UNPACK d), (z "4", PTX_INJECT__UNPACK e), (z "5", PTX_INJECT__UNPACK g), \
        (z "6", PTX_INJECT__UNPACK h), (z "7", PTX_INJECT__UNPACK i), (z "8", PTX_INJECT__UNPACK j), \
        (z "9", PTX_INJECT__UNPACK k)

#endif /* __CUDACC__ */

/* Variables that a site may have; the macro takes 64. */
#define PTX_INJECT_MAX_ARGS 1024u

/* ---- host side --------------------------------------------------------------------------------------------------- */

#ifndef __CUDACC_RTC__

#include <stdbool.h>
#include <stddef.h>

/* Before each declaration. It sets the linkage of the definition too. */
#if !defined(PTX_INJECT_STATIC)
#define PTX_INJECT_API
#elif defined(__GNUC__)
#define PTX_INJECT_API static __attribute__((unused))
#else
#define PTX_INJECT_API static
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    PTX_INJECT_SUCCESS = 0,
    PTX_INJECT_ERROR_FORMATTING = 1,                 /* a malformed marker or annotation */
    PTX_INJECT_ERROR_INSUFFICIENT_BUFFER = 2,        /* the text does not fit */
    PTX_INJECT_ERROR_INTERNAL = 3,                   /* never given: nothing here can fail halfway */
    PTX_INJECT_ERROR_INVALID_INPUT = 4,              /* NULL, a bad type; see the queries */
    PTX_INJECT_ERROR_MAX_UNIQUE_INJECTS_EXCEEDED = 5, /* only if PTX_INJECT_MAX_UNIQUE_INJECTS is defined */
    PTX_INJECT_ERROR_WRONG_NUM_STUBS = 6,
    PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX = 7,
    PTX_INJECT_ERROR_INCONSISTENT_INJECTION = 8,     /* sites of one name with different variables */
    PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND = 9,
    PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND = 10,
    PTX_INJECT_ERROR_OUT_OF_MEMORY = 11,
    PTX_INJECT_RESULT_NUM_ELEMS
} PtxInjectResult;

/* What a stub does with a variable. */
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

/* Where a text is wrong, and how. */
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
// Errors: FORMATTING, INSUFFICIENT_BUFFER, INVALID_INPUT; with more than 64 types OUT_OF_MEMORY.
PTX_INJECT_API PtxInjectResult ptx_inject_process_cuda(
    const char* cuda,
    const PtxInjectDataTypeInfo* types,
    size_t num_types,
    char* buffer,
    size_t buffer_size,
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
    PtxInjectHandle handle,
    size_t inject_idx,
    const char* variable_name,
    size_t* arg_idx_out,
    const char** register_name_out,
    PtxInjectMutType* mut_type_out,
    const char** register_type_name_out,
    const char** data_type_name_out
);

/* Errors: INVALID_INPUT, including arg_idx out of range; OUT_OF_BOUNDS_IDX for inject_idx. */
PTX_INJECT_API PtxInjectResult ptx_inject_variable_info_by_index(
    PtxInjectHandle handle,
    size_t inject_idx,
    size_t arg_idx,
    const char** variable_name_out,
    const char** register_name_out,
    PtxInjectMutType* mut_type_out,
    const char** register_type_name_out,
    const char** data_type_name_out
);

/* ---- rendering ---- */

/* Writes the PTX, with stubs[i] in each site of inject i, and a NUL, which bytes_written_out does not count. With buffer NULL,
   and on INSUFFICIENT_BUFFER, it is the size of the buffer that is needed, NUL included. It may be NULL. Stubs are inserted
   unchanged, between line breaks; none may be NULL. num_stubs must be the number of injects; if it is 0, `stubs` may be NULL.
   Errors: INVALID_INPUT, WRONG_NUM_STUBS, INSUFFICIENT_BUFFER. */
PTX_INJECT_API PtxInjectResult ptx_inject_render_ptx(
    PtxInjectHandle handle,
    const char* const* stubs,
    size_t num_stubs,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
);

/* The same with the stubs' lengths in bytes; the stubs need no NUL. */
PTX_INJECT_API PtxInjectResult ptx_inject_render_ptx_sized(
    PtxInjectHandle handle,
    const char* const* stubs,
    const size_t* stub_lengths,
    size_t num_stubs,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
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

#ifdef PTX_INJECT_DEBUG
#include <assert.h>
#define PTX_INJECT__ERROR(code) (assert(0 && #code), (code))
#else
#define PTX_INJECT__ERROR(code) (code)
#endif

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

/* Part of a text. */
typedef struct PtxInject__Slice {
    const char* begin;
    size_t length;
} PtxInject__Slice;

/* Types that are looked up without allocating. */
#define PTX_INJECT__FEW_TYPES 64u

/* A text that is being read, and the error found in it. */
typedef struct PtxInject__Source {
    const char* text;
    const char* end;
    const PtxInjectDataTypeInfo* types;
    size_t num_types;
    size_t* type_slots; /* hash table of the types' names, at most half full: indices plus 1, or 0 */
    size_t num_type_slots; /* a power of two */
    size_t few_type_slots[2 * PTX_INJECT__FEW_TYPES];
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
    switch (result) {
        case PTX_INJECT_SUCCESS: return "PTX_INJECT_SUCCESS";
        case PTX_INJECT_ERROR_FORMATTING: return "PTX_INJECT_ERROR_FORMATTING";
        case PTX_INJECT_ERROR_INSUFFICIENT_BUFFER: return "PTX_INJECT_ERROR_INSUFFICIENT_BUFFER";
        case PTX_INJECT_ERROR_INTERNAL: return "PTX_INJECT_ERROR_INTERNAL";
        case PTX_INJECT_ERROR_INVALID_INPUT: return "PTX_INJECT_ERROR_INVALID_INPUT";
        case PTX_INJECT_ERROR_MAX_UNIQUE_INJECTS_EXCEEDED: return "PTX_INJECT_ERROR_MAX_UNIQUE_INJECTS_EXCEEDED";
        case PTX_INJECT_ERROR_WRONG_NUM_STUBS: return "PTX_INJECT_ERROR_WRONG_NUM_STUBS";
        case PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX: return "PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX";
        case PTX_INJECT_ERROR_INCONSISTENT_INJECTION: return "PTX_INJECT_ERROR_INCONSISTENT_INJECTION";
        case PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND: return "PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND";
        case PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND: return "PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND";
        case PTX_INJECT_ERROR_OUT_OF_MEMORY: return "PTX_INJECT_ERROR_OUT_OF_MEMORY";
        case PTX_INJECT_RESULT_NUM_ELEMS: break;
    }
    return "PTX_INJECT_RESULT_UNKNOWN";
}

/* ---- characters and words ---- */

static int ptx_inject__is_digit(char c) { return c >= '0' && c <= '9'; }

static int ptx_inject__is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static int ptx_inject__is_word(char c) { return ptx_inject__is_letter(c) || ptx_inject__is_digit(c) || c == '_'; }

/* White space within a line; the CR of a CRLF is one. */
static int ptx_inject__is_blank(char c) {
    return c == ' ' || ((unsigned char)c - (unsigned)'\t' <= (unsigned)('\r' - '\t') && c != '\n');
}

/* Names are written into PTX, which is ASCII. */
static int ptx_inject__is_printable(char c) { return c >= ' ' && c <= '~'; }

static const char* ptx_inject__skip_blanks(const char* at, const char* end) {
    while (at < end && ptx_inject__is_blank(*at)) {
        ++at;
    }
    return at;
}

static const char* ptx_inject__line_end(const char* at, const char* end) {
    const char* newline = (const char*)memchr(at, '\n', (size_t)(end - at));
    return newline != NULL ? newline : end;
}

/* The next run of non-blanks, empty at the end of the line. */
static PtxInject__Slice ptx_inject__next_token(const char** at, const char* line_end) {
    PtxInject__Slice token;
    token.begin = ptx_inject__skip_blanks(*at, line_end);
    *at = token.begin;
    while (*at < line_end && !ptx_inject__is_blank(**at)) {
        ++*at;
    }
    token.length = (size_t)(*at - token.begin);
    return token;
}

/* The rest of the line, without blanks around it. */
static PtxInject__Slice ptx_inject__rest(const char* at, const char* line_end) {
    PtxInject__Slice rest;
    rest.begin = ptx_inject__skip_blanks(at, line_end);
    while (line_end > rest.begin && ptx_inject__is_blank(line_end[-1])) {
        --line_end;
    }
    rest.length = (size_t)(line_end - rest.begin);
    return rest;
}

static PtxInject__Slice ptx_inject__slice(const char* string) {
    PtxInject__Slice slice;
    slice.begin = string;
    slice.length = strlen(string);
    return slice;
}

static int ptx_inject__equal(PtxInject__Slice slice, const char* string) {
    size_t i;
    for (i = 0; i < slice.length; ++i) {
        if (slice.begin[i] != string[i]) { /* stops at the string's end too: a slice has no NUL */
            return 0;
        }
    }
    return string[slice.length] == '\0';
}

/* The first byte that no name has, tabs apart, or the end. */
static const char* ptx_inject__skip_printable(PtxInject__Slice slice) {
    const char* end = slice.begin + slice.length;
    while (slice.begin < end && (ptx_inject__is_printable(*slice.begin) || *slice.begin == '\t')) {
        ++slice.begin;
    }
    return slice.begin;
}

/* The first byte that is not part of a PTX identifier, or the end. */
static const char* ptx_inject__skip_identifier(PtxInject__Slice slice) {
    const char* end = slice.begin + slice.length;
    while (slice.begin < end && (ptx_inject__is_word(*slice.begin) || *slice.begin == '$')) {
        ++slice.begin;
    }
    return slice.begin;
}

static int ptx_inject__same(PtxInject__Slice first, PtxInject__Slice second) {
    return first.length == second.length && memcmp(first.begin, second.begin, first.length) == 0;
}

static int ptx_inject__begins(const char* at, const char* end, const char* string, size_t length) {
    return (size_t)(end - at) >= length && memcmp(at, string, length) == 0;
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
    if (num_types_out != NULL) {
        *num_types_out = sizeof types / sizeof types[0];
    }
    return types;
}

/* A name of PTX's own after a dot: u32, f16x2. */
static int ptx_inject__is_ptx_type(PtxInject__Slice text) {
    size_t i;
    for (i = 0; i < text.length; ++i) {
        if (!ptx_inject__is_word(text.begin[i]) && text.begin[i] != '.') {
            return 0;
        }
    }
    return text.length > 0;
}

/* Is a string of printable ASCII alone? */
static int ptx_inject__is_text(const char* string) {
    while (ptx_inject__is_printable(*string)) {
        ++string;
    }
    return *string == '\0';
}

static PtxInjectResult ptx_inject__check_type(PtxInject__Source* source, const PtxInjectDataTypeInfo* type) {
    const char* reason = NULL;

    if (type->name == NULL || type->name[0] == '\0' || !ptx_inject__is_text(type->name) ||
        strpbrk(type->name, " \"\\%") != NULL) {
        reason = "a type's name must be a word of ASCII without quotes, backslashes and percent signs";
    } else if (
        type->register_type == NULL || !ptx_inject__is_ptx_type(ptx_inject__slice(type->register_type)) ||
        type->mov_postfix == NULL || !ptx_inject__is_ptx_type(ptx_inject__slice(type->mov_postfix))
    ) {
        reason = "a type's register_type and mov_postfix must be PTX types, as in u32";
    } else if (!ptx_inject__is_letter(type->register_char)) {
        reason = "a type's register_char must be a constraint letter of inline assembly";
    } else if (type->register_cast_str != NULL && !ptx_inject__is_text(type->register_cast_str)) {
        reason = "a type's register_cast_str must be one line of ASCII";
    }
    if (reason != NULL) {
        PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_INVALID_INPUT, source, NULL, reason);
    }
    return PTX_INJECT_SUCCESS;
}

/* The slot that holds a type's name, or the free one for it. */
static size_t* ptx_inject__find_type_slot(const PtxInject__Source* source, PtxInject__Slice name) {
    size_t i = (size_t)ptx_inject__hash(name) & (source->num_type_slots - 1);
    while (source->type_slots[i] != 0 && !ptx_inject__equal(name, source->types[source->type_slots[i] - 1].name)) {
        i = (i + 1) & (source->num_type_slots - 1);
    }
    return &source->type_slots[i];
}

/* Checks the types and enters their names into the table. */
static PtxInjectResult ptx_inject__enter_types(PtxInject__Source* source) {
    size_t i;

    source->num_type_slots = 2 * PTX_INJECT__FEW_TYPES;
    if (source->num_types > PTX_INJECT__FEW_TYPES) {
        while (source->num_type_slots / 2 < source->num_types && source->num_type_slots <= SIZE_MAX / 2 / sizeof(size_t)) {
            source->num_type_slots *= 2;
        }
        source->type_slots = (size_t*)PTX_INJECT_MALLOC(source->num_type_slots * sizeof(size_t));
        if (source->type_slots == NULL || source->num_type_slots / 2 < source->num_types) {
            PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_OUT_OF_MEMORY, source, NULL, "out of memory");
        }
    }
    memset(source->type_slots, 0, source->num_type_slots * sizeof(size_t));
    for (i = 0; i < source->num_types; ++i) {
        size_t* slot;
        PTX_INJECT__TRY(ptx_inject__check_type(source, &source->types[i]));
        slot = ptx_inject__find_type_slot(source, ptx_inject__slice(source->types[i].name));
        if (*slot != 0) {
            PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_INVALID_INPUT, source, NULL, "two types have one name");
        }
        *slot = i + 1;
    }
    return PTX_INJECT_SUCCESS;
}

static void ptx_inject__close(PtxInject__Source* source) {
    if (source->type_slots != source->few_type_slots) {
        PTX_INJECT_FREE(source->type_slots);
    }
}

/* Begins to read a text with some types or, for NULL, the default ones. The source is to be closed, after an error too. */
static PtxInjectResult ptx_inject__open(
    PtxInject__Source* source, const char* text, const PtxInjectDataTypeInfo* types, size_t num_types
) {
    source->text = text;
    source->type_slots = source->few_type_slots;
    source->fault = NULL;
    source->reason = "";
    if (text == NULL || (types == NULL && num_types > 0)) {
        PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_INVALID_INPUT, source, NULL, "the text or the types are NULL");
    }
    source->end = text + strlen(text);
    source->types = types;
    source->num_types = num_types;
    if (types == NULL) {
        source->types = ptx_inject_default_types(&source->num_types);
    }
    return ptx_inject__enter_types(source);
}

/* Finds the type that a text names. */
static PtxInjectResult ptx_inject__read_type(
    PtxInject__Source* source, PtxInject__Slice name, const PtxInjectDataTypeInfo** type_out
) {
    const size_t slot = *ptx_inject__find_type_slot(source, name);
    if (slot != 0) {
        *type_out = &source->types[slot - 1];
        return PTX_INJECT_SUCCESS;
    }
    PTX_INJECT__REFUSE(
        source,
        name.begin,
        source->types == ptx_inject_default_types(NULL)
            ? "not a type known here, which are f16 f16X2 s32 u32 f32 b32: further ones have to be given"
            : "not one of the types that were given"
    );
}

/* Reads in, mod or out. */
static PtxInjectResult ptx_inject__read_mut_type(
    PtxInject__Source* source, PtxInject__Slice word, PtxInjectMutType* mut_type_out
) {
    if (ptx_inject__equal(word, "in")) {
        *mut_type_out = PTX_INJECT_MUT_TYPE_IN;
    } else if (ptx_inject__equal(word, "mod")) {
        *mut_type_out = PTX_INJECT_MUT_TYPE_MOD;
    } else if (ptx_inject__equal(word, "out")) {
        *mut_type_out = PTX_INJECT_MUT_TYPE_OUT;
    } else {
        PTX_INJECT__REFUSE(source, word.begin, "in, mod or out was expected");
    }
    return PTX_INJECT_SUCCESS;
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

/* ---- output, only measured once it does not fit ---- */

typedef struct PtxInject__Writer {
    char* buffer; /* NULL: measure */
    size_t size;
    size_t length;
} PtxInject__Writer;

static void ptx_inject__write(PtxInject__Writer* writer, const char* bytes, size_t length) {
    if (writer->buffer != NULL && writer->length <= writer->size && length <= writer->size - writer->length) {
        memcpy(writer->buffer + writer->length, bytes, length);
    } else {
        writer->size = 0; /* nothing is written after a gap */
    }
    writer->length += length;
}

static void ptx_inject__write_slice(PtxInject__Writer* writer, PtxInject__Slice slice) {
    ptx_inject__write(writer, slice.begin, slice.length);
}

static void ptx_inject__write_string(PtxInject__Writer* writer, const char* string) {
    ptx_inject__write(writer, string, strlen(string));
}

#define PTX_INJECT__MAX_DIGITS (3 * sizeof(size_t))

/* Writes the decimal digits that end at `end` and returns their beginning. */
static char* ptx_inject__digits(char* end, size_t number) {
    do {
        *--end = (char)('0' + (int)(number % 10));
        number /= 10;
    } while (number > 0);
    return end;
}

static void ptx_inject__write_number(PtxInject__Writer* writer, size_t number) {
    char digits[PTX_INJECT__MAX_DIGITS];
    char* end = digits + sizeof digits;
    char* begin = ptx_inject__digits(end, number);
    ptx_inject__write(writer, begin, (size_t)(end - begin));
}

/* Text as it must stand in a string literal of an asm statement. */
static void ptx_inject__write_escaped(PtxInject__Writer* writer, PtxInject__Slice text) {
    size_t i;
    for (i = 0; i < text.length; ++i) {
        const char c = text.begin[i];
        if (c == '"' || c == '\\') {
            ptx_inject__write(writer, "\\", 1);
        } else if (c == '%') {
            ptx_inject__write(writer, "%", 1);
        }
        ptx_inject__write(writer, &c, 1);
    }
}

/* ---- annotated CUDA: finding annotations ---- */

/* From a quote to the one that closes the literal, or to the end of the line if none does. */
static const char* ptx_inject__literal_end(const char* at, const char* end) {
    const char quote = *at++;
    while (at < end && *at != '\n' && *at != quote) {
        if (*at == '\\' && end - at >= 2) {
            at += (end - at >= 3 && at[1] == '\r' && at[2] == '\n') ? 2 : 1;
        }
        ++at;
    }
    return at;
}

/* From a quote to the end of the literal. */
static const char* ptx_inject__skip_literal(const char* at, const char* end) {
    const char* literal_end = ptx_inject__literal_end(at, end);
    return literal_end < end && *literal_end == *at ? literal_end + 1 : literal_end;
}

/* From the quote of a raw string to its end: R"name( ... )name". */
static const char* ptx_inject__skip_raw_string(const char* at, const char* end) {
    const char* name = at + 1;
    size_t length = 0;

    while (length <= 16 && (size_t)(end - name) > length && strchr("() \\\t\v\f\r\n\"", name[length]) == NULL) {
        ++length;
    }
    if (length > 16 || (size_t)(end - name) <= length || name[length] != '(') {
        return ptx_inject__skip_literal(at, end);
    }
    for (at = name + length + 1; (at = (const char*)memchr(at, ')', (size_t)(end - at))) != NULL; ++at) {
        if ((size_t)(end - at) >= length + 2 && memcmp(at + 1, name, length) == 0 && at[length + 1] == '"') {
            return at + length + 2;
        }
    }
    return end;
}

/* From // to the end of the comment, which a backslash at the end of a line carries on. */
static const char* ptx_inject__skip_line_comment(const char* at, const char* end) {
    for (;;) {
        const char* newline = ptx_inject__line_end(at, end);
        const char* last = newline;
        if (newline == end) {
            return end;
        }
        if (last > at && last[-1] == '\r') {
            --last;
        }
        if (last == at || last[-1] != '\\') {
            return newline;
        }
        at = newline + 1;
    }
}

/* The end of a comment, or NULL if it has none. */
static const char* ptx_inject__skip_comment(const char* at, const char* end) {
    for (at += 2; (at = (const char*)memchr(at, '*', (size_t)(end - at))) != NULL; ++at) {
        if (end - at >= 2 && at[1] == '/') {
            return at + 2;
        }
    }
    return NULL;
}

/* From a word or number to its end. Quotes between the digits of a number begin no literal. */
static const char* ptx_inject__skip_word(const char* at, const char* end) {
    const int is_number = ptx_inject__is_digit(*at);
    while (at < end && (ptx_inject__is_word(*at) || (is_number && *at == '\'' && end - at >= 2 && ptx_inject__is_word(at[1])))) {
        ++at;
    }
    return at;
}

/* Does a raw string follow a word? */
static int ptx_inject__introduces_raw_string(const char* word, const char* word_end, const char* end) {
    PtxInject__Slice slice;
    slice.begin = word;
    slice.length = (size_t)(word_end - word);
    return word_end < end && *word_end == '"' &&
        (ptx_inject__equal(slice, "R") || ptx_inject__equal(slice, "LR") || ptx_inject__equal(slice, "uR") ||
         ptx_inject__equal(slice, "UR") || ptx_inject__equal(slice, "u8R"));
}

static int ptx_inject__is_header(const char* at, const char* end) {
    const size_t length = sizeof PTX_INJECT__HEADER - 1;
    return ptx_inject__begins(at, end, PTX_INJECT__HEADER, length) &&
        (at + length == end || ptx_inject__is_blank(at[length]) || at[length] == '\n' || at[length] == '*');
}

/* Does a backslash join the line that ends at a line break to the next one? */
static int ptx_inject__goes_on(const char* text, const char* newline) {
    const char* last = newline > text && newline[-1] == '\r' ? newline - 1 : newline;
    return last > text && last[-1] == '\\';
}

/* The next annotation, from a place outside of comments, literals and directives; NULL if there is none. *in_directive_out:
   it is in a directive of the preprocessor. */
static const char* ptx_inject__find_annotation(const PtxInject__Source* source, const char* at, int* in_directive_out) {
    const char* end = source->end;
    int is_first = at == source->text || at[-1] == '\n'; /* there are only blanks and comments before it on its line */

    *in_directive_out = 0;
    while (at != NULL && at < end) {
        if (*at == '/' && end - at >= 2 && at[1] == '/') {
            at = ptx_inject__skip_line_comment(at, end);
            continue;
        }
        if (*at == '/' && end - at >= 2 && at[1] == '*') {
            if (ptx_inject__is_header(at, end)) {
                return at;
            }
            at = ptx_inject__skip_comment(at, end);
            continue;
        }
        if (*at == '\n') {
            *in_directive_out = *in_directive_out && ptx_inject__goes_on(source->text, at);
            is_first = 1;
        } else if (!ptx_inject__is_blank(*at)) {
            *in_directive_out = *in_directive_out || (is_first && *at == '#');
            is_first = 0;
        }
        if (*at == '"' || *at == '\'') {
            at = ptx_inject__skip_literal(at, end);
        } else if (ptx_inject__is_word(*at)) {
            const char* word = at;
            at = ptx_inject__skip_word(word, end);
            if (ptx_inject__introduces_raw_string(word, at, end)) {
                at = ptx_inject__skip_raw_string(at, end);
            }
        } else {
            ++at;
        }
    }
    return NULL;
}

/* ---- annotated CUDA: reading and rewriting one ---- */

typedef struct PtxInject__Annotation {
    PtxInject__Slice name;
    const char* variables; /* the line after the header's */
    const char* end;       /* its closing mark */
    PtxInject__Slice indent; /* of its line, if it is first there */
    const char* newline;
    int is_apart; /* there is white space before it, or nothing */
} PtxInject__Annotation;

/* Indentation beyond this is not repeated, so that the output stays linear in the input. */
#define PTX_INJECT__MAX_INDENT 256u

typedef struct PtxInject__Variable {
    PtxInjectMutType mut_type;
    const PtxInjectDataTypeInfo* type;
    PtxInject__Slice operand; /* empty: no more variables */
} PtxInject__Variable;

/* Can it be put between parentheses? If not, reports why. */
static PtxInjectResult ptx_inject__check_operand(PtxInject__Source* source, PtxInject__Slice operand) {
    const char* end = operand.begin + operand.length;
    const char* at = ptx_inject__skip_printable(operand);
    size_t depth = 0;

    if (at < end) {
        PTX_INJECT__REFUSE(source, at, "an operand is printable ASCII, as PTX is; PTX_INJECT can give another one a name");
    }
    at = operand.begin;
    while (at < end) {
        const char* begin = at;
        if (ptx_inject__is_word(*at)) {
            at = ptx_inject__skip_word(begin, end);
            if (ptx_inject__introduces_raw_string(begin, at, end)) {
                PTX_INJECT__REFUSE(source, begin, "an operand has no raw strings");
            }
            continue;
        }
        if (*at == '"' || *at == '\'') {
            at = ptx_inject__literal_end(begin, end);
            if (at >= end) {
                PTX_INJECT__REFUSE(source, begin, "a quote is not closed on its line");
            }
        } else if (*at == '(' || *at == '[' || *at == '{') {
            ++depth;
        } else if (*at == ')' || *at == ']' || *at == '}') {
            if (depth == 0) {
                PTX_INJECT__REFUSE(source, at, "a bracket is closed that was not opened");
            }
            --depth;
        } else if (depth == 0 && (*at == ',' || *at == ';')) {
            PTX_INJECT__REFUSE(source, at, "one variable a line, without a comma or semicolon after it");
        } else if (ptx_inject__begins(at, end, "/*", 2)) {
            PTX_INJECT__REFUSE(source, at, "a remark after an operand begins with //");
        } else if (*at == '\\') {
            PTX_INJECT__REFUSE(source, at, "no backslash stands in an operand: in a macro, use PTX_INJECT");
        }
        ++at;
    }
    if (depth > 0) {
        PTX_INJECT__REFUSE(source, operand.begin, "a bracket is not closed on its line");
    }
    return PTX_INJECT_SUCCESS;
}

/* An operand goes to the end of its line or to a // outside of literals. */
static PtxInjectResult ptx_inject__read_operand(
    PtxInject__Source* source, const char* begin, const char* line_end, PtxInject__Slice* operand_out
) {
    const char* at = begin;
    while (at < line_end && !ptx_inject__begins(at, line_end, "//", 2)) {
        if (*at == '"' || *at == '\'') {
            at = ptx_inject__skip_literal(at, line_end);
        } else {
            at = ptx_inject__is_word(*at) ? ptx_inject__skip_word(at, line_end) : at + 1;
        }
    }
    *operand_out = ptx_inject__rest(begin, at);
    if (operand_out->length == 0) {
        PTX_INJECT__REFUSE(source, begin, "the operand is missing: in|mod|out TYPE operand");
    }
    return ptx_inject__check_operand(source, *operand_out);
}

/* Reads the next variable of a kind and moves *at past its line. */
static PtxInjectResult ptx_inject__next_variable(
    PtxInject__Source* source,
    const PtxInject__Annotation* annotation,
    PtxInjectMutType mut_type,
    const char** at,
    PtxInject__Variable* variable_out
) {
    while (*at < annotation->end) {
        const char* line_end = ptx_inject__line_end(*at, annotation->end);
        const char* rest = *at;
        const PtxInject__Slice first = ptx_inject__next_token(&rest, line_end);

        *at = line_end < annotation->end ? line_end + 1 : line_end;
        if (first.length == 0 || ptx_inject__begins(first.begin, line_end, "//", 2)) {
            continue;
        }
        PTX_INJECT__TRY(ptx_inject__read_mut_type(source, first, &variable_out->mut_type));
        PTX_INJECT__TRY(ptx_inject__read_type(source, ptx_inject__next_token(&rest, line_end), &variable_out->type));
        PTX_INJECT__TRY(ptx_inject__read_operand(source, rest, line_end, &variable_out->operand));
        if (variable_out->mut_type == mut_type) {
            return PTX_INJECT_SUCCESS;
        }
    }
    variable_out->operand.length = 0;
    return PTX_INJECT_SUCCESS;
}

static PtxInjectResult ptx_inject__read_annotation(
    PtxInject__Source* source, const char* header, PtxInject__Annotation* annotation_out
) {
    const char* end = ptx_inject__skip_comment(header, source->end);
    const char* at = header + sizeof PTX_INJECT__HEADER - 1;
    const char* line = header;
    const char* line_end;
    const char* name_end;
    PtxInject__Slice rest;

    if (end == NULL) {
        PTX_INJECT__REFUSE(source, header, "the annotation is not closed by */");
    }
    annotation_out->end = end - 2;
    line_end = ptx_inject__line_end(at, annotation_out->end);
    annotation_out->name = ptx_inject__next_token(&at, line_end);
    if (annotation_out->name.length == 0) {
        PTX_INJECT__REFUSE(source, header, "the name is missing: /* PTX_INJECT name");
    }
    name_end = ptx_inject__skip_identifier(annotation_out->name);
    if (name_end < annotation_out->name.begin + annotation_out->name.length) {
        PTX_INJECT__REFUSE(source, name_end, "a name is made of letters, digits, _ and $");
    }
    rest = ptx_inject__rest(at, line_end);
    if (rest.length > 0 && !ptx_inject__begins(rest.begin, line_end, "//", 2)) {
        PTX_INJECT__REFUSE(source, rest.begin, "only the name stands on the first line; each variable has one of its own");
    }
    annotation_out->variables = line_end < annotation_out->end ? line_end + 1 : line_end;
    annotation_out->newline = line_end < annotation_out->end && line_end[-1] == '\r' ? "\r\n" : "\n";
    while (line > source->text && ptx_inject__is_blank(line[-1])) {
        --line;
    }
    annotation_out->is_apart = line < header || line == source->text || line[-1] == '\n';
    annotation_out->indent.begin = line;
    annotation_out->indent.length = 0;
    if ((line == source->text || line[-1] == '\n') && (size_t)(header - line) <= PTX_INJECT__MAX_INDENT) {
        annotation_out->indent.length = (size_t)(header - line);
    }
    return PTX_INJECT_SUCCESS;
}

/* Begins a new line with some text. */
static void ptx_inject__write_line(PtxInject__Writer* writer, const PtxInject__Annotation* annotation, const char* text) {
    ptx_inject__write_string(writer, annotation->newline);
    ptx_inject__write_slice(writer, annotation->indent);
    ptx_inject__write_string(writer, text);
}

/* Is it more than a name with members, so that a cast before it needs parentheses? */
static int ptx_inject__is_compound(PtxInject__Slice operand) {
    size_t i;
    for (i = 0; i < operand.length; ++i) {
        if (!ptx_inject__is_word(operand.begin[i]) && operand.begin[i] != '.') {
            return 1;
        }
    }
    return 0;
}

/* Writes `, "=f"(z)` or, for the first of its list, `: "=f"(z)`. */
static void ptx_inject__write_constraint(PtxInject__Writer* writer, const PtxInject__Variable* variable, int is_first) {
    const char* cast = variable->type->register_cast_str != NULL ? variable->type->register_cast_str : "";
    const int has_parentheses = cast[0] != '\0' && ptx_inject__is_compound(variable->operand);

    ptx_inject__write_string(writer, is_first ? ": \"" : ", \"");
    if (variable->mut_type != PTX_INJECT_MUT_TYPE_IN) {
        ptx_inject__write_string(writer, variable->mut_type == PTX_INJECT_MUT_TYPE_MOD ? "+" : "=");
    }
    ptx_inject__write(writer, &variable->type->register_char, 1);
    ptx_inject__write_string(writer, "\"(");
    ptx_inject__write_string(writer, cast);
    ptx_inject__write_string(writer, has_parentheses ? "(" : "");
    ptx_inject__write_slice(writer, variable->operand);
    ptx_inject__write_string(writer, has_parentheses ? "))" : ")");
}

/* Writes the asm statement that takes an annotation's place. Variables are read once for each kind, so that only their
   names need be stored. */
static PtxInjectResult ptx_inject__write_asm(
    PtxInject__Source* source, const PtxInject__Annotation* annotation, PtxInject__Writer* writer
) {
    static const PtxInjectMutType order[] = {PTX_INJECT_MUT_TYPE_MOD, PTX_INJECT_MUT_TYPE_OUT, PTX_INJECT_MUT_TYPE_IN};
    static const char* const words[] = {"mod ", "out ", "in "};
    PtxInject__Slice names[PTX_INJECT_MAX_ARGS];
    PtxInject__Variable variable;
    size_t num_written = 0;
    size_t i, k;

    ptx_inject__write_string(writer, annotation->is_apart ? "asm(" : " asm(");
    ptx_inject__write_line(writer, annotation, "    \"// " PTX_INJECT__START " ");
    ptx_inject__write_slice(writer, annotation->name);
    ptx_inject__write_string(writer, "\\n\\t\"");
    for (i = 0; i < 3; ++i) {
        const char* at = annotation->variables;
        for (;; ++num_written) {
            PTX_INJECT__TRY(ptx_inject__next_variable(source, annotation, order[i], &at, &variable));
            if (variable.operand.length == 0) {
                break;
            }
            if (num_written == PTX_INJECT_MAX_ARGS) {
                PTX_INJECT__REFUSE(source, variable.operand.begin, "a site has at most PTX_INJECT_MAX_ARGS variables");
            }
            names[num_written] = variable.operand;
            for (k = 0; k < num_written; ++k) {
                if (ptx_inject__same(names[k], variable.operand)) {
                    PTX_INJECT__REFUSE(source, variable.operand.begin, "two variables of one name at one site");
                }
            }
            ptx_inject__write_line(writer, annotation, "    \"// %");
            ptx_inject__write_number(writer, num_written);
            ptx_inject__write_string(writer, " ");
            ptx_inject__write_string(writer, words[i]);
            ptx_inject__write_string(writer, variable.type->name);
            ptx_inject__write_string(writer, " ");
            ptx_inject__write_escaped(writer, variable.operand);
            ptx_inject__write_string(writer, "\\n\\t\"");
        }
    }
    ptx_inject__write_line(writer, annotation, "    \"// " PTX_INJECT__END "\"");

    num_written = 0;
    for (i = 0; i < 3; ++i) {
        const char* at = annotation->variables;
        int is_first = order[i] == PTX_INJECT_MUT_TYPE_IN || num_written == 0;
        for (;; ++num_written, is_first = 0) {
            PTX_INJECT__TRY(ptx_inject__next_variable(source, annotation, order[i], &at, &variable));
            if (variable.operand.length == 0) {
                break;
            }
            if (order[i] == PTX_INJECT_MUT_TYPE_IN && num_written == 0) {
                ptx_inject__write_line(writer, annotation, "    :"); /* no outputs */
            }
            ptx_inject__write_line(writer, annotation, "    ");
            ptx_inject__write_constraint(writer, &variable, is_first);
        }
    }
    ptx_inject__write_line(writer, annotation, ");");
    return PTX_INJECT_SUCCESS;
}

static PtxInjectResult ptx_inject__process(PtxInject__Source* source, PtxInject__Writer* writer) {
    const char* copied = source->text;
    const char* header;
    int in_directive;

    while ((header = ptx_inject__find_annotation(source, copied, &in_directive)) != NULL) {
        PtxInject__Annotation annotation;
        if (in_directive) {
            PTX_INJECT__REFUSE(source, header, "an annotation in a directive of the preprocessor: in a macro, use PTX_INJECT");
        }
        PTX_INJECT__TRY(ptx_inject__read_annotation(source, header, &annotation));
        ptx_inject__write(writer, copied, (size_t)(header - copied));
        PTX_INJECT__TRY(ptx_inject__write_asm(source, &annotation, writer));
        copied = annotation.end + 2;
    }
    ptx_inject__write(writer, copied, (size_t)(source->end - copied) + 1);
    return PTX_INJECT_SUCCESS;
}

/* The result for a text of `num_bytes`, its NUL included, that was written to a buffer if it fits. */
static PtxInjectResult ptx_inject__finish(const char* buffer, size_t buffer_size, size_t num_bytes, size_t* bytes_written_out) {
    const int is_written = buffer != NULL && num_bytes <= buffer_size;
    if (bytes_written_out != NULL) {
        *bytes_written_out = is_written ? num_bytes - 1 : num_bytes;
    }
    return is_written || buffer == NULL ? PTX_INJECT_SUCCESS : PTX_INJECT__ERROR(PTX_INJECT_ERROR_INSUFFICIENT_BUFFER);
}

PtxInjectResult ptx_inject_process_cuda(
    const char* cuda,
    const PtxInjectDataTypeInfo* types,
    size_t num_types,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    PtxInject__Source source;
    PtxInject__Writer writer;
    PtxInjectResult result;

    writer.buffer = buffer;
    writer.size = buffer_size;
    writer.length = 0;
    result = ptx_inject__open(&source, cuda, types, num_types);
    if (result == PTX_INJECT_SUCCESS) {
        result = ptx_inject__process(&source, &writer);
    }
    ptx_inject__close(&source);
    PTX_INJECT__TRY(result);
    return ptx_inject__finish(buffer, buffer_size, writer.length, bytes_written_out);
}

PtxInjectResult ptx_inject_diagnose_cuda(
    const char* cuda, const PtxInjectDataTypeInfo* types, size_t num_types, PtxInjectPlace* place_out
) {
    PtxInject__Source source;
    PtxInject__Writer writer = {NULL, 0, 0};
    PtxInjectResult result;

    if (place_out == NULL) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    result = ptx_inject__open(&source, cuda, types, num_types);
    if (result == PTX_INJECT_SUCCESS) {
        result = ptx_inject__process(&source, &writer);
    }
    ptx_inject__close(&source);
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
    char* text; /* all but the stubs */
    size_t text_length;
    size_t text_capacity;
    char* strings;
    size_t strings_length;
    size_t strings_capacity;
    PtxInject__Inject* injects;
    size_t num_injects;
    size_t injects_capacity;
    PtxInject__Arg* args;
    size_t num_args;
    size_t args_capacity;
    PtxInject__Site* sites;
    size_t num_sites;
    size_t sites_capacity;
    PtxInject__Entry* entries; /* hash table, at most half full */
    size_t num_entries;       /* a power of two, or 0 */
};

PtxInjectResult ptx_inject_destroy(PtxInjectHandle handle) {
    if (handle != NULL) {
        PTX_INJECT_FREE(handle->text);
        PTX_INJECT_FREE(handle->strings);
        PTX_INJECT_FREE(handle->injects);
        PTX_INJECT_FREE(handle->args);
        PTX_INJECT_FREE(handle->sites);
        PTX_INJECT_FREE(handle->entries);
        PTX_INJECT_FREE(handle);
    }
    return PTX_INJECT_SUCCESS;
}

/* ---- handles: looking up names ---- */

/* The entry that holds a name, or the free one for it. There must be a table. */
static PtxInject__Entry* ptx_inject__find_entry(const struct PtxInjectHandleImpl* handle, uint64_t hash, PtxInject__Slice name) {
    size_t i = (size_t)hash & (handle->num_entries - 1);
    for (;; i = (i + 1) & (handle->num_entries - 1)) {
        PtxInject__Entry* entry = &handle->entries[i];
        if (entry->index_plus_one == 0 ||
            (entry->hash == hash && ptx_inject__equal(name, handle->strings + handle->injects[entry->index_plus_one - 1].name))) {
            return entry;
        }
    }
}

/* ---- handles: making them ---- */

/* One line between START and END. */
typedef struct PtxInject__Marker {
    PtxInject__Slice register_name; /* in the comment form the compiler's, with its percent sign, or a literal */
    PtxInjectMutType mut_type;
    PtxInject__Slice register_type;
    PtxInject__Slice data_type;
    PtxInject__Slice name;
    const PtxInjectDataTypeInfo* type; /* NULL in the macro form */
} PtxInject__Marker;

typedef struct PtxInject__Reader {
    struct PtxInjectHandleImpl* handle;
    PtxInject__Source* source;
    PtxInject__Marker* markers; /* of the site that is being read */
    size_t num_markers;
    size_t markers_capacity;
    const PtxInjectDataTypeInfo* type; /* whose register type is among the strings, or NULL */
    size_t type_register;
    size_t stable_names[PTX_INJECT_MAX_ARGS]; /* _x0, _x1, ... among the strings; 0: not there */
    PtxInject__Slice block; /* the last site's lines with the line breaks around them; empty in the comment form */
    size_t block_comment;   /* where its // is in them, its PTX_INJECT_START, and the end of its PTX_INJECT_END */
    size_t block_start;
    size_t block_end;
} PtxInject__Reader;

/* Makes room for `num_more` items after the first `count` and returns the array, or NULL and keeps the old one. */
static void* ptx_inject__grow(void* items, size_t* capacity, size_t count, size_t num_more, size_t item_size) {
    size_t larger = *capacity < 32 ? 32 : *capacity;
    while (larger - count < num_more && larger <= SIZE_MAX / 2) {
        larger *= 2;
    }
    if (larger - count < num_more || larger > SIZE_MAX / item_size) {
        return NULL;
    }
    items = PTX_INJECT_REALLOC(items, larger * item_size);
    if (items != NULL) {
        *capacity = larger;
    }
    return items;
}

/* Makes room for some more items in an array of the handle or reader. */
#define PTX_INJECT__GROW(reader, type, items, count, capacity, num_more)                                            \
    do {                                                                                                            \
        if ((size_t)(num_more) > (capacity) - (count)) {                                                            \
            type* grown = (type*)ptx_inject__grow((items), &(capacity), (count), (size_t)(num_more), sizeof(type)); \
            if (grown == NULL) {                                                                                    \
                PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_OUT_OF_MEMORY, (reader)->source, NULL, "out of memory");     \
            }                                                                                                       \
            (items) = grown;                                                                                        \
        }                                                                                                           \
    } while (0)

static char* ptx_inject__put(char* out, const char* bytes, size_t length) {
    memcpy(out, bytes, length);
    return out + length;
}

static char* ptx_inject__put_slice(char* out, PtxInject__Slice slice) { return ptx_inject__put(out, slice.begin, slice.length); }

static PtxInjectResult ptx_inject__add_text(PtxInject__Reader* reader, const char* bytes, size_t length) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    PTX_INJECT__GROW(reader, char, handle->text, handle->text_length, handle->text_capacity, length);
    memcpy(handle->text + handle->text_length, bytes, length);
    handle->text_length += length;
    return PTX_INJECT_SUCCESS;
}

/* Adds some bytes and a NUL to the strings. */
static PtxInjectResult ptx_inject__add_string(PtxInject__Reader* reader, PtxInject__Slice string, size_t* offset_out) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    PTX_INJECT__GROW(reader, char, handle->strings, handle->strings_length, handle->strings_capacity, string.length + 1);
    *offset_out = handle->strings_length;
    *ptx_inject__put_slice(handle->strings + handle->strings_length, string) = '\0';
    handle->strings_length += string.length + 1;
    return PTX_INJECT_SUCCESS;
}

/* Enlarges the table if one more name would make it more than half full. */
static PtxInjectResult ptx_inject__grow_table(PtxInject__Reader* reader) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    const size_t num_entries = handle->num_entries == 0 ? 256 : 4 * handle->num_entries;
    PtxInject__Entry* old = handle->entries;
    PtxInject__Entry* entries = NULL;
    size_t i, k;

    if (2 * (handle->num_injects + 1) <= handle->num_entries) {
        return PTX_INJECT_SUCCESS;
    }
    if (num_entries <= SIZE_MAX / 4 / sizeof(PtxInject__Entry)) {
        entries = (PtxInject__Entry*)PTX_INJECT_MALLOC(num_entries * sizeof(PtxInject__Entry));
    }
    if (entries == NULL) {
        PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_OUT_OF_MEMORY, reader->source, NULL, "out of memory");
    }
    memset(entries, 0, num_entries * sizeof(PtxInject__Entry));
    for (i = 0; i < handle->num_entries; ++i) {
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

/* ---- reading markers ---- */

/* A letter class of NVVM's virtual registers and digits, or one of its stack pointers. */
static int ptx_inject__is_compilers(PtxInject__Slice name) {
    static const char* const classes[] = {"p", "rs", "r", "rd", "rq", "rc", "f", "fd", "h", "hh", "b"};
    size_t num_letters = 0;
    size_t i;

    while (num_letters < name.length && ptx_inject__is_letter(name.begin[num_letters])) {
        ++num_letters;
    }
    for (i = num_letters; i < name.length; ++i) {
        if (!ptx_inject__is_digit(name.begin[i])) {
            return 0;
        }
    }
    if (num_letters == name.length) {
        return ptx_inject__equal(name, "SP") || ptx_inject__equal(name, "SPL");
    }
    name.length = num_letters;
    for (i = 0; i < sizeof classes / sizeof classes[0]; ++i) {
        if (ptx_inject__equal(name, classes[i])) {
            return 1;
        }
    }
    return 0;
}

/* Characters that may follow the percent sign of a register. */
static int ptx_inject__is_identifier(PtxInject__Slice text) {
    return text.length > 0 && ptx_inject__skip_identifier(text) == text.begin + text.length;
}

/* Would it be hidden by a register that is declared around a stub: _x0, _x1, ...? */
static int ptx_inject__is_stable_name(PtxInject__Slice name) {
    size_t i;
    for (i = 2; i < name.length && ptx_inject__is_digit(name.begin[i]); ++i) {
    }
    return name.length > 2 && i == name.length && memcmp(name.begin, "_x", 2) == 0;
}

/* A compiler's register with its percent sign, or, if it is only read, a literal. */
static int ptx_inject__is_operand(PtxInject__Slice text, PtxInjectMutType mut_type) {
    size_t i;
    if (text.begin[0] == '%') {
        ++text.begin;
        --text.length;
        return ptx_inject__is_identifier(text) && !ptx_inject__is_stable_name(text);
    }
    if (text.begin[0] == '-') {
        ++text.begin;
        --text.length;
    }
    for (i = 0; i < text.length; ++i) {
        if (!ptx_inject__is_word(text.begin[i]) && text.begin[i] != '.') {
            return 0;
        }
    }
    return mut_type == PTX_INJECT_MUT_TYPE_IN && text.length > 0 && ptx_inject__is_digit(text.begin[0]);
}

/* Reads a line after its //. */
static PtxInjectResult ptx_inject__read_marker(
    PtxInject__Reader* reader, const char* at, const char* line_end, PtxInject__Marker* marker_out
) {
    PtxInject__Slice mut_type = ptx_inject__rest(at, line_end);
    const char* unprintable = ptx_inject__skip_printable(mut_type);

    if (unprintable < mut_type.begin + mut_type.length) {
        PTX_INJECT__REFUSE(reader->source, unprintable, "a marker is printable ASCII, as PTX is");
    }
    marker_out->register_name = ptx_inject__next_token(&at, line_end);
    mut_type = ptx_inject__next_token(&at, line_end);
    if (mut_type.length == 1) {
        marker_out->type = NULL;
        switch (mut_type.begin[0]) {
            case 'o': marker_out->mut_type = PTX_INJECT_MUT_TYPE_OUT; break;
            case 'm': marker_out->mut_type = PTX_INJECT_MUT_TYPE_MOD; break;
            case 'i': marker_out->mut_type = PTX_INJECT_MUT_TYPE_IN; break;
            default: PTX_INJECT__REFUSE(reader->source, mut_type.begin, "not one of m, o, i, mod, out, in");
        }
        if (!ptx_inject__is_identifier(marker_out->register_name) || ptx_inject__is_compilers(marker_out->register_name)) {
            PTX_INJECT__REFUSE(
                reader->source,
                marker_out->register_name.begin,
                "a register is named with letters, digits, _ and $, and not as compilers do (f1, r2, rd3, p1, SP)"
            );
        }
        marker_out->register_type = ptx_inject__next_token(&at, line_end);
        if (!ptx_inject__is_ptx_type(marker_out->register_type)) {
            PTX_INJECT__REFUSE(reader->source, marker_out->register_type.begin, "not a PTX type, as in f32");
        }
        marker_out->data_type = ptx_inject__next_token(&at, line_end);
    } else {
        PTX_INJECT__TRY(ptx_inject__read_mut_type(reader->source, mut_type, &marker_out->mut_type));
        if (!ptx_inject__is_operand(marker_out->register_name, marker_out->mut_type)) {
            PTX_INJECT__REFUSE(
                reader->source,
                marker_out->register_name.begin,
                "not a register (or, to be read, a literal), or one with the name of a site's (%_x0)"
            );
        }
        marker_out->data_type = ptx_inject__next_token(&at, line_end);
        PTX_INJECT__TRY(ptx_inject__read_type(reader->source, marker_out->data_type, &marker_out->type));
        marker_out->register_type = ptx_inject__slice(marker_out->type->register_type);
    }
    marker_out->name = ptx_inject__rest(at, line_end);
    if (marker_out->name.length == 0) {
        PTX_INJECT__REFUSE(reader->source, at, "the variable's name is missing");
    }
    return PTX_INJECT_SUCCESS;
}

/* Is `word` at a place, followed by a blank or the end of its line? */
static int ptx_inject__begins_with_word(const char* at, const char* end, const char* word, size_t length) {
    return ptx_inject__begins(at, end, word, length) &&
        (at + length == end || at[length] == '\n' || ptx_inject__is_blank(at[length]));
}

#define PTX_INJECT__IS_START(at, end) ptx_inject__begins_with_word(at, end, PTX_INJECT__START, sizeof PTX_INJECT__START - 1)
#define PTX_INJECT__IS_END(at, end) ptx_inject__begins_with_word(at, end, PTX_INJECT__END, sizeof PTX_INJECT__END - 1)

/* Reads the lines after the name up to the END into reader->markers. */
static PtxInjectResult ptx_inject__read_body(
    PtxInject__Reader* reader, const char* start, const char* at, const char** body_end_out
) {
    reader->num_markers = 0;
    for (;;) {
        const char* line_end;
        PtxInject__Marker* marker;
        size_t i;

        at = ptx_inject__line_end(at, reader->source->end);
        if (at == reader->source->end) {
            PTX_INJECT__REFUSE(reader->source, start, "no // PTX_INJECT_END follows this PTX_INJECT_START");
        }
        line_end = ptx_inject__line_end(at + 1, reader->source->end);
        at = ptx_inject__skip_blanks(at + 1, line_end);
        if (at == line_end) {
            continue;
        }
        if (!ptx_inject__begins(at, line_end, "//", 2)) {
            PTX_INJECT__REFUSE(reader->source, at, "only // lines stand between PTX_INJECT_START and PTX_INJECT_END");
        }
        at = ptx_inject__skip_blanks(at + 2, line_end);
        if (PTX_INJECT__IS_END(at, line_end)) {
            *body_end_out = at + sizeof PTX_INJECT__END - 1;
            return PTX_INJECT_SUCCESS;
        }
        if (PTX_INJECT__IS_START(at, line_end)) {
            PTX_INJECT__REFUSE(reader->source, at, "a PTX_INJECT_START before the PTX_INJECT_END of the one before");
        }
        if (reader->num_markers == PTX_INJECT_MAX_ARGS) {
            PTX_INJECT__REFUSE(reader->source, at, "a site has at most PTX_INJECT_MAX_ARGS variables");
        }
        PTX_INJECT__GROW(reader, PtxInject__Marker, reader->markers, reader->num_markers, reader->markers_capacity, 1);
        marker = &reader->markers[reader->num_markers];
        PTX_INJECT__TRY(ptx_inject__read_marker(reader, at, line_end, marker));
        for (i = 0; i < reader->num_markers; ++i) {
            if (ptx_inject__same(reader->markers[i].name, marker->name)) {
                PTX_INJECT__REFUSE(reader->source, marker->name.begin, "two variables of one name at one site");
            }
        }
        if ((marker->type == NULL) != (reader->markers[0].type == NULL)) {
            PTX_INJECT__REFUSE(reader->source, at, "markers of both forms at one site");
        }
        ++reader->num_markers;
    }
}

/* The register of a stub for a marker of the comment form: _x and its number, written to the end of `buffer`. */
#define PTX_INJECT__STABLE_NAME_BYTES (2 + PTX_INJECT__MAX_DIGITS)

static PtxInject__Slice ptx_inject__stable_name(size_t marker_idx, char buffer[PTX_INJECT__STABLE_NAME_BYTES]) {
    char* end = buffer + PTX_INJECT__STABLE_NAME_BYTES;
    char* begin = ptx_inject__digits(end, marker_idx);
    PtxInject__Slice name;
    *--begin = 'x';
    *--begin = '_';
    name.begin = begin;
    name.length = (size_t)(end - begin);
    return name;
}

/* Adds the arguments of reader->markers. Their words, which lie in [begin, end), are copied at once. */
static PtxInjectResult ptx_inject__add_args(PtxInject__Reader* reader, const char* begin, const char* end) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    PtxInject__Slice words;
    size_t offset, i;

    if (reader->num_markers == 0) {
        return PTX_INJECT_SUCCESS;
    }
    words.begin = begin;
    words.length = (size_t)(end - begin);
    PTX_INJECT__TRY(ptx_inject__add_string(reader, words, &offset));
    PTX_INJECT__GROW(reader, PtxInject__Arg, handle->args, handle->num_args, handle->args_capacity, reader->num_markers);
    for (i = 0; i < reader->num_markers; ++i) {
        const PtxInject__Marker* marker = &reader->markers[i];
        PtxInject__Arg* arg = &handle->args[handle->num_args];

/* A word's place in the copy, where the blank or line break after it becomes a NUL. */
#define PTX_INJECT__PLACE(word)                                                                                                \
    (handle->strings[offset + (size_t)((word).begin - begin) + (word).length] = '\0', offset + (size_t)((word).begin - begin))

        arg->mut_type = marker->mut_type;
        arg->name = PTX_INJECT__PLACE(marker->name);
        arg->data_type = PTX_INJECT__PLACE(marker->data_type);
        if (marker->type == NULL) {
            arg->register_name = PTX_INJECT__PLACE(marker->register_name);
            arg->register_type = PTX_INJECT__PLACE(marker->register_type);
        } else {
            if (reader->stable_names[i] == 0) {
                char buffer[PTX_INJECT__STABLE_NAME_BYTES];
                PTX_INJECT__TRY(ptx_inject__add_string(reader, ptx_inject__stable_name(i, buffer), &reader->stable_names[i]));
            }
            if (reader->type != marker->type) {
                PTX_INJECT__TRY(ptx_inject__add_string(reader, marker->register_type, &reader->type_register));
                reader->type = marker->type;
            }
            arg->register_name = reader->stable_names[i];
            arg->register_type = reader->type_register;
        }
        ++handle->num_args;
#undef PTX_INJECT__PLACE
    }
    return PTX_INJECT_SUCCESS;
}

/* Adds an inject, except for its name, at the free entry that was found for it. */
static PtxInjectResult ptx_inject__add_inject(
    PtxInject__Reader* reader, PtxInject__Slice name, PtxInject__Entry* entry, uint64_t hash, const PtxInject__Inject* inject
) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    size_t offset;

#ifdef PTX_INJECT_MAX_UNIQUE_INJECTS
    if (handle->num_injects >= (size_t)(PTX_INJECT_MAX_UNIQUE_INJECTS)) {
        PTX_INJECT__REFUSE_AS(
            PTX_INJECT_ERROR_MAX_UNIQUE_INJECTS_EXCEEDED,
            reader->source,
            name.begin,
            "more names than PTX_INJECT_MAX_UNIQUE_INJECTS"
        );
    }
#endif
    PTX_INJECT__GROW(reader, PtxInject__Inject, handle->injects, handle->num_injects, handle->injects_capacity, 1);
    PTX_INJECT__TRY(ptx_inject__add_string(reader, name, &offset));
    handle->injects[handle->num_injects] = *inject;
    handle->injects[handle->num_injects].name = offset;
    entry->hash = hash;
    entry->index_plus_one = ++handle->num_injects;
    return PTX_INJECT_SUCCESS;
}

/* The first of reader->markers that differs from the inject's; their number, if none differs up to the shorter length. */
static size_t ptx_inject__first_difference(const PtxInject__Reader* reader, const PtxInject__Inject* inject) {
    const struct PtxInjectHandleImpl* handle = reader->handle;
    size_t i;

    for (i = 0; i < reader->num_markers && i < inject->num_args; ++i) {
        const PtxInject__Marker* marker = &reader->markers[i];
        const PtxInject__Arg* arg = &handle->args[inject->first_arg + i];
        char buffer[PTX_INJECT__STABLE_NAME_BYTES];
        const PtxInject__Slice register_name = marker->type != NULL ? ptx_inject__stable_name(i, buffer) : marker->register_name;
        if (marker->mut_type != arg->mut_type || !ptx_inject__equal(marker->name, handle->strings + arg->name) ||
            !ptx_inject__equal(register_name, handle->strings + arg->register_name) ||
            !ptx_inject__equal(marker->register_type, handle->strings + arg->register_type) ||
            !ptx_inject__equal(marker->data_type, handle->strings + arg->data_type)) {
            break;
        }
    }
    return i;
}

static PtxInjectResult ptx_inject__add_site(PtxInject__Reader* reader, size_t inject_idx) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    PTX_INJECT__GROW(reader, PtxInject__Site, handle->sites, handle->num_sites, handle->sites_capacity, 1);
    handle->sites[handle->num_sites].inject_idx = inject_idx;
    handle->sites[handle->num_sites].text_offset = handle->text_length;
    ++handle->num_sites;
    ++handle->injects[inject_idx].num_sites;
    return PTX_INJECT_SUCCESS;
}

#define PTX_INJECT__PUT(out, literal) ptx_inject__put(out, literal, sizeof(literal) - 1)

/* Writes `mov.f32 %_x0, source;` or `mov.f32 destination, %_x0;` on a line of its own. */
static char* ptx_inject__put_mov(
    char* out, PtxInject__Slice indent, const PtxInject__Marker* marker, PtxInject__Slice stable_name, int is_into_stub
) {
    out = ptx_inject__put_slice(out, indent);
    out = PTX_INJECT__PUT(out, "mov.");
    out = ptx_inject__put(out, marker->type->mov_postfix, strlen(marker->type->mov_postfix));
    if (is_into_stub) {
        out = PTX_INJECT__PUT(out, " %");
        out = ptx_inject__put_slice(out, stable_name);
        out = PTX_INJECT__PUT(out, ", ");
        out = ptx_inject__put_slice(out, marker->register_name);
    } else {
        out = PTX_INJECT__PUT(out, " ");
        out = ptx_inject__put_slice(out, marker->register_name);
        out = PTX_INJECT__PUT(out, ", %");
        out = ptx_inject__put_slice(out, stable_name);
    }
    return PTX_INJECT__PUT(out, ";\n");
}

/* Adds a site of the comment form: stable registers and movs around the stub. */
static PtxInjectResult ptx_inject__add_wrapped_site(PtxInject__Reader* reader, PtxInject__Slice indent, size_t inject_idx) {
    struct PtxInjectHandleImpl* handle = reader->handle;
    char buffer[PTX_INJECT__STABLE_NAME_BYTES];
    size_t num_bytes = indent.length + 4; /* the braces */
    char* out;
    size_t i;

    /* A declaration and at most two movs each, with fewer than 16 characters besides the names. */
    for (i = 0; i < reader->num_markers; ++i) {
        const PtxInject__Marker* marker = &reader->markers[i];
        num_bytes += 3 * (indent.length + 16 + sizeof buffer) + marker->register_type.length;
        num_bytes += 2 * (marker->register_name.length + strlen(marker->type->mov_postfix));
    }
    PTX_INJECT__GROW(reader, char, handle->text, handle->text_length, handle->text_capacity, num_bytes);
    out = PTX_INJECT__PUT(handle->text + handle->text_length, "{\n");
    for (i = 0; i < reader->num_markers; ++i) {
        const PtxInject__Slice stable_name = ptx_inject__stable_name(i, buffer);
        out = ptx_inject__put_slice(out, indent);
        out = PTX_INJECT__PUT(out, ".reg .");
        out = ptx_inject__put_slice(out, reader->markers[i].register_type);
        out = PTX_INJECT__PUT(out, " %");
        out = ptx_inject__put_slice(out, stable_name);
        out = PTX_INJECT__PUT(out, ";\n");
        if (reader->markers[i].mut_type != PTX_INJECT_MUT_TYPE_OUT) {
            out = ptx_inject__put_mov(out, indent, &reader->markers[i], stable_name, 1);
        }
    }
    handle->text_length = (size_t)(out - handle->text);
    PTX_INJECT__TRY(ptx_inject__add_site(reader, inject_idx));
    out = PTX_INJECT__PUT(out, "\n");
    for (i = 0; i < reader->num_markers; ++i) {
        if (reader->markers[i].mut_type != PTX_INJECT_MUT_TYPE_IN) {
            out = ptx_inject__put_mov(out, indent, &reader->markers[i], ptx_inject__stable_name(i, buffer), 0);
        }
    }
    out = ptx_inject__put_slice(out, indent);
    out = PTX_INJECT__PUT(out, "}");
    handle->text_length = (size_t)(out - handle->text);
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
    const char* name_end = ptx_inject__skip_identifier(name);
    const uint64_t hash = ptx_inject__hash(name);
    PtxInject__Entry* entry;
    PtxInject__Inject model; /* of this name or, if it is new, of the previous one, which often has the same variables */
    size_t inject_idx, num_same;
    int is_new, is_copy, is_wrapped;

    if (name.length == 0) {
        PTX_INJECT__REFUSE(source, start, "the name is missing: // PTX_INJECT_START name");
    }
    if (name_end < name.begin + name.length) {
        PTX_INJECT__REFUSE(source, name_end, "a name is made of letters, digits, _ and $");
    }
    if (rest.length > 0) {
        PTX_INJECT__REFUSE(source, rest.begin, "a name is one word");
    }
    PTX_INJECT__TRY(ptx_inject__grow_table(reader));
    entry = ptx_inject__find_entry(handle, hash, name);
    is_new = entry->index_plus_one == 0;
    inject_idx = is_new ? handle->num_injects : entry->index_plus_one - 1;
    memset(&model, 0, sizeof model);
    if (handle->num_injects > 0) {
        model = handle->injects[is_new ? inject_idx - 1 : inject_idx];
    }

    is_copy = model.body_length > 0 &&
        ptx_inject__begins_with_word(body, source->end, source->text + model.body_offset, model.body_length);
    if (is_copy) {
        body_end = body + model.body_length; /* identical text */
        is_wrapped = 0;
        num_same = model.num_args;
    } else {
        PTX_INJECT__TRY(ptx_inject__read_body(reader, start, body, &body_end));
        is_wrapped = reader->num_markers > 0 && reader->markers[0].type != NULL;
        num_same = ptx_inject__first_difference(reader, &model);
    }
    if (ptx_inject__rest(body_end, ptx_inject__line_end(body_end, source->end)).length > 0) {
        PTX_INJECT__REFUSE(source, body_end, "nothing follows PTX_INJECT_END on its line");
    }
    *body_end_out = body_end;

    if (is_new) {
        if (!is_copy && (num_same < reader->num_markers || num_same < model.num_args)) {
            model.first_arg = handle->num_args;
            model.num_args = reader->num_markers;
            PTX_INJECT__TRY(ptx_inject__add_args(reader, body, body_end));
        }
        model.num_sites = 0;
        model.body_offset = (size_t)(body - source->text);
        model.body_length = is_wrapped ? 0 : (size_t)(body_end - body);
        PTX_INJECT__TRY(ptx_inject__add_inject(reader, name, entry, hash, &model));
    } else if (!is_copy && num_same < reader->num_markers) {
        PTX_INJECT__REFUSE_AS(
            PTX_INJECT_ERROR_INCONSISTENT_INJECTION,
            source,
            reader->markers[num_same].register_name.begin,
            "another variable than at the first site of this name"
        );
    } else if (num_same < model.num_args) {
        PTX_INJECT__REFUSE_AS(
            PTX_INJECT_ERROR_INCONSISTENT_INJECTION, source, start, "fewer variables than at the first site of this name"
        );
    }
    return is_wrapped ? ptx_inject__add_wrapped_site(reader, indent, inject_idx) : ptx_inject__add_site(reader, inject_idx);
}

/* The // of a marker, given its word; NULL if the word is not the first thing in a line's comment. */
static const char* ptx_inject__comment_begin(const char* text, const char* word) {
    const char* comment;
    const char* line;

    while (word > text && ptx_inject__is_blank(word[-1])) {
        --word;
    }
    if (word - text < 2 || word[-1] != '/' || word[-2] != '/') {
        return NULL;
    }
    comment = word - 2;
    for (line = comment; line > text && ptx_inject__is_blank(line[-1]); --line) {
    }
    return line == text || line[-1] == '\n' ? comment : NULL;
}

/* The end of the block comment that contains a place, or NULL. Places must ascend; *scanned, outside comments and literals, moves
   with them. */
static const char* ptx_inject__comment_around(const char** scanned, const char* place, const char* end) {
    const char* at = *scanned;
    const char* next = NULL;

    while (at < place) {
        if (*at == '"') {
            next = ptx_inject__skip_literal(at, end);
        } else if (ptx_inject__begins(at, end, "//", 2)) {
            next = ptx_inject__line_end(at, end);
        } else if (ptx_inject__begins(at, end, "/*", 2)) {
            next = ptx_inject__skip_comment(at, end);
            if (next == NULL || next > place) {
                *scanned = next == NULL ? end : next;
                return *scanned;
            }
        } else {
            next = at + 1;
        }
        at = next;
    }
    *scanned = at;
    return NULL;
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
    while ((at = (const char*)memchr(at, '*', (size_t)(end - at))) != NULL) {
        if (at > text && at[-1] == '/') {
            return 1;
        }
        ++at;
    }
    return 0;
}

/* Keeps the site that was just read, so that the next one that is the same to the letter is recognised at once. Sites between
   two line breaks are kept, and only those that get the stub alone. */
static void ptx_inject__keep_block(PtxInject__Reader* reader, const char* comment, const char* start, const char* body_end) {
    const char* begin = comment;
    const char* end = ptx_inject__line_end(body_end, reader->source->end);

    reader->block.length = 0;
    while (begin > reader->source->text && *begin != '\n') {
        --begin;
    }
    if (*begin == '\n' && end < reader->source->end && (reader->num_markers == 0 || reader->markers[0].type == NULL)) {
        reader->block.begin = begin;
        reader->block.length = (size_t)(end + 1 - begin);
        reader->block_comment = (size_t)(comment - begin);
        reader->block_start = (size_t)(start - begin);
        reader->block_end = (size_t)(body_end - begin);
    }
}

/* Is the marker that of a site with the same lines as the last one? `copied` is where the text begins that no site has yet. */
static int ptx_inject__is_repeated(const PtxInject__Reader* reader, const char* copied, const char* marker) {
    return reader->block.length > 0 && (size_t)(marker - copied) >= reader->block_start &&
        ptx_inject__begins(marker - reader->block_start, reader->source->end, reader->block.begin, reader->block.length);
}

static PtxInjectResult ptx_inject__read(PtxInject__Reader* reader) {
    const char* text = reader->source->text;
    const char* end = reader->source->end;
    const char* copied = text;
    const char* at = text;
    const char* scanned = text;
    const int has_block_comments = ptx_inject__has_block_comment(text, end);

    while ((at = ptx_inject__find_marker(text, at, end)) != NULL) {
        const int is_repeated = ptx_inject__is_repeated(reader, copied, at);
        const int is_start = is_repeated || PTX_INJECT__IS_START(at, end);
        const char* comment = NULL;

        if (is_repeated) {
            comment = at - reader->block_start + reader->block_comment;
        } else if (is_start || PTX_INJECT__IS_END(at, end)) {
            comment = ptx_inject__comment_begin(text, at);
        }
        if (comment == NULL) {
            at += sizeof PTX_INJECT__MARKER - 1;
            continue;
        }
        if (has_block_comments) {
            const char* behind = ptx_inject__comment_around(&scanned, comment, end);
            if (behind != NULL) {
                at = behind;
                continue;
            }
        }
        if (!is_start) {
            PTX_INJECT__REFUSE(reader->source, at, "no // PTX_INJECT_START precedes this PTX_INJECT_END");
        }
        PTX_INJECT__TRY(ptx_inject__add_text(reader, copied, (size_t)(comment - copied)));
        if (is_repeated) {
            PTX_INJECT__TRY(ptx_inject__add_site(reader, reader->handle->sites[reader->handle->num_sites - 1].inject_idx));
            at += reader->block_end - reader->block_start;
        } else {
            const char* start = at;
            PtxInject__Slice indent;
            for (indent.begin = comment; indent.begin > copied && ptx_inject__is_blank(indent.begin[-1]); --indent.begin) {
            }
            indent.length = (size_t)(comment - indent.begin);
            if (indent.length > PTX_INJECT__MAX_INDENT) {
                indent.length = 0;
            }
            PTX_INJECT__TRY(ptx_inject__read_site(reader, indent, start, &at));
            ptx_inject__keep_block(reader, comment, start, at);
        }
        copied = at;
    }
    return ptx_inject__add_text(reader, copied, (size_t)(end - copied));
}

static PtxInjectResult ptx_inject__create(PtxInject__Source* source, PtxInjectHandle* handle_out) {
    PtxInject__Reader reader;
    PtxInjectResult result;

    memset(&reader, 0, sizeof reader);
    reader.source = source;
    reader.handle = (struct PtxInjectHandleImpl*)PTX_INJECT_MALLOC(sizeof(struct PtxInjectHandleImpl));
    if (reader.handle == NULL) {
        PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_OUT_OF_MEMORY, source, NULL, "out of memory");
    }
    memset(reader.handle, 0, sizeof *reader.handle);
    reader.handle->text_capacity = (size_t)(source->end - source->text) + 1; /* the macro form needs no more */
    reader.handle->text = (char*)PTX_INJECT_MALLOC(reader.handle->text_capacity);
    if (reader.handle->text == NULL) {
        (void)ptx_inject_destroy(reader.handle);
        PTX_INJECT__REFUSE_AS(PTX_INJECT_ERROR_OUT_OF_MEMORY, source, NULL, "out of memory");
    }
    result = ptx_inject__read(&reader);
    PTX_INJECT_FREE(reader.markers);
    if (result != PTX_INJECT_SUCCESS) {
        (void)ptx_inject_destroy(reader.handle);
        return result;
    }
    *handle_out = reader.handle;
    return PTX_INJECT_SUCCESS;
}

PtxInjectResult ptx_inject_create_with_types(
    PtxInjectHandle* handle_out, const char* ptx, const PtxInjectDataTypeInfo* types, size_t num_types
) {
    PtxInject__Source source;
    PtxInjectResult result;

    if (handle_out == NULL) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    *handle_out = NULL;
    result = ptx_inject__open(&source, ptx, types, num_types);
    if (result == PTX_INJECT_SUCCESS) {
        result = ptx_inject__create(&source, handle_out);
    }
    ptx_inject__close(&source);
    return result;
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

    if (place_out == NULL) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    result = ptx_inject__open(&source, ptx, types, num_types);
    if (result == PTX_INJECT_SUCCESS) {
        result = ptx_inject__create(&source, &handle);
    }
    ptx_inject__close(&source);
    ptx_inject__tell(&source, place_out);
    (void)ptx_inject_destroy(handle);
    return result;
}

/* ---- queries ---- */

PtxInjectResult ptx_inject_num_injects(PtxInjectHandle handle, size_t* num_injects_out) {
    if (handle == NULL) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    if (num_injects_out != NULL) {
        *num_injects_out = handle->num_injects;
    }
    return PTX_INJECT_SUCCESS;
}

PtxInjectResult ptx_inject_inject_info_by_index(
    PtxInjectHandle handle, size_t inject_idx, const char** inject_name_out, size_t* num_args_out, size_t* num_sites_out
) {
    if (handle == NULL) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    if (inject_idx >= handle->num_injects) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX);
    }
    if (inject_name_out != NULL) {
        *inject_name_out = handle->strings + handle->injects[inject_idx].name;
    }
    if (num_args_out != NULL) {
        *num_args_out = handle->injects[inject_idx].num_args;
    }
    if (num_sites_out != NULL) {
        *num_sites_out = handle->injects[inject_idx].num_sites;
    }
    return PTX_INJECT_SUCCESS;
}

PtxInjectResult ptx_inject_inject_info_by_name(
    PtxInjectHandle handle, const char* inject_name, size_t* inject_idx_out, size_t* num_args_out, size_t* num_sites_out
) {
    PtxInject__Slice name;
    const PtxInject__Entry* entry = NULL;
    size_t inject_idx;

    if (handle == NULL || inject_name == NULL) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    name = ptx_inject__slice(inject_name);
    if (handle->num_entries > 0) {
        entry = ptx_inject__find_entry(handle, ptx_inject__hash(name), name);
    }
    if (entry == NULL || entry->index_plus_one == 0) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INJECTION_NAME_NOT_FOUND);
    }
    inject_idx = entry->index_plus_one - 1;
    if (inject_idx_out != NULL) {
        *inject_idx_out = inject_idx;
    }
    return ptx_inject_inject_info_by_index(handle, inject_idx, NULL, num_args_out, num_sites_out);
}

PtxInjectResult ptx_inject_variable_info_by_index(
    PtxInjectHandle handle,
    size_t inject_idx,
    size_t arg_idx,
    const char** variable_name_out,
    const char** register_name_out,
    PtxInjectMutType* mut_type_out,
    const char** register_type_name_out,
    const char** data_type_name_out
) {
    const PtxInject__Arg* arg;

    if (handle == NULL) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    if (inject_idx >= handle->num_injects) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_OUT_OF_BOUNDS_IDX);
    }
    if (arg_idx >= handle->injects[inject_idx].num_args) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    arg = &handle->args[handle->injects[inject_idx].first_arg + arg_idx];
    if (variable_name_out != NULL) {
        *variable_name_out = handle->strings + arg->name;
    }
    if (register_name_out != NULL) {
        *register_name_out = handle->strings + arg->register_name;
    }
    if (mut_type_out != NULL) {
        *mut_type_out = arg->mut_type;
    }
    if (register_type_name_out != NULL) {
        *register_type_name_out = handle->strings + arg->register_type;
    }
    if (data_type_name_out != NULL) {
        *data_type_name_out = handle->strings + arg->data_type;
    }
    return PTX_INJECT_SUCCESS;
}

PtxInjectResult ptx_inject_variable_info_by_name(
    PtxInjectHandle handle,
    size_t inject_idx,
    const char* variable_name,
    size_t* arg_idx_out,
    const char** register_name_out,
    PtxInjectMutType* mut_type_out,
    const char** register_type_name_out,
    const char** data_type_name_out
) {
    const PtxInject__Inject* inject;
    size_t arg_idx = 0;

    if (handle == NULL || variable_name == NULL || inject_idx >= handle->num_injects) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    inject = &handle->injects[inject_idx];
    while (arg_idx < inject->num_args &&
           strcmp(handle->strings + handle->args[inject->first_arg + arg_idx].name, variable_name) != 0) {
        ++arg_idx;
    }
    if (arg_idx == inject->num_args) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INJECTION_ARG_NAME_NOT_FOUND);
    }
    if (arg_idx_out != NULL) {
        *arg_idx_out = arg_idx;
    }
    return ptx_inject_variable_info_by_index(
        handle, inject_idx, arg_idx, NULL, register_name_out, mut_type_out, register_type_name_out, data_type_name_out
    );
}

/* ---- rendering ---- */

/* Bytes of the text with its stubs and a NUL; SIZE_MAX if they are more. `lengths` may be NULL. */
static size_t ptx_inject__rendered_size(PtxInjectHandle handle, const char* const* stubs, const size_t* lengths) {
    size_t total = handle->text_length + 1;
    size_t i;
    for (i = 0; i < handle->num_injects; ++i) {
        const size_t length = lengths != NULL ? lengths[i] : strlen(stubs[i]);
        if (length > (SIZE_MAX - total) / handle->injects[i].num_sites) {
            return SIZE_MAX;
        }
        total += length * handle->injects[i].num_sites;
    }
    return total;
}

static PtxInjectResult ptx_inject__render(
    PtxInjectHandle handle,
    const char* const* stubs,
    const size_t* lengths,
    size_t num_stubs,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    const char* text;
    char* out = buffer;
    size_t remaining = buffer_size;
    size_t previous_idx = SIZE_MAX;
    size_t stub_length = 0;
    size_t i, length;

    if (handle == NULL || (stubs == NULL && num_stubs > 0)) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    if (num_stubs != handle->num_injects) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_WRONG_NUM_STUBS);
    }
    for (i = 0; i < num_stubs; ++i) {
        if (stubs[i] == NULL) {
            return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
        }
    }
    text = handle->text;
    for (i = 0; i < handle->num_sites && buffer != NULL; ++i) {
        const PtxInject__Site* site = &handle->sites[i];

        if (site->inject_idx != previous_idx) {
            previous_idx = site->inject_idx;
            stub_length = lengths != NULL ? lengths[previous_idx] : strlen(stubs[previous_idx]);
        }
        length = (size_t)(handle->text + site->text_offset - text);
        if (length > remaining || stub_length > remaining - length) {
            break;
        }
        remaining -= length + stub_length;
        memcpy(out, text, length);
        memcpy(out + length, stubs[previous_idx], stub_length);
        out += length + stub_length;
        text += length;
    }
    length = (size_t)(handle->text + handle->text_length - text);
    if (buffer == NULL || i < handle->num_sites || length >= remaining) {
        return ptx_inject__finish(
            buffer, buffer == NULL ? 0 : buffer_size, ptx_inject__rendered_size(handle, stubs, lengths), bytes_written_out
        );
    }
    memcpy(out, text, length);
    out[length] = '\0';
    return ptx_inject__finish(buffer, buffer_size, (size_t)(out - buffer) + length + 1, bytes_written_out);
}

PtxInjectResult ptx_inject_render_ptx(
    PtxInjectHandle handle,
    const char* const* stubs,
    size_t num_stubs,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    return ptx_inject__render(handle, stubs, NULL, num_stubs, buffer, buffer_size, bytes_written_out);
}

PtxInjectResult ptx_inject_render_ptx_sized(
    PtxInjectHandle handle,
    const char* const* stubs,
    const size_t* stub_lengths,
    size_t num_stubs,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    if (stub_lengths == NULL && num_stubs > 0) {
        return PTX_INJECT__ERROR(PTX_INJECT_ERROR_INVALID_INPUT);
    }
    return ptx_inject__render(handle, stubs, stub_lengths, num_stubs, buffer, buffer_size, bytes_written_out);
}

#ifdef __cplusplus
}
#endif

#endif /* PTX_INJECT_IMPLEMENTATION_ONCE */
#endif /* PTX_INJECT_IMPLEMENTATION */
