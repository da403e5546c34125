from libc.stdint cimport uint16_t, uint32_t

cdef extern from "ast_ptx_interpreter.h" nogil:
    size_t AST_PTX_MAIN_PROGRAM
    enum:
        AST_PTX_STACK_DEPTH
        AST_PTX_ROUTINE_DEPTH
        AST_PTX_MAX_INSTRUCTIONS
        AST_PTX_MAX_INSTRUCTION_ARGS
        AST_PTX_PTX_INSTRUCTION_NUM_ENUMS

    ctypedef enum AstPtxInstructionType:
        AST_PTX_INSTRUCTION_TYPE_NONE
        AST_PTX_INSTRUCTION_TYPE_INPUT
        AST_PTX_INSTRUCTION_TYPE_CONSTANT
        AST_PTX_INSTRUCTION_TYPE_PTX_INSTRUCTION
        AST_PTX_INSTRUCTION_TYPE_ROUTINE
        AST_PTX_INSTRUCTION_TYPE_RETURN
        AST_PTX_INSTRUCTION_TYPE_ROUTINE_ARG
        AST_PTX_INSTRUCTION_TYPE_REGISTER

    ctypedef struct AstPtxInstruction:
        pass

    ctypedef enum AstPtxResult:
        AST_PTX_SUCCESS
        AST_PTX_ERROR_INSUFFICIENT_BUFFER

    ctypedef struct AstPtxProgram:
        const AstPtxInstruction* instructions
        size_t num_instructions
        const AstPtxInstruction** routines
        const size_t* routine_lengths
        size_t num_routines

    ctypedef struct AstPtxPlace:
        size_t routine_idx
        size_t word_idx

    const char* const* ast_ptx_ptx_instruction_names
    const uint16_t* ast_ptx_ptx_instruction_num_args

    const char* ast_ptx_result_to_string(AstPtxResult)
    AstPtxResult ast_ptx_check_name(const char*)
    AstPtxResult ast_ptx_compile_program(
        const char*, const char**, size_t, const char**, const uint16_t*, size_t, const AstPtxProgram*, char*, size_t, size_t*,
        AstPtxPlace*
    )
    AstPtxResult ast_ptx_interpret_program(const AstPtxProgram*, const float**, size_t, size_t, float*, AstPtxPlace*)
