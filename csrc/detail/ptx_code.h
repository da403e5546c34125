/*
 * ptx_code.h - machine code for a program of ptx_vm.h: AVX-512 or AVX2, made in well under a microsecond.
 *
 * Private to ptx_vm.h; the implementation is ptx_code.c, for x86-64. The code computes the same bits as the virtual machine, which
 * runs what has no code: other instructions, very long programs, systems that allow no executable memory, and EVO_NO_CODE=1.
 *
 * Memory. Each binary has one pool of buffers, mapped twice: once to write and once to execute, so that no address is ever both. A
 * run takes a buffer, writes its code there unless the buffer still has it, and gives the buffer back; nothing else is ever mapped.
 * The child of a fork gets a pool of its own. Any number of threads may take buffers at once.
 */
#ifndef PTX_CODE_H
#define PTX_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptx_vm_operations.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PTX_CODE__MAX_INPUTS 64u

enum { PTX_VM__INPUT = PTX_VM__NUM_OPERATIONS, PTX_VM__CONSTANT };

/* A value of a program and the operation that gives it. */
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

/* What code is made of. The run's table of memory has inputs, then outputs. */
typedef struct PtxCodeSource {
    uint64_t id; /* no other program of this process has it */
    bool is_512;
    uint32_t num_values, num_inputs, num_requests, num_constants;
    const PtxVmValue* values;
    const uint32_t* next_request;
    const uint8_t* outputs; /* operation of each request */
} PtxCodeSource;

/* constants: of the program; AVX2 has them as vectors at the beginning of `spilled`. Runs over num_bytes of each input and output, a multiple of what its vectors have. */
typedef void (*PtxCode)(
    char* const* memory, size_t num_bytes, const uint32_t* constants, char* spilled, const uint32_t* function_constants
);

/* A buffer that a run has taken; is_taken is false if there is none. */
typedef struct PtxCodeRun {
    PtxCode code;
    const uint32_t* function_constants;
    uint32_t buffer;
    bool is_taken;
} PtxCodeRun;

#if defined(PTX_VM_X86_LEVELS) && defined(__x86_64__)
/* Whether this CPU and system run code at all. */
bool ptx_code__is_available(bool is_512);

/* Whether there is code for every operation, and room. Gives the source an id. */
bool ptx_code__prepare(PtxCodeSource* source);

/* uniform: bit i: input i has one value for all points, and its place in the table is that value's address. */
PtxCodeRun ptx_code__take(const PtxCodeSource* source, uint64_t uniform);
void ptx_code__give_back(const PtxCodeRun* run);
#else
static inline bool ptx_code__prepare(PtxCodeSource* source) {
    (void)source;
    return false;
}
static inline PtxCodeRun ptx_code__take(const PtxCodeSource* source, uint64_t uniform) {
    const PtxCodeRun none = {NULL, NULL, 0, false};
    (void)source;
    (void)uniform;
    return none;
}
static inline void ptx_code__give_back(const PtxCodeRun* run) { (void)run; }
#endif

#ifdef __cplusplus
}
#endif

#endif /* PTX_CODE_H */
