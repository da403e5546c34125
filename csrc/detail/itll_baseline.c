/* The implementation of itll.h and its kernels for any machine of the architecture. Flags: -ffp-contract=off. */
#define ITLL_IMPLEMENTATION
#include "../itll.h"
