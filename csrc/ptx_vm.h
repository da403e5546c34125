/*
 * ptx_vm.h - what a lowered program computes, over blocks of points on a CPU.
 *
 * A lowered program (StackPtxLowered of stack_ptx.h) is prepared once and then run over any number of points. Each input
 * register is an array with a value for each point, or one value for all. Each request becomes an output array, or sums that
 * compare it with a target. Arithmetic is PTX's; see "Meaning" below.
 *
 * Usage
 *
 *     #define PTX_VM_IMPLEMENTATION         in exactly one C or C++ file
 *     #include "ptx_vm.h"
 *
 *     ptx_vm_set_size(&stack_info, &bytes);                                once for an instruction set
 *     ptx_vm_set_init(&stack_info, malloc(bytes), bytes, &set);
 *
 *     ptx_vm_program_size(&lowered, &bytes);                               for each program
 *     ptx_vm_program_init(set, ptx_vm_best_level(), PTX_VM_RUN_STORE, &lowered, memory, bytes, &program, NULL);
 *     ptx_vm_workspace_size(program, &bytes);
 *
 *     PtxVmInput inputs[3] = {{x, false}, {&half, true}, {NULL, false}};   parallel to the registers
 *     void* outputs[1] = {z};                                              parallel to the requests
 *     ptx_vm_store(program, inputs, 3, num_points, outputs, workspace, bytes);
 *
 * Build. The kernels of each SIMD level are in their own file, since each needs its own flags. All need -ffp-contract=off and
 * gain from -O3:
 *
 *     detail/ptx_vm_baseline.c   any machine; also holds the implementation
 *     detail/ptx_vm_avx2.c       x86-64: -mavx2 -mfma
 *     detail/ptx_vm_avx512.c     x86-64: -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mprefer-vector-width=512
 *
 * Options, defined before the implementation
 *
 *     PTX_VM_X86_LEVELS   the AVX2 and AVX-512 files are linked too; the level is chosen at run time
 *     PTX_VM_DEBUG        errors assert where they are found
 *     PTX_VM_STATIC       functions are static; each including file also defines PTX_VM_IMPLEMENTATION. Kernels are not
 *
 * Memory and threads. Nothing is allocated; the caller owns all memory, which may have any alignment and any contents.
 * There is no global state. Sets and programs are immutable once initialised and may be used by any number of threads; a
 * workspace, by one at a time. No pointer may be NULL unless its comment says so.
 *
 * Meaning
 *
 * Each instruction follows the PTX ISA. Where the ISA leaves freedom:
 *
 *   ftz           Subnormal operands and results become zeros of their sign. Results are tested after rounding.
 *                 copysign, selp and tanh are not ftz and keep subnormals.
 *   f16, bf16     are held as the f32 of equal value. Inputs and constants are rounded to them, ties to even; outputs are f32.
 *                 They keep subnormals, but for ex2.approx.ftz.bf16. Arithmetic is rounded once.
 *   NaN           Arithmetic that gives NaN gives 0x7fffffff. Values that are only moved keep their bits.
 *   fma           is rounded once, on every CPU.
 *   min, max      -0 is less than +0; a number beats a NaN.
 *   div.approx    a times the rounded 1/b: 0 or NaN where |b| > 2^126, as on the GPU.
 *   sin, cos      x times 1/2pi in f32, rounded toward zero; the fraction of that is exact. Large arguments give the GPU's
 *                 results: 0 and 1 past 2^23 turns. Infinity gives NaN.
 *   approximate   functions have the ISA's special values and stay well within its errors (detail/ptx_vm_functions.h).
 *   integers      of 32 bits: arithmetic, logic, shifts, bit fields, comparisons. Not supported: what PTX leaves to the machine
 *                 (division and remainder), four operands (bfi), and 64 bits.
 *   pred          as an input, true if any of the 32 bits is set; as an output, 0 or 1.
 *   requests      that found an empty stack are zero.
 *
 * All x86-64 levels compute the same bits, for outputs and sums. AVX-512 is fastest if inputs and outputs begin at multiples of
 * 64 bytes, since each vector then lies in one cache line. At AVX-512 a program with many constants runs at AVX2, whose blocks
 * are half as large: otherwise they would not fit the first-level cache. A call sets the rounding mode and flags of its thread and
 * restores them. Bits on other machines (aarch64) may differ from those of x86-64.
 */

#ifndef PTX_VM_H
#define PTX_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detail/result.h"
#include "stack_ptx.h"
#include "detail/ptx_vm_operations.h"

#define PTX_VM_VERSION_MAJOR 1
#define PTX_VM_VERSION_MINOR 0
#define PTX_VM_VERSION_PATCH 0

#define PTX_VM_API EVO__API(PTX_VM_STATIC)

