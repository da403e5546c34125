/*
 * stack_ptx_default_info.h - limits for stack_ptx_compile that suit most programs.
 */

#ifndef STACK_PTX_DEFAULT_INFO_H
#define STACK_PTX_DEFAULT_INFO_H

#include "stack_ptx.h"

static const StackPtxCompilerInfo compiler_info = {
    65536, /* max_ast_size */
    1024,  /* max_ast_to_visit_stack_depth */
    128,   /* stack_size */
    4,     /* max_frame_depth */
    16     /* store_size */
};

#endif /* STACK_PTX_DEFAULT_INFO_H */
