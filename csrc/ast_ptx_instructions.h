/*
 * ast_ptx_instructions.h - the built-in instructions of AST PTX: their names for ast_ptx_compile, and their words.
 *
 *     #include "ast_ptx_instructions.h"     ast_ptx_ptx_instruction_names, ast_ptx_ptx_instruction_num_args and
 *                                           AST_PTX_PTX_INSTRUCTION_NUM_ENUMS are the three arguments of ast_ptx_compile
 *
 * ast_ptx_interpreter.h knows these instructions by their index. Operands are written in the order in which they were pushed;
 * copysign.f32 takes the sign of its first operand and the magnitude of its second, as in PTX.
 */

#ifndef AST_PTX_INSTRUCTIONS_H
#define AST_PTX_INSTRUCTIONS_H

#include "ast_ptx.h"
#include "generated/ast_ptx_instructions.h"

#define AST_PTX__ENUMERATOR(index, enumerator, ptx, num_args) AST_PTX_PTX_INSTRUCTION_##enumerator = index,
typedef enum { AST_PTX_PTX_INSTRUCTIONS(AST_PTX__ENUMERATOR) AST_PTX_PTX_INSTRUCTION_NUM_ENUMS } AstPtxPtxInstruction;
#undef AST_PTX__ENUMERATOR

#define AST_PTX__NAME(index, enumerator, ptx, num_args) ptx,
static const char* const ast_ptx_ptx_instruction_names[AST_PTX_PTX_INSTRUCTION_NUM_ENUMS] = {
    AST_PTX_PTX_INSTRUCTIONS(AST_PTX__NAME)
};
#undef AST_PTX__NAME

#define AST_PTX__NUM_ARGS(index, enumerator, ptx, num_args) num_args,
static const uint16_t ast_ptx_ptx_instruction_num_args[AST_PTX_PTX_INSTRUCTION_NUM_ENUMS] = {
    AST_PTX_PTX_INSTRUCTIONS(AST_PTX__NUM_ARGS)
};
#undef AST_PTX__NUM_ARGS

#endif /* AST_PTX_INSTRUCTIONS_H */