#ifdef __cplusplus
extern "C" {
#endif

/* ---- results ----------------------------------------------------------------------------------------------------- */

#define PTX_VM__RESULTS(X)                                                                                                \
    X(PTX_VM_SUCCESS, 0)                                                                                                  \
    X(PTX_VM_ERROR_INVALID_VALUE, 1) /* NULL, an index out of range, an input that the program reads but has no values */ \
    X(PTX_VM_ERROR_INSUFFICIENT_MEMORY, 2) /* less memory than the size query returned */                                 \
    X(PTX_VM_ERROR_NO_LEVEL, 3) /* a SIMD level that this build or this CPU lacks */                                      \
    X(PTX_VM_ERROR_NO_CPU_MEANING, 4) /* the CPU cannot run a node: its instruction, special register or stack type */

typedef enum { PTX_VM__RESULTS(EVO__ENUMERATOR) PTX_VM_RESULT_NUM_ENUMS } PtxVmResult;

/* The enumerator's name, or "PTX_VM_RESULT_UNKNOWN". The text is static. */
PTX_VM_API const char* ptx_vm_result_to_string(PtxVmResult result);

/* ---- SIMD levels ------------------------------------------------------------------------------------------------- */

typedef enum {
    PTX_VM_LEVEL_BASELINE = 0, /* x86-64 with SSE2; elsewhere the portable kernels */
    PTX_VM_LEVEL_AVX2 = 1,     /* with FMA */
    PTX_VM_LEVEL_AVX512 = 2,   /* F, DQ, BW and VL */
    PTX_VM_LEVEL_NUM_ENUMS
} PtxVmLevel;

/* "baseline" ("portable" off x86-64), "avx2", "avx512"; otherwise "unknown". The text is static. */
PTX_VM_API const char* ptx_vm_level_to_string(PtxVmLevel level);

/* Whether this build has the level and this CPU and system can run it. */
PTX_VM_API bool ptx_vm_level_is_available(PtxVmLevel level);

/* The fastest level that is available. */
PTX_VM_API PtxVmLevel ptx_vm_best_level(void);

/* ---- instruction sets -------------------------------------------------------------------------------------------- */

/* The operation of each instruction of a set, found by its PTX name. It lies in the caller's memory and does not refer to
   stack_info. */
typedef struct PtxVmSet PtxVmSet;

PTX_VM_API PtxVmResult ptx_vm_set_size(const StackPtxStackInfo* stack_info, size_t* bytes_out);

PTX_VM_API PtxVmResult
ptx_vm_set_init(const StackPtxStackInfo* stack_info, void* memory, size_t memory_bytes, const PtxVmSet** set_out);

/* Whether the instruction has a CPU meaning; false for an index out of range. */
PTX_VM_API bool ptx_vm_set_has_instruction(const PtxVmSet* set, size_t instruction_idx);

/* Binary digits of a stack's floats: 24, of f16 11, of bf16 8; 0 of other types and for an index out of range. */
PTX_VM_API uint32_t ptx_vm_set_digits(const PtxVmSet* set, size_t stack_idx);

/* Result of an instruction of constants, as the `fold` of a StackPtxFolding whose context is a PtxVmSet. So a GPU's assembler
   finds no instruction of constants that it would compute by its own approximations, and CPU and GPU agree. selp whose predicate
   is known is one of its operands. div.approx by a constant is the product with its reciprocal, as "Meaning" says, which an
   assembler would compute too. */
PTX_VM_API StackPtxFoldKind
ptx_vm_fold(const void* set, uint32_t instruction_idx, uint32_t known, const uint32_t* operands, uint32_t* result_out);

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Options that a program is prepared with. */
typedef enum {
    PTX_VM_RUN_STORE = 0,  /* ptx_vm_store */
    PTX_VM_RUN_REDUCE = 1, /* ptx_vm_reduce; every request must be an f32, f16 or bf16, as in those that follow */
    PTX_VM_RUN_GRAM = 2,   /* ptx_vm_gram; there is at least one request */
    PTX_VM_RUN_CONTRACT = 3 /* ptx_vm_contract */
} PtxVmRunKind;

/* The prepared form, in the caller's memory. It does not refer to the lowered program. */
typedef struct PtxVmProgram PtxVmProgram;

PTX_VM_API PtxVmResult ptx_vm_program_size(const StackPtxLowered* lowered, size_t* bytes_out);

/* node_out may be NULL; on NO_CPU_MEANING it is the index of that node.
   Errors: INVALID_VALUE (also REDUCE with a request that is not a float), INSUFFICIENT_MEMORY, NO_LEVEL, NO_CPU_MEANING. */
PTX_VM_API PtxVmResult ptx_vm_program_init(
    const PtxVmSet* set, PtxVmLevel level, PtxVmRunKind kind, const StackPtxLowered* lowered, void* memory, size_t memory_bytes,
    const PtxVmProgram** program_out, uint32_t* node_out
);

/* Bytes of workspace that a run of this program needs. */
PTX_VM_API PtxVmResult ptx_vm_workspace_size(const PtxVmProgram* program, size_t* bytes_out);

/* ---- runs -------------------------------------------------------------------------------------------------------- */

/* The values of a register: 4 bytes for each point, or the same 4 bytes for all. NULL: the program must not read it. */
typedef struct PtxVmInput {
    const void* values;
    bool is_uniform;
} PtxVmInput;

/* Runs a program prepared for STORE. `inputs` runs parallel to the registers that the program was lowered with; `outputs` to
   its requests, num_points values of 4 bytes each. Outputs must not overlap inputs or each other. */
PTX_VM_API PtxVmResult ptx_vm_store(
    const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_inputs, size_t num_points, void* const* outputs,
    void* workspace, size_t workspace_bytes
);

/* Target that a request is compared with. Keep what it points to unchanged while it is used. */
typedef struct PtxVmTarget {
    const float* values;  /* at each point */
    const float* weights; /* of each point, finite and above 0; NULL: all are 1 */
    const double* sums;   /* of ptx_vm_target_sums */
} PtxVmTarget;

#define PTX_VM_TARGET_NUM_SUMS(num_points) (((size_t)(num_points) + 1023) / 1024 * 24)

/* Sums shared by all programs that are finite at all points. weights may be NULL. */
PTX_VM_API PtxVmResult ptx_vm_target_sums(const float* values, const float* weights, size_t num_points, double* sums_out);

/* Sums over the points at which both output y and target t are finite; a subnormal output counts as zero. `sum_y` to `sum_yt` are
   those of y less reference_y and t less reference_t, so that they keep their digits where a mean is large: the references are the
   values at the first point. If t is not finite there, reference_t is 0; if either is not, reference_y is reference_t.

   Each is summed in double, in an order that depends on num_points alone: point j goes to lane j % 8 of block j / 1024, the lanes
   of a block are added pairwise, and so are the blocks. A block's sums have references of its own, the values at its first point,
   and change to those of the first block before they are added. */
typedef struct PtxVmSums {
    uint64_t num_points;    /* all of them */
    uint64_t num_nonfinite; /* those left out */
    double weight;          /* sum of the weights; as are the sums below, each term times its weight */
    double reference_y;
    double reference_t;
    double sum_y;
    double sum_t;
    double sum_yy;
    double sum_tt;
    double sum_yt;
    double sum_squared_error; /* of y - t */
    double max_abs_error;     /* of y - t, without weights */
} PtxVmSums;

/* Runs a program prepared for REDUCE. `targets` and `sums_out` run parallel to the requests. */
PTX_VM_API PtxVmResult ptx_vm_reduce(
    const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_inputs, size_t num_points, const PtxVmTarget* targets,
    PtxVmSums* sums_out, void* workspace, size_t workspace_bytes
);

/* Entries of the lower triangle of all products of 2 + num_requests columns. */
#define PTX_VM_GRAM_NUM_ENTRIES(num_requests) (((size_t)(num_requests) + 2) * ((size_t)(num_requests) + 3) / 2)

/* Runs a program prepared for GRAM, and sums up the products of every two columns: one, target, and each request. So a program
   with its derivatives (derive.h) gives J'J, J'r and the sums for a linear scale in one pass. The sum of columns i >= j is
   sums_out[i (i + 1) / 2 + j].

   A point counts where target and first request are finite; the first sum is their number. There, another request that is
   not finite counts as zero. Subnormals do too.

   is_centred: of target and requests the value at the first point is taken off, so that sums keep their digits where a mean is
   large; 0 if it is not finite. references_out gets what was taken off, 1 + num_requests numbers.
   root_weights: roots of the points' weights, above 0, by which columns are multiplied, that of ones too; NULL: all are 1.

   Columns are rounded to 26 binary digits, which only differences and weighted values have; so products are exact in double. They are added
   in the order of PtxVmSums. */
PTX_VM_API PtxVmResult ptx_vm_gram(
    const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_inputs, size_t num_points, const float* target,
    const float* root_weights, bool is_centred, double* sums_out, double* references_out, void* workspace, size_t workspace_bytes
);

/* ---- contractions ------------------------------------------------------------------------------------------------ */

/* Owner of a value of a contraction: a row m of the first matrix, a row n of the second (a column of the result), or both. */
typedef enum {
    PTX_VM_AXES_NONE = 0,   /* one value for all; a state is one double */
    PTX_VM_AXES_ROW = 1,    /* [m, k] */
    PTX_VM_AXES_COLUMN = 2, /* [n, k] */
    PTX_VM_AXES_PAIR = 3,   /* [m, n] */
    PTX_VM_AXES_INDEX = 4   /* k itself; not for states */
} PtxVmAxes;

typedef enum { PTX_VM_ELEMENT_F32 = 0, PTX_VM_ELEMENT_F16 = 1, PTX_VM_ELEMENT_BF16 = 2 } PtxVmElement;

/* An input. Subnormals of f32 count as zeros. */
typedef struct PtxVmOperand {
    const void* values;
    ptrdiff_t strides[2]; /* in elements, along the two axes in the order of their letters above */
    PtxVmAxes axes;
    PtxVmElement element;
} PtxVmOperand;

/* Values that the program carries on, f32. States of PAIR begin at `initial`; the others are sums, added to `values`. */
typedef struct PtxVmState {
    void* values;
    ptrdiff_t strides[2];
    PtxVmAxes axes;
    float initial;
} PtxVmState;

/* For every m and n, and k in order: states = program(operands, states). NaNs may have any bits. Registers are the operands and then the states, requests
   the new states. A sum that is not a state of PAIR must be written as state + term.
   finish: NULL, or a program of the same registers that makes the results of the operands of NONE and PAIR and the states of PAIR. */
typedef struct PtxVmContract {
    const PtxVmProgram* program;
    const PtxVmOperand* operands;
    size_t num_operands;
    const PtxVmState* states; /* as many as the program has requests; with `finish`, those of PAIR need no values */
    const PtxVmProgram* finish;
    const PtxVmState* results; /* of `finish`, all of PAIR */
    size_t k_size;
} PtxVmContract;

/* Columns that are computed together; the last of them may be fewer. */
#define PTX_VM_CONTRACT_COLUMNS 512u
#define PTX_VM_CONTRACT_MAX_DEPTH (1u << 24) /* up to which k is exact in f32 */

PTX_VM_API PtxVmResult ptx_vm_contract_size(const PtxVmContract* contract, size_t* bytes_out);

/* The part of a contraction with these rows and columns. Parts may run at once if they have no output in common. Sums over
   columns are those of lanes, so their bits depend on the level and on where parts begin; no other bits do. */
PTX_VM_API PtxVmResult ptx_vm_contract(
    const PtxVmContract* contract, size_t first_row, size_t end_row, size_t first_column, size_t end_column, void* workspace,
    size_t workspace_bytes
);

/* ---- between this header and the kernels: private ---------------------------------------------------------------- */

/* Operands that a kernel takes from the accumulator. */
enum {
    PTX_VM__FORM_NONE,
    PTX_VM__FORM_FIRST,
    PTX_VM__FORM_SECOND,
    PTX_VM__FORM_THIRD,
    PTX_VM__FORM_BOTH, /* the first two, which are one value */
    PTX_VM__NUM_FORMS
};

typedef void (*PtxVmKernel)(void); /* cast back by each level before the call */

typedef struct PtxVmStep {
    PtxVmKernel kernel;
    uint32_t operands[3]; /* indices of the run's table of memory */
    uint32_t result;
    uint32_t immediate; /* of lop3: its table */
} PtxVmStep;

#define PTX_VM__SUM_LANES 8u
#define PTX_VM__SUM_BLOCK 1024u /* a multiple of every level's block */

/* The last three follow from the target alone if all points count. */
enum {
    PTX_VM__SUM_Y,
    PTX_VM__SUM_YY,
    PTX_VM__SUM_YT,
    PTX_VM__SUM_EE,
    PTX_VM__SUM_T,
    PTX_VM__SUM_TT,
    PTX_VM__SUM_WEIGHT,
    PTX_VM__NUM_SUMS
};

/* The running sums of one request in a block of PTX_VM__SUM_BLOCK points. */
typedef struct PtxVmLaneSums {
    double sums[PTX_VM__NUM_SUMS][PTX_VM__SUM_LANES]; /* the last three only of lanes with gaps */
    double max_abs_error[PTX_VM__SUM_LANES];          /* of all blocks, as is num_left_out */
    double num_left_out[PTX_VM__SUM_LANES];
    bool has_gaps[PTX_VM__SUM_LANES]; /* points that do not count */
    double reference_y, reference_t;
    const float *targets, *weights; /* from the first point on; weights may be NULL */
    uint32_t num_before;            /* points that come before those of a kernel */
    uint32_t num_valid;             /* points of a kernel within the arrays */
} PtxVmLaneSums;

#define PTX_VM__MAX_LANES 128u /* points of a block, at any level */

#define PTX_VM__DEPTH 8u /* k at once: a packed chunk has 16 KiB, half of the smallest first-level cache */

/* Locations of the inputs and requests of a program, in arrays of num_slots. at: the first block at the next k, which is k_bytes on from
   the one before; where a flip is -1, k_bytes changes its sign each time. moving: those that go on by a block from block to block.
   tail_bytes: how much further the last block is, if it is shorter. */
typedef struct PtxVmSlots {
    char** at;
    ptrdiff_t* k_bytes;
    ptrdiff_t* flips;
    size_t* tail_bytes;
    uint32_t* moving;
    uint32_t num_slots, num_moving;
    bool has_tail;
    size_t num_blocks;
} PtxVmSlots;

/* Loops of detail/ptx_vm_contract_kernel.h, which says what each does. */
typedef struct PtxVmContractKernels {
    void (*gather)(const PtxVmOperand* operand, ptrdiff_t first, ptrdiff_t stride, size_t count, float* to, size_t step);
    void (*spread)(const PtxVmOperand* operand, ptrdiff_t first, ptrdiff_t stride, size_t count, float* to);
    float (*sum_lanes)(float* block, float* part, size_t num_part);
    void (*run_slots)(const PtxVmStep* steps, char** memory, const PtxVmSlots* slots, size_t depth);
} PtxVmContractKernels;

typedef struct PtxVmKernels {
    uint32_t num_points; /* of a block */
    void (*enter)(const PtxVmStep* first, char* const* memory);
    PtxVmKernel end;
    PtxVmKernel operations[PTX_VM__NUM_OPERATIONS][PTX_VM__NUM_FORMS][2];
    void (*target_block)(const float* target, const float* weights, uint32_t num_points, double (*sums)[PTX_VM__SUM_LANES]);
    void (*gram)(
        const float* target, const float* roots, char* const* requests, uint32_t num_requests, uint32_t num_valid,
        const double* references, double* columns, double* lanes
    );
    PtxVmContractKernels contract;
} PtxVmKernels;

const PtxVmKernels* ptx_vm__kernels_baseline(void);
const PtxVmKernels* ptx_vm__kernels_avx2(void);
const PtxVmKernels* ptx_vm__kernels_avx512(void);

/* From row to row of the lanes of a Gram matrix: its columns, in fours. */
#define PTX_VM__GRAM_STRIDE(num_requests) (((num_requests) + 5) / 4 * 4)

#ifdef __cplusplus
}
#endif

