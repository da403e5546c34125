/*
 * stack_ptx_lower.h - stack_ptx_lower: the lowered form of a program.
 *
 * Private: included only by stack_ptx.h, after stack_ptx_fold.h. The rows of a program that has run and is folded are renumbered
 * from first to last, without the dead ones.
 */

#ifndef STACK_PTX_LOWER_H
#define STACK_PTX_LOWER_H

#include "stack_ptx_fold.h"

/* Operands of a node beyond the third, from the rows in which it continues. */
PTX_TEXT__COLD void stack_ptx__collect_continued(
    const StackPtx__Work* work, const StackPtx__Row* row, uint32_t num_operands, uint32_t* operands
) {
    while (num_operands > 4) {
        row = &work->rows[row->operands[1] >> 32];
        num_operands -= 3;
        operands += 3;
        operands[0] = work->value_ids[(uint32_t)row->operands[0]];
        operands[1] = work->value_ids[row->operands[0] >> 32];
        operands[2] = work->value_ids[(uint32_t)row->operands[1]];
        operands[3] = work->value_ids[row->operands[1] >> 32];
    }
}

/* The results of a node with more than one, which may lie on several stacks. */
PTX_TEXT__COLD void stack_ptx__number_results(
    const StackPtxLanguage* language, StackPtx__Work* work, uint32_t r, uint32_t node_idx
) {
    const StackPtxStackInfo* info = &language->stack_info;
    const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[work->nodes[node_idx].payload];
    const uint32_t num_rets = stack_ptx__num_rets(info, descriptor);
    uint32_t value = work->nodes[node_idx].first_value;
    uint32_t i, k;
    for (i = 0; i < num_rets; ++i) {
        for (k = stack_ptx__num_elems(info, descriptor->ret_types[i]); k > 0; --k) {
            work->value_ids[r++] = value;
            work->value_nodes[value] = node_idx;
            work->value_stacks[value++] = info->arg_type_info[descriptor->ret_types[i]].stack_idx;
        }
    }
}

/* Renumbers nodes and values, without the dead ones. */
static void stack_ptx__collect(const StackPtxLanguage* language, StackPtx__Work* work, StackPtxLowered* lowered) {
    const uint8_t* live = work->live;
    const StackPtx__Row* rows = work->rows;
    const StackPtx__OpNode* op_nodes = language->op_nodes;
    const uint32_t num_rows = work->num_rows;
    uint32_t* value_ids = work->value_ids;
    uint32_t* value_nodes = work->value_nodes;
    uint16_t* value_stacks = work->value_stacks;
    uint32_t* operands = work->operands; /* of the next node */
    StackPtxNode* node = work->nodes;
    uint32_t num_nodes = 0, num_values = 0, num_instructions = 0, r;

    value_ids[0] = 0;
    for (r = 1; r < num_rows; ++r) {
        const StackPtx__Row* row = &rows[r];
        const uint64_t head = row->head, operands_0 = row->operands[0], operands_1 = row->operands[1];
        const StackPtx__OpNode* op_node = &op_nodes[(uint32_t)head];
        if (!live[r] || op_node->node.num_values == 0) continue;
        memcpy(node, &op_node->node, offsetof(StackPtxNode, payload));
        node->payload = op_node->node.payload | (uint32_t)(head >> 32);
        node->first_operand = (uint32_t)(operands - work->operands);
        node->first_value = num_values;
        /* If there are fewer, the next node overwrites them. */
        operands[0] = value_ids[(uint32_t)operands_0];
        operands[1] = value_ids[operands_0 >> 32];
        operands[2] = value_ids[(uint32_t)operands_1];
        operands[3] = value_ids[operands_1 >> 32];
        value_ids[r] = num_values;
        value_nodes[num_values] = num_nodes;
        value_stacks[num_values] = op_node->node.stack_idx;
        if (op_node->is_large) {
            stack_ptx__collect_continued(work, row, op_node->node.num_operands, operands);
            stack_ptx__number_results(language, work, r, num_nodes);
            num_values += op_node->node.num_values - 1u;
        }
        operands += op_node->node.num_operands;
        num_instructions += op_node->is_ptx;
        ++num_values;
        ++num_nodes;
        ++node;
    }
    lowered->nodes = work->nodes;
    lowered->operands = work->operands;
    lowered->value_nodes = work->value_nodes;
    lowered->value_stacks = work->value_stacks;
    lowered->num_nodes = num_nodes;
    lowered->num_operands = (uint32_t)(operands - work->operands);
    lowered->num_values = num_values;
    lowered->num_instructions = num_instructions;
}

