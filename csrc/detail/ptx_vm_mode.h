/*
 * ptx_vm_mode.h - the floating-point mode in which ptx_vm_functions.h computes what PTX does.
 *
 * Private to ptx_vm.h and ast_ptx_interpreter.h.
 */

#ifndef PTX_VM_MODE_H
#define PTX_VM_MODE_H

#include <stdint.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* Flushes subnormals, rounds to nearest, masks exceptions; returns the mode to restore. */
#if defined(__SSE2__)
typedef unsigned int PtxVmMode;
static inline PtxVmMode ptx_vm__set_mode(void) {
    PtxVmMode mode = _mm_getcsr();
    _mm_setcsr(0x9fc0u); /* FTZ, DAZ, all exceptions masked */
    return mode;
}
static inline void ptx_vm__restore_mode(PtxVmMode mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
typedef uint64_t PtxVmMode;
static inline void ptx_vm__restore_mode(PtxVmMode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
static inline PtxVmMode ptx_vm__set_mode(void) {
    PtxVmMode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    ptx_vm__restore_mode((PtxVmMode)1 << 24); /* FZ */
    return mode;
}
#else
#error "the virtual machine can set the CPU mode that flushes subnormals only with SSE2 and on aarch64"
#endif

#endif /* PTX_VM_MODE_H */