#endif /* PTX_VM_H */

/* ================================================================================================================== */

#ifdef PTX_VM_IMPLEMENTATION
#ifndef PTX_VM_IMPLEMENTATION_INCLUDED
#define PTX_VM_IMPLEMENTATION_INCLUDED

#include <stdlib.h>
#include <string.h>
#include "detail/ptx_vm_mode.h"
#include "detail/arena.h"
#include "detail/instruction_row.h"

#define PTX_VM__ERROR(code) EVO__ERROR(PTX_VM_DEBUG, PTX_VM_ERROR_##code)

#ifdef __cplusplus
extern "C" {
#endif

#define PTX_VM__NO_INDEX UINT32_MAX

/* Constants, inputs and outputs of a program at AVX-512. Each has a block in the first-level cache, 512 bytes at AVX-512 and 256
   at AVX2. Past 32 KiB, the smallest such cache, AVX-512 waits for the second level and is slower than AVX2. */
#define PTX_VM__MAX_WIDE_VECTORS 56u

/* ---- results and levels ------------------------------------------------------------------------------------------ */

const char* ptx_vm_result_to_string(PtxVmResult result) { EVO__RETURN_NAME(result, PTX_VM__RESULTS, "PTX_VM_RESULT_UNKNOWN") }

const char* ptx_vm_level_to_string(PtxVmLevel level) {
    switch (level) {
#if defined(__x86_64__)
        case PTX_VM_LEVEL_BASELINE: return "baseline";
#else
        case PTX_VM_LEVEL_BASELINE: return "portable";
#endif
        case PTX_VM_LEVEL_AVX2: return "avx2";
        case PTX_VM_LEVEL_AVX512: return "avx512";
        case PTX_VM_LEVEL_NUM_ENUMS: break;
    }
    return "unknown";
}

/* NULL if the level is not available. */
static const PtxVmKernels* ptx_vm__kernels(PtxVmLevel level) {
    if (level == PTX_VM_LEVEL_BASELINE) return ptx_vm__kernels_baseline();
#if defined(PTX_VM_X86_LEVELS) && defined(__x86_64__)
    if (level == PTX_VM_LEVEL_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return ptx_vm__kernels_avx2();
    if (level == PTX_VM_LEVEL_AVX512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma")) {
        return ptx_vm__kernels_avx512();
    }
#endif
    return NULL;
}

bool ptx_vm_level_is_available(PtxVmLevel level) { return ptx_vm__kernels(level) != NULL; }

PtxVmLevel ptx_vm_best_level(void) {
    if (ptx_vm_level_is_available(PTX_VM_LEVEL_AVX512)) return PTX_VM_LEVEL_AVX512;
    if (ptx_vm_level_is_available(PTX_VM_LEVEL_AVX2)) return PTX_VM_LEVEL_AVX2;
    return PTX_VM_LEVEL_BASELINE;
}

/* ---- instruction sets -------------------------------------------------------------------------------------------- */

enum { PTX_VM__TYPE_NONE, PTX_VM__TYPE_F32 = 'f', PTX_VM__TYPE_F16 = 'h', PTX_VM__TYPE_BF16 = 'b', PTX_VM__TYPE_PRED = 'p' };

static bool ptx_vm__is_half(char type) { return type == PTX_VM__TYPE_F16 || type == PTX_VM__TYPE_BF16; }

#define PTX_VM__OPERATION_OF_ROW(enumerator, ptx, signature, operation, derivative) PTX_VM__##operation,
static const uint8_t ptx_vm__row_operations[] = {INSTRUCTION_TABLE(PTX_VM__OPERATION_OF_ROW)};

struct PtxVmSet {
    size_t num_instructions;
    size_t num_stacks;
    uint32_t multiplication; /* an instruction that is MUL_F32; num_instructions if there is none */
    uint8_t* operations; /* of each instruction */
    uint8_t* immediates;
    const char** signatures; /* of each instruction with an operation */
    char* types; /* letter of each stack */
};

/* Returns where the set is to lie. */
static PtxVmSet* ptx_vm__take_set(EvoArena* arena, const StackPtxStackInfo* stack_info, PtxVmSet* set) {
    PtxVmSet* place = (PtxVmSet*)evo__take(arena, 1, sizeof(PtxVmSet));
    set->num_instructions = stack_info->num_ptx_instructions;
    set->num_stacks = stack_info->num_stacks;
    set->operations = (uint8_t*)evo__take(arena, set->num_instructions, sizeof(uint8_t));
    set->immediates = (uint8_t*)evo__take(arena, set->num_instructions, sizeof(uint8_t));
    set->signatures = (const char**)evo__take(arena, set->num_instructions, sizeof(char*));
    set->types = (char*)evo__take(arena, set->num_stacks, sizeof(char));
    return place;
}

PtxVmResult ptx_vm_set_size(const StackPtxStackInfo* stack_info, size_t* bytes_out) {
    if (stack_info == NULL || bytes_out == NULL) return PTX_VM__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(NULL, 0);
    PtxVmSet set;
    (void)ptx_vm__take_set(&arena, stack_info, &set);
    *bytes_out = arena.num_bytes;
    return PTX_VM_SUCCESS;
}

PtxVmResult ptx_vm_set_init(const StackPtxStackInfo* stack_info, void* memory, size_t memory_bytes, const PtxVmSet** set_out) {
    if (stack_info == NULL || memory == NULL || set_out == NULL) return PTX_VM__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(memory, memory_bytes);
    PtxVmSet content, *set = ptx_vm__take_set(&arena, stack_info, &content);
    if (memory_bytes < arena.num_bytes) return PTX_VM__ERROR(INSUFFICIENT_MEMORY);
    *set = content;
    set->multiplication = (uint32_t)set->num_instructions;
    evo__letters(stack_info, set->types);
    for (size_t i = 0; i < set->num_instructions; i++) {
        const size_t row = evo__find_row(stack_info, set->types, i);
        set->signatures[i] = row < EVO__NUM_ROWS ? evo__rows[row].signature : "";
        set->operations[i] = row < EVO__NUM_ROWS ? ptx_vm__row_operations[row] : (uint8_t)PTX_VM__NO_OPERATION;
        const char* immediates = strchr(stack_info->ptx_instruction_strings[i], ' ');
        set->immediates[i] = immediates == NULL ? 0 : (uint8_t)strtoul(immediates, NULL, 16);
        if (set->operations[i] == PTX_VM__MUL_F32) set->multiplication = (uint32_t)i;
    }
    *set_out = set;
    return PTX_VM_SUCCESS;
}

bool ptx_vm_set_has_instruction(const PtxVmSet* set, size_t instruction_idx) {
    return set != NULL && instruction_idx < set->num_instructions && set->operations[instruction_idx] != PTX_VM__NO_OPERATION;
}

uint32_t ptx_vm_set_digits(const PtxVmSet* set, size_t stack_idx) {
    const char type = set != NULL && stack_idx < set->num_stacks ? set->types[stack_idx] : (char)PTX_VM__TYPE_NONE;
    return type == PTX_VM__TYPE_F32 ? 24u : type == PTX_VM__TYPE_F16 ? 11u : type == PTX_VM__TYPE_BF16 ? 8u : 0u;
}

/* ---- programs: from a lowered program to operations -------------------------------------------------------------- */

struct PtxVmProgram {
    const PtxVmKernels* kernels;
    PtxVmRunKind kind;
    uint32_t num_registers; /* registers that must be given: 1 + the largest index read */
    uint32_t num_inputs;
    uint32_t num_requests;
    uint32_t num_constants;
    uint32_t num_scratch;
    uint32_t* input_registers;
    uint32_t* constants; /* bits */
    PtxVmStep* steps;
};

/* The run's table of memory: inputs, outputs or sums, targets, constants, scratch vectors. */
static uint32_t ptx_vm__first_output(const PtxVmProgram* program) { return program->num_inputs; }
static uint32_t ptx_vm__first_target(const PtxVmProgram* program) { return program->num_inputs + program->num_requests; }
static uint32_t ptx_vm__first_constant(const PtxVmProgram* program) { return program->num_inputs + 2 * program->num_requests; }
static uint32_t ptx_vm__first_scratch(const PtxVmProgram* program) {
    return ptx_vm__first_constant(program) + program->num_constants;
}

enum {
    PTX_VM__RAW = 1, /* an f32 that may be subnormal or a signalling NaN: minimum and maximum want it quiet */
    PTX_VM__LOOSE_NAN = 2 /* an f32 whose NaN may have other bits than PTX's: they are fixed before they can be observed */
};

/* PASSES_NAN also passes a subnormal, as tanh does. */
enum { PTX_VM__EXACT = 0, PTX_VM__PASSES_NAN = PTX_VM__LOOSE_NAN | PTX_VM__RAW };
#define PTX_VM__NAN(enumerator, name, kind, nan) PTX_VM__##nan,
static const uint8_t ptx_vm__nans[] = {PTX_VM__OPERATIONS(PTX_VM__NAN)};

enum { PTX_VM__INPUT = PTX_VM__NUM_OPERATIONS, PTX_VM__CONSTANT };

/* A value and the operation that gives it. */
typedef struct PtxVmValue {
    uint8_t operation; /* or INPUT, CONSTANT */
    uint8_t flags;
    uint8_t num_operands;
    uint8_t immediate;
    uint32_t operands[3];
    uint32_t num_uses; /* as operands that are still to come */
    uint32_t memory; /* index of the run's table, or NO_INDEX while only in the accumulator; INPUT and CONSTANT: at
                               first their own index */
    uint32_t quiet; /* the value made quiet, fixed, or NO_INDEX */
    uint32_t fixed;
    uint32_t first_request; /* of those for it, or NO_INDEX */
} PtxVmValue;

typedef struct PtxVmBuilder {
    PtxVmProgram* program;
    uint32_t num_values;
    uint32_t num_steps;
    PtxVmValue* values;
    uint32_t* numbers; /* of the lowered program's values */
    uint32_t* next_request; /* for the same value, or NO_INDEX */
    uint8_t* outputs; /* operation of each request */
    uint32_t* order; /* operations in order of evaluation */
    uint32_t* free_scratch; /* a vector that is new, then those that are free again */
} PtxVmBuilder;

/* Returns where the program is to lie. */
static PtxVmProgram* ptx_vm__take_program(
    EvoArena* arena, const StackPtxLowered* lowered, PtxVmProgram* program, PtxVmBuilder* builder
) {
    /* Each value may be there as it is, quiet, and fixed; and zero for missing requests. */
    size_t num_values = 3 * (size_t)lowered->num_values + 1;
    PtxVmProgram* place = (PtxVmProgram*)evo__take(arena, 1, sizeof(PtxVmProgram));
    program->input_registers = (uint32_t*)evo__take(arena, lowered->num_values, sizeof(uint32_t));
    program->constants = (uint32_t*)evo__take(arena, num_values, sizeof(uint32_t));
    program->steps = (PtxVmStep*)evo__take(arena, num_values + lowered->num_requests + 1, sizeof(PtxVmStep));
    builder->program = place;
    builder->values = (PtxVmValue*)evo__take(arena, num_values, sizeof(PtxVmValue));
    builder->numbers = (uint32_t*)evo__take(arena, lowered->num_values, sizeof(uint32_t));
    builder->next_request = (uint32_t*)evo__take(arena, lowered->num_requests, sizeof(uint32_t));
    builder->outputs = (uint8_t*)evo__take(arena, lowered->num_requests, sizeof(uint8_t));
    builder->order = (uint32_t*)evo__take(arena, num_values, sizeof(uint32_t));
    builder->free_scratch = (uint32_t*)evo__take(arena, num_values + 2, sizeof(uint32_t));
    return place;
}

PtxVmResult ptx_vm_program_size(const StackPtxLowered* lowered, size_t* bytes_out) {
    if (lowered == NULL || bytes_out == NULL) return PTX_VM__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(NULL, 0);
    PtxVmProgram program;
    PtxVmBuilder builder;
    (void)ptx_vm__take_program(&arena, lowered, &program, &builder);
    *bytes_out = arena.num_bytes;
    return PTX_VM_SUCCESS;
}

static uint32_t ptx_vm__add_value(PtxVmBuilder* builder, uint8_t operation, uint8_t flags) {
    const uint32_t none = PTX_VM__NO_INDEX;
    const PtxVmValue value = {operation, flags, 0, 0, {none, none, none}, 0, none, none, none, none};
    builder->values[builder->num_values] = value;
    return builder->num_values++;
}

static void ptx_vm__add_operand(PtxVmBuilder* builder, uint32_t number, uint32_t operand) {
    PtxVmValue* value = &builder->values[number];
    value->operands[value->num_operands++] = operand;
    builder->values[operand].num_uses++;
}

static uint32_t ptx_vm__add_unary(PtxVmBuilder* builder, uint8_t operation, uint8_t flags, uint32_t operand) {
    uint32_t number = ptx_vm__add_value(builder, operation, flags);
    ptx_vm__add_operand(builder, number, operand);
    return number;
}

static uint32_t ptx_vm__add_input(PtxVmBuilder* builder, uint32_t register_idx, char type) {
    PtxVmProgram* program = builder->program;
    /* A contraction's operands are made quiet when they are packed. */
    const bool is_raw = type == PTX_VM__TYPE_F32 && program->kind != PTX_VM_RUN_CONTRACT;
    uint32_t number = ptx_vm__add_value(builder, PTX_VM__INPUT, is_raw ? PTX_VM__RAW : 0);
    uint32_t i = 0;
    while (i < program->num_inputs && program->input_registers[i] != register_idx) i++;
    if (i == program->num_inputs) program->input_registers[program->num_inputs++] = register_idx;
    if (program->num_registers <= register_idx) program->num_registers = register_idx + 1;
    builder->values[number].memory = i;
    if (type == PTX_VM__TYPE_PRED) return ptx_vm__add_unary(builder, PTX_VM__TRUTH, 0, number);
    if (type == PTX_VM__TYPE_F16) return ptx_vm__add_unary(builder, PTX_VM__ROUND_F16, PTX_VM__LOOSE_NAN, number);
    if (type == PTX_VM__TYPE_BF16) return ptx_vm__add_unary(builder, PTX_VM__ROUND_BF16, PTX_VM__LOOSE_NAN, number);
    return number;
}

static bool ptx_vm__is_nan_bits(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }
static bool ptx_vm__is_subnormal_bits(uint32_t bits) { return (bits & 0x7f800000u) == 0 && (bits & 0x007fffffu) != 0; }

/* The bits of the f32 that equals a constant's nearest half. */
static uint32_t ptx_vm__narrowed(uint32_t bits, char type) {
    const uint32_t magnitude = bits & 0x7fffffffu, sign = bits & 0x80000000u;
    float value;
    if (ptx_vm__is_nan_bits(bits)) return bits;
    if (type == PTX_VM__TYPE_BF16) return (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
    if (magnitude >= 0x477ff000u) return sign | 0x7f800000u;
    if (magnitude >= 0x38800000u) return sign | ((magnitude + 0xfffu + (magnitude >> 13 & 1u)) & 0xffffe000u);
    memcpy(&value, &magnitude, sizeof value);
    value = (value + 0.5f) - 0.5f; /* whose last digit is that of the subnormal f16 */
    memcpy(&bits, &value, sizeof bits);
    return sign | bits;
}

static uint32_t ptx_vm__add_constant(PtxVmBuilder* builder, uint32_t bits, char type) {
    if (ptx_vm__is_half(type)) bits = ptx_vm__narrowed(bits, type);
    PtxVmProgram* program = builder->program;
    bool is_raw = type == PTX_VM__TYPE_F32 && (ptx_vm__is_nan_bits(bits) || ptx_vm__is_subnormal_bits(bits));
    uint32_t number = ptx_vm__add_value(builder, PTX_VM__CONSTANT, is_raw ? PTX_VM__RAW : 0);
    builder->values[number].memory = program->num_constants;
    program->constants[program->num_constants++] = type == PTX_VM__TYPE_PRED && bits != 0 ? UINT32_MAX : bits;
    return number;
}

/* The value with subnormals flushed and NaNs quiet. */
static uint32_t ptx_vm__quiet(PtxVmBuilder* builder, uint32_t number) {
    const PtxVmValue* value = &builder->values[number];
    if (!(value->flags & PTX_VM__RAW)) return number;
    if (value->quiet == PTX_VM__NO_INDEX) {
        uint32_t quiet;
        if (value->operation == PTX_VM__CONSTANT) {
            uint32_t bits = builder->program->constants[value->memory];
            quiet = ptx_vm__add_constant(builder, ptx_vm__is_nan_bits(bits) ? 0x7fffffffu : bits & 0x80000000u, PTX_VM__TYPE_F32);
            builder->values[quiet].flags = 0;
        } else {
            quiet = ptx_vm__add_unary(builder, PTX_VM__QUIET_F32, PTX_VM__LOOSE_NAN, number);
        }
        builder->values[number].quiet = quiet;
    }
    return builder->values[number].quiet;
}

/* The value with the bits that PTX gives a NaN. */
static uint32_t ptx_vm__fix(PtxVmBuilder* builder, uint32_t number) {
    const PtxVmValue* value = &builder->values[number];
    if (!(value->flags & PTX_VM__LOOSE_NAN) || builder->program->kind == PTX_VM_RUN_CONTRACT) return number;
    if (value->fixed == PTX_VM__NO_INDEX) {
        uint8_t flags = value->flags & PTX_VM__RAW;
        uint32_t fixed = ptx_vm__add_unary(builder, PTX_VM__FIX_NAN_F32, flags, number);
        builder->values[number].fixed = fixed;
    }
    return builder->values[number].fixed;
}

/* Whether x86's minimum or maximum with this constant as second operand is PTX's. x86 returns the second operand for a NaN, as
   PTX does, and for two zeros, when the constant must be the one that PTX prefers. */
static bool ptx_vm__is_plain_bound(const PtxVmBuilder* builder, uint32_t number, uint8_t operation) {
    const PtxVmValue* value = &builder->values[number];
    if (value->operation != PTX_VM__CONSTANT) return false;
    uint32_t bits = builder->program->constants[value->memory];
    return !ptx_vm__is_nan_bits(bits) && bits != (operation == PTX_VM__MIN_F32 ? 0u : 0x80000000u);
}

static uint32_t ptx_vm__add_minimum(PtxVmBuilder* builder, uint8_t operation, uint32_t a, uint32_t b) {
    a = ptx_vm__quiet(builder, a);
    b = ptx_vm__quiet(builder, b);
    if (ptx_vm__is_plain_bound(builder, a, operation)) {
        uint32_t constant = a;
        a = b;
        b = constant;
    }
    if (ptx_vm__is_plain_bound(builder, b, operation))
        operation = operation == PTX_VM__MIN_F32 ? PTX_VM__MIN_RAW_F32 : PTX_VM__MAX_RAW_F32;
    uint32_t number = ptx_vm__add_value(builder, operation, PTX_VM__LOOSE_NAN);
    ptx_vm__add_operand(builder, number, a);
    ptx_vm__add_operand(builder, number, b);
    return number;
}

static uint32_t ptx_vm__add_operation(PtxVmBuilder* builder, uint8_t operation, const uint32_t* operands, uint32_t num_operands) {
    uint32_t used[3] = {operands[0], operands[1], operands[2]};
    uint8_t flags = 0;
    if (operation == PTX_VM__MIN_F32 || operation == PTX_VM__MAX_F32) {
        return ptx_vm__add_minimum(builder, operation, used[0], used[1]);
    } else if (operation == PTX_VM__COPYSIGN_F32) {
        used[0] = ptx_vm__fix(builder, used[0]);
        used[1] = ptx_vm__fix(builder, used[1]);
        flags = builder->values[used[1]].flags & PTX_VM__RAW;
    } else if (operation == PTX_VM__SELP_B32) {
        /* Bits are moved: NaN bits may stay loose only if both operands' are, since later it is unknown which to fix. */
        uint8_t loose = builder->values[used[0]].flags & builder->values[used[1]].flags & PTX_VM__LOOSE_NAN;
        if (!loose) {
            used[0] = ptx_vm__fix(builder, used[0]);
            used[1] = ptx_vm__fix(builder, used[1]);
        }
        flags = loose | ((builder->values[used[0]].flags | builder->values[used[1]].flags) & PTX_VM__RAW);
    } else {
        const uint8_t nan = ptx_vm__nans[operation];
        flags = (uint8_t)((nan & PTX_VM__LOOSE_NAN) | (nan & PTX_VM__RAW & builder->values[used[0]].flags));
    }
    const uint32_t number = ptx_vm__add_value(builder, operation, flags);
    PtxVmValue* value = &builder->values[number];
    value->num_operands = (uint8_t)num_operands;
    for (uint32_t k = 0; k < 3; k++) { /* without a branch on the number of operands */
        value->operands[k] = used[k] | (0u - (uint32_t)(k >= num_operands));
        builder->values[used[k]].num_uses += k < num_operands;
    }
    return number;
}

/* ---- programs: from operations to steps -------------------------------------------------------------------------- */

/* EXTREME and COMMUTATIVE may exchange two operands, MULTIPLY_ADD the first two of three. */
enum {
    PTX_VM__UNARY,
    PTX_VM__BINARY,
    PTX_VM__EXTREME,
    PTX_VM__COMMUTATIVE,
    PTX_VM__SELECT,
    PTX_VM__LOGIC,
    PTX_VM__MULTIPLY_ADD,
    PTX_VM__OUTPUT,
    PTX_VM__SUM
};

#define PTX_VM__KIND(enumerator, name, kind, nan) PTX_VM__##kind,
static const uint8_t ptx_vm__kinds[] = {PTX_VM__OPERATIONS(PTX_VM__KIND)};

/* The form for each kind and each set of operands (bit k: operand k) that are the value in the accumulator. */
#define PTX_VM__SWAP 0x80u /* the first two operands are to be exchanged first */
static const uint8_t ptx_vm__forms[][8] = {
    /* UNARY */ {PTX_VM__FORM_NONE, PTX_VM__FORM_FIRST},
    /* BINARY */ {PTX_VM__FORM_NONE, PTX_VM__FORM_FIRST, PTX_VM__FORM_SECOND, PTX_VM__FORM_FIRST},
    /* EXTREME */ {PTX_VM__FORM_NONE, PTX_VM__FORM_FIRST, PTX_VM__FORM_FIRST | PTX_VM__SWAP, PTX_VM__FORM_FIRST},
    /* COMMUTATIVE */ {PTX_VM__FORM_NONE, PTX_VM__FORM_FIRST, PTX_VM__FORM_FIRST | PTX_VM__SWAP, PTX_VM__FORM_BOTH},
    /* SELECT */
    {PTX_VM__FORM_NONE, PTX_VM__FORM_FIRST, PTX_VM__FORM_SECOND, PTX_VM__FORM_FIRST, PTX_VM__FORM_THIRD, PTX_VM__FORM_FIRST,
     PTX_VM__FORM_SECOND, PTX_VM__FORM_FIRST},
    /* LOGIC */
    {PTX_VM__FORM_NONE, PTX_VM__FORM_FIRST, PTX_VM__FORM_SECOND, PTX_VM__FORM_FIRST, PTX_VM__FORM_THIRD, PTX_VM__FORM_FIRST,
     PTX_VM__FORM_SECOND, PTX_VM__FORM_FIRST},
    /* MULTIPLY_ADD */
    {PTX_VM__FORM_NONE, PTX_VM__FORM_FIRST, PTX_VM__FORM_FIRST | PTX_VM__SWAP, PTX_VM__FORM_BOTH, PTX_VM__FORM_THIRD,
     PTX_VM__FORM_FIRST, PTX_VM__FORM_FIRST | PTX_VM__SWAP, PTX_VM__FORM_BOTH},
};

/* Uses of the accumulator's value by an operation, and its operands in the matching order. Branches are hard to predict in
   irregular programs, so there are none here: masks take the place of conditions, which compilers make branches. */
static uint32_t ptx_vm__choose_form(const PtxVmValue* value, uint32_t accumulator, uint32_t* operands) {
    const uint32_t first = value->operands[0], second = value->operands[1], third = value->operands[2];
    const uint32_t set =
        (uint32_t)(first == accumulator) | (uint32_t)(second == accumulator) << 1 | (uint32_t)(third == accumulator) << 2;
    const uint32_t form = ptx_vm__forms[ptx_vm__kinds[value->operation]][set];
    const uint32_t swapped = (first ^ second) & (0u - form / PTX_VM__SWAP);
    operands[0] = first ^ swapped;
    operands[1] = second ^ swapped;
    operands[2] = third;
    return form & ~PTX_VM__SWAP;
}

static PtxVmStep* ptx_vm__add_step(PtxVmBuilder* builder, uint8_t operation, uint32_t form, bool is_stored) {
    PtxVmStep* step = &builder->program->steps[builder->num_steps++];
    memset(step, 0, sizeof *step);
    step->kernel = builder->program->kernels->operations[operation][form][is_stored];
    return step;
}

/* The steps for the requests of a value, which is in the accumulator, or in memory with FORM_NONE. */
static void ptx_vm__add_outputs(PtxVmBuilder* builder, const PtxVmValue* value, uint32_t form) {
    for (uint32_t i = value->first_request; i != PTX_VM__NO_INDEX; i = builder->next_request[i]) {
        PtxVmStep* step = ptx_vm__add_step(builder, builder->outputs[i], form, true);
        step->operands[0] = form == PTX_VM__FORM_NONE ? value->memory : 0;
        step->operands[1] = ptx_vm__first_target(builder->program) + i;
        step->result = ptx_vm__first_output(builder->program) + i;
    }
}

static void ptx_vm__add_steps(PtxVmBuilder* builder, uint32_t num_ordered) {
    PtxVmProgram* program = builder->program;
    const uint32_t first_scratch = ptx_vm__first_scratch(program);
    uint32_t* free_scratch = builder->free_scratch;
    uint32_t num_free = 0, operands[3] = {0, 0, 0}, form = PTX_VM__FORM_NONE;
    if (num_ordered > 0) memcpy(operands, builder->values[builder->order[0]].operands, sizeof operands);
    for (uint32_t i = 0; i < num_ordered; i++) {
        const uint32_t number = builder->order[i];
        PtxVmValue* value = &builder->values[number];
        uint32_t memory[3] = {0, 0, 0};
        for (uint32_t k = 0; k < 3; k++) {
            const uint32_t is_there = k < value->num_operands;
            PtxVmValue* operand = &builder->values[operands[k] & (0u - is_there)];
            const uint32_t is_stored = is_there & (uint32_t)(operand->memory != PTX_VM__NO_INDEX);
            memory[k] = operand->memory & (0u - is_stored);
            /* A scratch vector is free right after its last use: kernels read all operands before they store. */
            free_scratch[num_free + 1] = operand->memory;
            operand->num_uses -= is_there;
            num_free += (uint32_t)(operand->num_uses == 0) & is_stored & (uint32_t)(operand->memory >= first_scratch);
        }
        /* It is stored unless the next operation takes it from the accumulator and is its only user. */
        uint32_t next_form = PTX_VM__FORM_NONE;
        if (i + 1 < num_ordered) next_form = ptx_vm__choose_form(&builder->values[builder->order[i + 1]], number, operands);
        const uint32_t num_taken = (uint32_t)(next_form != PTX_VM__FORM_NONE) + (uint32_t)(next_form == PTX_VM__FORM_BOTH);
        const uint32_t is_stored = value->num_uses > num_taken, is_new = num_free == 0;
        free_scratch[0] = first_scratch + program->num_scratch;
        value->memory = free_scratch[num_free] | (is_stored - 1);
        num_free -= is_stored & (is_new ^ 1);
        program->num_scratch += is_stored & is_new;
        /* A contraction's state is stored by the operation itself, which takes a step less. */
        const uint32_t request = value->first_request;
        const bool is_state = program->kind == PTX_VM_RUN_CONTRACT && !is_stored && request != PTX_VM__NO_INDEX &&
            builder->next_request[request] == PTX_VM__NO_INDEX;
        PtxVmStep* step = ptx_vm__add_step(builder, value->operation, form, is_stored || is_state);
        for (uint32_t k = 0; k < 3; k++) step->operands[k] = memory[k];
        step->immediate = value->immediate;
        step->result = is_state ? ptx_vm__first_output(program) + request : value->memory & (0u - is_stored);
        if (!is_state) ptx_vm__add_outputs(builder, value, PTX_VM__FORM_FIRST);
        form = next_form;
    }
    PtxVmStep* end = &program->steps[builder->num_steps];
    memset(end, 0, sizeof *end);
    end->kernel = program->kernels->end;
}

/* The value as another type: as bits, a NaN is PTX's; as a float, it may be anything. A half is the f32 that it is held as, which is
   subnormal if it is a subnormal bf16. */
static uint32_t ptx_vm__moved(PtxVmBuilder* builder, uint32_t number, const char* signature) {
    const bool is_float = signature[0] == PTX_VM__TYPE_F32, was_float = signature[1] == PTX_VM__TYPE_F32;
    if (was_float && !is_float) return ptx_vm__fix(builder, number);
    if (is_float && !was_float) builder->values[number].flags |= PTX_VM__RAW;
    return number;
}

/* The lowered program's nodes as values. Returns the index of the first without a CPU meaning. */
static uint32_t ptx_vm__add_nodes(PtxVmBuilder* builder, const PtxVmSet* set, const StackPtxLowered* lowered) {
    for (uint32_t i = 0; i < lowered->num_nodes; i++) {
        const StackPtxNode* node = &lowered->nodes[i];
        char type = node->stack_idx < set->num_stacks ? set->types[node->stack_idx] : (char)PTX_VM__TYPE_NONE;
        uint32_t* number = &builder->numbers[node->first_value];
        if (node->kind == STACK_PTX_NODE_INPUT && type != PTX_VM__TYPE_NONE) {
            *number = ptx_vm__add_input(builder, node->payload, type);
        } else if (node->kind == STACK_PTX_NODE_CONSTANT && type != PTX_VM__TYPE_NONE) {
            *number = ptx_vm__add_constant(builder, node->payload, type);
        } else if (node->kind == STACK_PTX_NODE_PTX && ptx_vm_set_has_instruction(set, node->payload)) {
            uint8_t operation = set->operations[node->payload];
            uint32_t operands[3] = {0, 0, 0};
            for (uint32_t k = 0; k < 3; k++) {
                const uint32_t is_there = k < node->num_operands;
                operands[k] = builder->numbers[lowered->operands[node->first_operand + k * is_there]] & (0u - is_there);
            }
            *number = operation == PTX_VM__MOV ? ptx_vm__moved(builder, operands[0], set->signatures[node->payload])
                                               : ptx_vm__add_operation(builder, operation, operands, node->num_operands);
            if (operation == PTX_VM__LOP3_B32) builder->values[*number].immediate = set->immediates[node->payload];
        } else {
            return i;
        }
    }
    return lowered->num_nodes;
}

/* Index of the operation that writes each request. False if one cannot be reduced. */
static bool ptx_vm__add_requests(PtxVmBuilder* builder, const PtxVmSet* set, const StackPtxLowered* lowered) {
    uint32_t zero = PTX_VM__NO_INDEX;
    if (builder->program->kind == PTX_VM_RUN_GRAM && lowered->num_requests == 0) return false;
    for (uint32_t i = lowered->num_requests; i-- > 0;) {
        uint32_t number, id = lowered->request_values[i];
        char type = PTX_VM__TYPE_F32;
        if (id == STACK_PTX_NO_VALUE) {
            if (zero == PTX_VM__NO_INDEX) zero = ptx_vm__add_constant(builder, 0, PTX_VM__TYPE_F32);
            number = zero;
        } else {
            number = builder->numbers[id];
            type = set->types[lowered->value_stacks[id]];
        }
        PtxVmValue* value = &builder->values[number];
        if (builder->program->kind != PTX_VM_RUN_STORE && type != PTX_VM__TYPE_F32 && !ptx_vm__is_half(type)) return false;
        if (builder->program->kind == PTX_VM_RUN_REDUCE)
            builder->outputs[i] = PTX_VM__SUM_F32;
        else if (builder->program->kind == PTX_VM_RUN_GRAM || builder->program->kind == PTX_VM_RUN_CONTRACT)
            builder->outputs[i] = PTX_VM__OUTPUT_BITS;
        else if (type == PTX_VM__TYPE_PRED)
            builder->outputs[i] = PTX_VM__OUTPUT_TRUTH;
        else
            builder->outputs[i] = value->flags & PTX_VM__LOOSE_NAN ? PTX_VM__OUTPUT_F32 : PTX_VM__OUTPUT_BITS;
        builder->next_request[i] = value->first_request;
        value->first_request = i;
    }
    return true;
}

PtxVmResult ptx_vm_program_init(
    const PtxVmSet* set, PtxVmLevel level, PtxVmRunKind kind, const StackPtxLowered* lowered, void* memory, size_t memory_bytes,
    const PtxVmProgram** program_out, uint32_t* node_out
) {
    if (set == NULL || lowered == NULL || memory == NULL || program_out == NULL) return PTX_VM__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(memory, memory_bytes);
    PtxVmProgram content;
    PtxVmBuilder builder;
    memset(&content, 0, sizeof content);
    memset(&builder, 0, sizeof builder);
    PtxVmProgram* program = ptx_vm__take_program(&arena, lowered, &content, &builder);
    if (memory_bytes < arena.num_bytes) return PTX_VM__ERROR(INSUFFICIENT_MEMORY);
    *program = content;
    program->kernels = ptx_vm__kernels(level);
    program->kind = kind;
    program->num_requests = lowered->num_requests;
    if (program->kernels == NULL) return PTX_VM__ERROR(NO_LEVEL);

    uint32_t num_nodes = ptx_vm__add_nodes(&builder, set, lowered);
    if (num_nodes < lowered->num_nodes) {
        if (node_out != NULL) *node_out = num_nodes;
        return PTX_VM__ERROR(NO_CPU_MEANING);
    }
    if (!ptx_vm__add_requests(&builder, set, lowered)) return PTX_VM__ERROR(INVALID_VALUE);
    if (level == PTX_VM_LEVEL_AVX512 && ptx_vm__first_scratch(program) > PTX_VM__MAX_WIDE_VECTORS)
        program->kernels = ptx_vm__kernels(PTX_VM_LEVEL_AVX2);
    /* The order of the lowered program's nodes is that of a stack machine, which takes most operands right after they are made. */
    uint32_t num_ordered = 0;
    for (uint32_t i = 0; i < builder.num_values; i++) {
        PtxVmValue* value = &builder.values[i];
        const bool is_operation = value->operation < PTX_VM__NUM_OPERATIONS;
        builder.order[num_ordered] = i;
        num_ordered += is_operation;
        value->memory += ptx_vm__first_constant(program) & (0u - (uint32_t)(value->operation == PTX_VM__CONSTANT));
        if (!is_operation && value->first_request != PTX_VM__NO_INDEX) ptx_vm__add_outputs(&builder, value, PTX_VM__FORM_NONE);
    }
    ptx_vm__add_steps(&builder, num_ordered);
    *program_out = program;
    return PTX_VM_SUCCESS;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

#define PTX_VM__MAX_TREE_DEPTH 64u

/* The sums of 2^k blocks at index k, where bit k of the number of blocks is set. */
typedef struct PtxVmTree {
    double sums[PTX_VM__MAX_TREE_DEPTH][PTX_VM__NUM_SUMS];
    double reference_y, reference_t;
} PtxVmTree;

typedef struct PtxVmGramRun {
    double* columns;
    double* lanes;
    double* tree;
} PtxVmGramRun;

typedef struct PtxVmRun {
    char** memory;
    char* vectors; /* blocks for inputs, outputs and targets, then constants and scratch vectors */
    PtxVmLaneSums* sums;
    PtxVmTree* trees;
    PtxVmGramRun gram;
} PtxVmRun;

static size_t ptx_vm__block_bytes(const PtxVmProgram* program) { return program->kernels->num_points * sizeof(float); }

static void ptx_vm__take_run(EvoArena* arena, const PtxVmProgram* program, PtxVmRun* run) {
    const size_t num_vectors = (size_t)ptx_vm__first_scratch(program) + program->num_scratch;
    const size_t num_reduced = program->kind == PTX_VM_RUN_REDUCE ? program->num_requests : 0;
    run->memory = (char**)evo__take(arena, num_vectors, sizeof(char*));
    run->vectors = (char*)evo__take(arena, num_vectors, ptx_vm__block_bytes(program));
    run->sums = (PtxVmLaneSums*)evo__take(arena, num_reduced, sizeof(PtxVmLaneSums));
    run->trees = (PtxVmTree*)evo__take(arena, num_reduced, sizeof(PtxVmTree));
    if (program->kind == PTX_VM_RUN_GRAM) {
        const size_t num_requests = program->num_requests, stride = PTX_VM__GRAM_STRIDE(num_requests);
        run->gram.columns = (double*)evo__take(arena, stride * program->kernels->num_points, sizeof(double));
        run->gram.lanes = (double*)evo__take(arena, (2 + num_requests) * stride * 8, sizeof(double));
        run->gram.tree =
            (double*)evo__take(arena, PTX_VM__MAX_TREE_DEPTH * PTX_VM_GRAM_NUM_ENTRIES(num_requests), sizeof(double));
    }
}

PtxVmResult ptx_vm_workspace_size(const PtxVmProgram* program, size_t* bytes_out) {
    if (program == NULL || bytes_out == NULL) return PTX_VM__ERROR(INVALID_VALUE);
    EvoArena arena = evo__arena(NULL, 0);
    PtxVmRun run;
    ptx_vm__take_run(&arena, program, &run);
    *bytes_out = arena.num_bytes;
    return PTX_VM_SUCCESS;
}

static void ptx_vm__fill(char* vector, const void* word, size_t num_bytes) {
    uint32_t bits;
    memcpy(&bits, word, sizeof bits);
    for (size_t i = 0; i < num_bytes; i += sizeof bits) memcpy(vector + i, &bits, sizeof bits);
}

/* Constants, uniform inputs and scratch vectors stay in place for all blocks. */
static void ptx_vm__run_start(const PtxVmProgram* program, const PtxVmInput* inputs, PtxVmRun* run) {
    const size_t block_bytes = ptx_vm__block_bytes(program);
    const uint32_t first_constant = ptx_vm__first_constant(program);
    const uint32_t num_vectors = ptx_vm__first_scratch(program) + program->num_scratch;
    for (uint32_t i = 0; i < num_vectors; i++) run->memory[i] = run->vectors + i * block_bytes;
    for (uint32_t i = 0; i < program->num_constants; i++)
        ptx_vm__fill(run->memory[first_constant + i], &program->constants[i], block_bytes);
    for (uint32_t i = 0; inputs != NULL && i < program->num_inputs; i++) {
        const PtxVmInput* input = &inputs[program->input_registers[i]];
        if (input->is_uniform) ptx_vm__fill(run->memory[i], input->values, block_bytes);
    }
}

/* Sums about a block's references as sums about those of the first block, which are `dy` and `dt` less. */
static void ptx_vm__move_references(double* sums, double dy, double dt) {
    const double weighted_y = sums[PTX_VM__SUM_WEIGHT] * dy, weighted_t = sums[PTX_VM__SUM_WEIGHT] * dt;
    const double y = sums[PTX_VM__SUM_Y] + weighted_y, t = sums[PTX_VM__SUM_T] + weighted_t;
    sums[PTX_VM__SUM_YY] += dy * (sums[PTX_VM__SUM_Y] + y);
    sums[PTX_VM__SUM_TT] += dt * (sums[PTX_VM__SUM_T] + t);
    sums[PTX_VM__SUM_YT] += dy * sums[PTX_VM__SUM_T] + dt * y;
    sums[PTX_VM__SUM_Y] = y;
    sums[PTX_VM__SUM_T] = t;
}

/* Adds up the lanes of each request's sums and adds the block to its tree, which holds `num_blocks` blocks. */
static void ptx_vm__end_sum_block(const PtxVmProgram* program, const PtxVmTarget* targets, PtxVmRun* run, size_t num_blocks) {
    for (uint32_t i = 0; i < program->num_requests; i++) {
        PtxVmLaneSums* block = &run->sums[i];
        PtxVmTree* tree = &run->trees[i];
        const double* known = targets[i].sums + num_blocks * PTX_VM_TARGET_NUM_SUMS(1);
        double sums[PTX_VM__NUM_SUMS];
        for (uint32_t k = 0; k < PTX_VM__NUM_SUMS; k++) {
            double* lanes = block->sums[k];
            if (k >= PTX_VM__SUM_T)
                for (uint32_t lane = 0; lane < PTX_VM__SUM_LANES; lane++)
                    if (!block->has_gaps[lane]) lanes[lane] = known[(k - PTX_VM__SUM_T) * PTX_VM__SUM_LANES + lane];
            sums[k] = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
        }
        if (num_blocks == 0) {
            tree->reference_y = block->reference_y;
            tree->reference_t = block->reference_t;
        }
        ptx_vm__move_references(sums, block->reference_y - tree->reference_y, block->reference_t - tree->reference_t);
        for (uint32_t k = 0; k < PTX_VM__NUM_SUMS; k++) {
            uint32_t level = 0;
            for (; num_blocks >> level & 1; level++) sums[k] = tree->sums[level][k] + sums[k];
            tree->sums[level][k] = sums[k];
        }
        memset(block->sums, 0, sizeof block->sums);
        memset(block->has_gaps, 0, sizeof block->has_gaps);
    }
}

static PtxVmSums ptx_vm__end_sums(const PtxVmLaneSums* lanes, const PtxVmTree* tree, size_t num_points) {
    const size_t num_sum_blocks = num_points / PTX_VM__SUM_BLOCK + (num_points % PTX_VM__SUM_BLOCK != 0);
    double totals[PTX_VM__NUM_SUMS] = {0.0}, num_left_out = 0.0;
    PtxVmSums sums;
    for (uint32_t level = 0; level < PTX_VM__MAX_TREE_DEPTH && (uint64_t)num_sum_blocks >> level != 0; level++) {
        if (!((uint64_t)num_sum_blocks >> level & 1)) continue;
        for (uint32_t k = 0; k < PTX_VM__NUM_SUMS; k++) totals[k] = tree->sums[level][k] + totals[k];
    }
    sums.max_abs_error = 0.0;
    for (uint32_t lane = 0; lane < PTX_VM__SUM_LANES; lane++) {
        num_left_out += lanes->num_left_out[lane];
        if (lanes->max_abs_error[lane] > sums.max_abs_error) sums.max_abs_error = lanes->max_abs_error[lane];
    }
    sums.num_points = num_points;
    sums.num_nonfinite = (uint64_t)num_left_out;
    sums.weight = totals[PTX_VM__SUM_WEIGHT];
    sums.reference_y = num_points > 0 ? tree->reference_y : 0.0;
    sums.reference_t = num_points > 0 ? tree->reference_t : 0.0;
    sums.sum_y = totals[PTX_VM__SUM_Y];
    sums.sum_t = totals[PTX_VM__SUM_T];
    sums.sum_yy = totals[PTX_VM__SUM_YY];
    sums.sum_tt = totals[PTX_VM__SUM_TT];
    sums.sum_yt = totals[PTX_VM__SUM_YT];
    sums.sum_squared_error = totals[PTX_VM__SUM_EE];
    return sums;
}

/* An array's block at a point: in place, or, if the array ends within the block, a copy padded with zeros. */
static char* ptx_vm__block(const void* array, size_t point, size_t num_valid, size_t block, char* copy) {
    char* values = (char*)(uintptr_t)array + point * sizeof(float); /* kernels do not write to inputs */
    if (num_valid == block) return values;
    memcpy(copy, values, num_valid * sizeof(float));
    memset(copy + num_valid * sizeof(float), 0, (block - num_valid) * sizeof(float));
    return copy;
}

/* Either outputs or targets are NULL. */
static void ptx_vm__run_blocks(
    const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_points, void* const* outputs, const PtxVmTarget* targets,
    PtxVmRun* run
) {
    const size_t block = program->kernels->num_points, block_bytes = ptx_vm__block_bytes(program);
    const uint32_t first_output = ptx_vm__first_output(program), first_target = ptx_vm__first_target(program);
    for (size_t point = 0; point < num_points; point += block) {
        const size_t num_valid = num_points - point < block ? num_points - point : block;
        for (uint32_t i = 0; i < program->num_inputs; i++) {
            const PtxVmInput* input = &inputs[program->input_registers[i]];
            if (input->is_uniform) continue;
            run->memory[i] = ptx_vm__block(input->values, point, num_valid, block, run->vectors + i * block_bytes);
        }
        for (uint32_t i = 0; i < program->num_requests; i++) {
            char* copy = run->vectors + (first_output + i) * block_bytes;
            if (targets != NULL) {
                PtxVmLaneSums* sums = &run->sums[i];
                sums->num_valid = (uint32_t)num_valid;
                sums->num_before = (uint32_t)(point % PTX_VM__SUM_BLOCK);
                sums->targets = targets[i].values + (point - sums->num_before);
                sums->weights = targets[i].weights == NULL ? NULL : targets[i].weights + (point - sums->num_before);
                run->memory[first_target + i] = ptx_vm__block(targets[i].values, point, num_valid, block, copy);
                run->memory[first_output + i] = (char*)sums;
            } else {
                run->memory[first_output + i] = num_valid < block ? copy : (char*)outputs[i] + point * sizeof(float);
            }
        }
        program->kernels->enter(program->steps, run->memory);
        if (targets == NULL && num_valid < block)
            for (uint32_t i = 0; i < program->num_requests; i++)
                memcpy((char*)outputs[i] + point * sizeof(float), run->memory[first_output + i], num_valid * sizeof(float));
        const size_t end = point + num_valid;
        if (targets != NULL && (end % PTX_VM__SUM_BLOCK == 0 || end == num_points))
            ptx_vm__end_sum_block(program, targets, run, (end - 1) / PTX_VM__SUM_BLOCK);
    }
}

/* Whether every register that the program reads has values. */
static bool ptx_vm__has_inputs(const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_inputs) {
    if (program->num_registers > num_inputs || (inputs == NULL && program->num_inputs > 0)) return false;
    for (uint32_t i = 0; i < program->num_inputs; i++)
        if (inputs[program->input_registers[i]].values == NULL) return false;
    return true;
}

/* Either outputs or targets and sums_out are NULL. */
static PtxVmResult ptx_vm__run(
    const PtxVmProgram* program, PtxVmRunKind kind, const PtxVmInput* inputs, size_t num_inputs, size_t num_points,
    void* const* outputs, const PtxVmTarget* targets, PtxVmSums* sums_out, void* workspace, size_t workspace_bytes
) {
    if (program == NULL || program->kind != kind || workspace == NULL || !ptx_vm__has_inputs(program, inputs, num_inputs))
        return PTX_VM__ERROR(INVALID_VALUE);
    for (uint32_t i = 0; i < program->num_requests; i++) {
        const bool has_place = kind == PTX_VM_RUN_STORE
            ? outputs != NULL && outputs[i] != NULL
            : sums_out != NULL && targets != NULL && targets[i].values != NULL && targets[i].sums != NULL;
        if (!has_place) return PTX_VM__ERROR(INVALID_VALUE);
    }
    EvoArena arena = evo__arena(workspace, workspace_bytes);
    PtxVmRun run;
    ptx_vm__take_run(&arena, program, &run);
    if (workspace_bytes < arena.num_bytes) return PTX_VM__ERROR(INSUFFICIENT_MEMORY);
    ptx_vm__run_start(program, inputs, &run);
    if (kind == PTX_VM_RUN_REDUCE) memset(run.sums, 0, program->num_requests * sizeof(PtxVmLaneSums));
    const PtxVmMode mode = ptx_vm__set_mode();
    ptx_vm__run_blocks(program, inputs, num_points, outputs, targets, &run);
    ptx_vm__restore_mode(mode);
    if (kind == PTX_VM_RUN_REDUCE)
        for (uint32_t i = 0; i < program->num_requests; i++)
            sums_out[i] = ptx_vm__end_sums(&run.sums[i], &run.trees[i], num_points);
    return PTX_VM_SUCCESS;
}

PtxVmResult ptx_vm_store(
    const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_inputs, size_t num_points, void* const* outputs,
    void* workspace, size_t workspace_bytes
) {
    return ptx_vm__run(
        program, PTX_VM_RUN_STORE, inputs, num_inputs, num_points, outputs, NULL, NULL, workspace, workspace_bytes
    );
}

PtxVmResult ptx_vm_reduce(
    const PtxVmProgram* program, const PtxVmInput* inputs, size_t num_inputs, size_t num_points, const PtxVmTarget* targets,
    PtxVmSums* sums_out, void* workspace, size_t workspace_bytes
) {
    return ptx_vm__run(
        program, PTX_VM_RUN_REDUCE, inputs, num_inputs, num_points, NULL, targets, sums_out, workspace, workspace_bytes
    );
}

PtxVmResult ptx_vm_target_sums(const float* values, const float* weights, size_t num_points, double* sums_out) {
    if ((values == NULL && num_points > 0) || sums_out == NULL) return PTX_VM__ERROR(INVALID_VALUE);
    const PtxVmKernels* kernels = ptx_vm__kernels(PTX_VM_LEVEL_BASELINE);
    const PtxVmMode mode = ptx_vm__set_mode();
    for (size_t point = 0; point < num_points; point += PTX_VM__SUM_BLOCK) {
        const size_t left = num_points - point;
        kernels->target_block(
            values + point, weights == NULL ? NULL : weights + point,
            left < PTX_VM__SUM_BLOCK ? (uint32_t)left : PTX_VM__SUM_BLOCK,
            (double (*)[PTX_VM__SUM_LANES])(sums_out + PTX_VM_TARGET_NUM_SUMS(point))
        );
    }
    ptx_vm__restore_mode(mode);
    return PTX_VM_SUCCESS;
}

#include "detail/ptx_vm_gram.h"
#include "detail/ptx_vm_contract.h"

/* ---- instructions of constants ----------------------------------------------------------------------------------- */

#define PTX_VM__MAX_BLOCK_BYTES 512u /* of the widest level */

/* A constant as an operation takes it. */
static uint32_t ptx_vm__operand_bits(uint8_t operation, char letter, uint32_t bits) {
    if (letter == PTX_VM__TYPE_PRED) return bits != 0 ? UINT32_MAX : 0;
    if (ptx_vm__is_half(letter)) return ptx_vm__narrowed(bits, letter);
    if (operation != PTX_VM__MIN_F32 && operation != PTX_VM__MAX_F32) return bits;
    if (ptx_vm__is_nan_bits(bits)) return 0x7fffffffu;
    return ptx_vm__is_subnormal_bits(bits) ? bits & 0x80000000u : bits;
}

StackPtxFoldKind ptx_vm_fold(
    const void* context, uint32_t instruction_idx, uint32_t known, const uint32_t* operands, uint32_t* result_out
) {
    const PtxVmSet* set = (const PtxVmSet*)context;
    if (!ptx_vm_set_has_instruction(set, instruction_idx)) return STACK_PTX_FOLD_NONE;
    const uint8_t operation = set->operations[instruction_idx];
    const char* signature = set->signatures[instruction_idx];
    const uint32_t num_operands = (uint32_t)strlen(signature) - 1;
    if (operation == PTX_VM__SELP_B32 && (known >> 2 & 1)) {
        const uint32_t chosen = operands[2] != 0 ? 0 : 1;
        *result_out = known >> chosen & 1 ? operands[chosen] : chosen;
        return known >> chosen & 1 ? STACK_PTX_FOLD_CONSTANT : STACK_PTX_FOLD_OPERAND;
    }
    if (operation == PTX_VM__DIV_F32 && known == 2 && set->multiplication < set->num_instructions) {
        const uint32_t one_over[2] = {0x3f800000u, operands[1]};
        result_out[0] = set->multiplication;
        result_out[1] = 1;
        (void)ptx_vm_fold(set, instruction_idx, 3, one_over, &result_out[2]);
        return STACK_PTX_FOLD_INSTRUCTION;
    }
    if (known != (1u << num_operands) - 1) return STACK_PTX_FOLD_NONE;
    if (operation == PTX_VM__MOV) {
        *result_out = ptx_vm__operand_bits(operation, signature[1], operands[0]);
        return STACK_PTX_FOLD_CONSTANT;
    }

    /* The operation and what writes an output, on one block: operands, then the result, then the output. */
    enum { RESULT = 3, OUTPUT, NUM_BLOCKS };
    const PtxVmKernels* kernels = ptx_vm__kernels(PTX_VM_LEVEL_AVX2); /* faster by its fma; its blocks are not the longest */
    if (kernels == NULL) kernels = ptx_vm__kernels_baseline();
    const size_t block_bytes = kernels->num_points * sizeof(float);
    const bool is_loose = (ptx_vm__nans[operation] & PTX_VM__LOOSE_NAN) != 0;
    const uint8_t output = signature[0] == PTX_VM__TYPE_PRED ? PTX_VM__OUTPUT_TRUTH
        : is_loose                                           ? PTX_VM__OUTPUT_F32
                                                             : PTX_VM__OUTPUT_BITS;
    char blocks[NUM_BLOCKS * PTX_VM__MAX_BLOCK_BYTES + 2 * EVO__ALIGNMENT];
    char* memory[NUM_BLOCKS];
    PtxVmStep steps[3];
    EvoArena arena = evo__arena(blocks, sizeof blocks);
    memset(steps, 0, sizeof steps);
    for (uint32_t i = 0; i < NUM_BLOCKS; i++) memory[i] = (char*)evo__take(&arena, 1, block_bytes);
    for (uint32_t i = 0; i < num_operands; i++) {
        const uint32_t bits = ptx_vm__operand_bits(operation, signature[i + 1], operands[i]);
        ptx_vm__fill(memory[i], &bits, block_bytes);
        steps[0].operands[i] = i;
    }
    steps[0].kernel = kernels->operations[operation][PTX_VM__FORM_NONE][true];
    steps[0].result = RESULT;
    steps[0].immediate = set->immediates[instruction_idx];
    steps[1].kernel = kernels->operations[output][PTX_VM__FORM_NONE][true];
    steps[1].operands[0] = RESULT;
    steps[1].result = OUTPUT;
    steps[2].kernel = kernels->end;
    const PtxVmMode mode = ptx_vm__set_mode();
    kernels->enter(steps, memory);
    ptx_vm__restore_mode(mode);
    memcpy(result_out, memory[OUTPUT], sizeof *result_out);
    return STACK_PTX_FOLD_CONSTANT;
}

#ifdef __cplusplus
}
#endif

#endif /* PTX_VM_IMPLEMENTATION_INCLUDED */
#endif /* PTX_VM_IMPLEMENTATION */