static StackPtxResult stack_ptx__check_work(const StackPtxLanguage* language, const void* workspace, size_t workspace_bytes) {
    if (language == NULL || workspace == NULL) return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    if (workspace_bytes < language->layout.bytes) return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    return STACK_PTX_SUCCESS;
}

/* Writes what runs of a program by the language's template. Returns its length. */
PTX_TEXT__COLD size_t stack_ptx__instantiate(
    const StackPtxLanguage* language, const StackPtxInstruction* words, size_t num_words, StackPtxInstruction* instance
) {
    size_t length = 0, t, i;
    for (t = 0; t < language->template_length; ++t) {
        const StackPtxInstruction* call = &language->template_words[t];
        const bool is_call = call->instruction_type == STACK_PTX_INSTRUCTION_TYPE_ROUTINE;
        const StackPtxInstruction* from = is_call ? words : call;
        const size_t count = is_call ? num_words : 1;
        uint32_t function = 0;
        for (i = 0; i < count && from[i].instruction_type != STACK_PTX_INSTRUCTION_TYPE_RETURN; ++i) {
            StackPtxInstruction word = from[i];
            if (is_call) {
                if (word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_META &&
                    word.payload.u == STACK_PTX_META_INSTRUCTION_CLEAR) {
                    ++function;
                    continue;
                }
                if (function > call->payload.u) break;
                if (function < call->payload.u) continue;
                if (word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_INPUT) {
                    if (call->aux == 0) continue;
                    word.instruction_type = STACK_PTX_INSTRUCTION_TYPE_LOAD;
                    word.payload.u = language->limits.store_size - 1 - word.payload.u % call->aux;
                }
            }
            if (length == language->limits.execution_limit) return 0;
            instance[length++] = word;
        }
    }
    return length;
}

StackPtxResult stack_ptx_lower(
    const StackPtxLanguage* language, StackPtxMode mode, uint32_t flags, const StackPtxInstruction* words, size_t num_words,
    void* workspace, size_t workspace_bytes, StackPtxLowered* lowered_out, StackPtxPlace* place_out
) {
    StackPtx__Work work;
    StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    size_t i;
    if (result != STACK_PTX_SUCCESS) return result;
    if (lowered_out == NULL || (words == NULL && num_words > 0) || (unsigned)mode > STACK_PTX_MODE_COMPATIBLE ||
        (flags & ~(STACK_PTX_FLAG_NO_VALUE_NUMBERING | STACK_PTX_FLAG_NO_FOLDING)) != 0) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__open_work(language, workspace, &work);
    if (language->template_length > 0) {
        num_words = stack_ptx__instantiate(language, words, num_words, work.instance);
        words = work.instance;
    }
    result = stack_ptx__run(language, mode, flags, words, num_words, &work, place_out);
    if (result != STACK_PTX_SUCCESS) return result;
    for (i = 0; i < language->num_requests; ++i)
        work.request_values[i] = stack_ptx__pop(&work.stacks[language->registers[language->requests[i]].stack_idx]);
    stack_ptx__mark_live(&work, work.request_values, language->num_requests);
    if (language->folding.fold != NULL && (flags & STACK_PTX_FLAG_NO_FOLDING) == 0)
        stack_ptx__fold(language, &work, work.request_values, language->num_requests);
    stack_ptx__collect(language, &work, lowered_out);
    for (i = 0; i < language->num_requests; ++i) {
        const uint32_t row = work.request_values[i];
        work.request_values[i] = row == 0 ? STACK_PTX_NO_VALUE : work.value_ids[row];
    }
    lowered_out->request_values = work.request_values;
    lowered_out->num_requests = (uint32_t)language->num_requests;
    lowered_out->mode = mode;
    return STACK_PTX_SUCCESS;
}

#endif /* STACK_PTX_LOWER_H */
