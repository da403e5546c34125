/*
 * ptx_vm_operations.h - the list of what the CPU computes for PTX instructions.
 *
 * Private to ptx_vm.h and ast_ptx_interpreter.h. generated/instruction_table.h has those that are PTX, and says which
 * instruction is which operation.
 */

#ifndef PTX_VM_OPERATIONS_H
#define PTX_VM_OPERATIONS_H

#include "../generated/instruction_table.h"

/* Operations: enumerator, name, kind, NaN. Kernels have the name, and so has the function of one vector that they use, in
   ptx_vm_functions.h. The kind tells how many operands there are and which of them a kernel can take from the accumulator. NaN tells
   which bits a NaN result has: LOOSE_NAN: any (float arithmetic); PASSES_NAN: any, or the first operand's if that is NaN; EXACT:
   PTX's, or the result is no float. Those that are not PTX: RAW: minimum and maximum as x86 has them. Quiet: subnormals flushed, NaNs
   quiet. Fix: NaN has PTX's bits. Truth: pred from 32 bits. */
#define PTX_VM__OPERATIONS(X)                      \
    INSTRUCTION_OPERATIONS(X)                      \
    X(MIN_RAW_F32, min_raw_f32, BINARY, LOOSE_NAN) \
    X(MAX_RAW_F32, max_raw_f32, BINARY, LOOSE_NAN) \
    X(QUIET_F32, quiet_f32, UNARY, LOOSE_NAN)      \
    X(FIX_NAN_F32, fix_nan_f32, UNARY, EXACT)      \
    X(TRUTH, truth, UNARY, EXACT)                  \
    X(OUTPUT_BITS, output_bits, OUTPUT, EXACT)     \
    X(OUTPUT_F32, output_f32, OUTPUT, EXACT)       \
    X(OUTPUT_TRUTH, output_truth, OUTPUT, EXACT)   \
    X(SUM_F32, sum_f32, SUM, EXACT)

#define PTX_VM__ENUMERATOR(enumerator, name, kind, nan) PTX_VM__##enumerator,
enum { PTX_VM__OPERATIONS(PTX_VM__ENUMERATOR) PTX_VM__NUM_OPERATIONS };

/* mov is no operation: its result is its operand. */
enum { PTX_VM__MOV = PTX_VM__NUM_OPERATIONS, PTX_VM__NO_OPERATION };

#endif /* PTX_VM_OPERATIONS_H */
