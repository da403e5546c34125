/*
 * stack_ptx_emit.h - the stub and the hash of a lowered program, and stack_ptx_compile.
 *
 * Private: included only by stack_ptx.h, after stack_ptx_lower.h. Each value has a padded text, copied at fixed sizes while the
 * buffer has room. Near its end, and for long texts and vectors, text is written piece by piece.
 */

#ifndef STACK_PTX_EMIT_H
#define STACK_PTX_EMIT_H

#include "stack_ptx_lower.h"

/* ---- emission ---- */

/* Text under construction. `length` also counts what did not fit or was only measured. */
typedef struct StackPtx__Writer {
    char* buffer;
    size_t capacity; /* without the NUL */
    size_t length;
} StackPtx__Writer;

static void stack_ptx__write(StackPtx__Writer* writer, const char* text, size_t num_bytes) {
    if (writer->length + num_bytes <= writer->capacity) {
        memcpy(writer->buffer + writer->length, text, num_bytes);
    }
    writer->length += num_bytes;
}

/* With buffer NULL or of no size, only measures. */
static StackPtx__Writer stack_ptx__open_writer(char* buffer, size_t buffer_size) {
    StackPtx__Writer writer;
    writer.buffer = buffer;
    writer.capacity = buffer == NULL || buffer_size == 0 ? 0 : buffer_size - 1;
    writer.length = 0;
    return writer;
}

static StackPtxResult stack_ptx__close_writer(const StackPtx__Writer* writer, size_t buffer_size, size_t* bytes_written_out) {
    *bytes_written_out = writer->length;
    if (writer->buffer != NULL) {
        if (buffer_size == 0 || writer->length > writer->capacity) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_BUFFER);
        }
        writer->buffer[writer->length] = '\0';
    }
    return STACK_PTX_SUCCESS;
}

static void stack_ptx__write_string(StackPtx__Writer* writer, const char* text) { stack_ptx__write(writer, text, strlen(text)); }

/* Finds the constants that are operands of instructions which take registers only. */
STACK_PTX__COLD void stack_ptx__mark_moved(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work
) {
    uint32_t i, k;
    memset(work->live, 0, lowered->num_nodes);
    for (i = 0; i < lowered->num_nodes; ++i) {
        const StackPtxNode* node = &lowered->nodes[i];
        if (node->kind == STACK_PTX_NODE_PTX && language->op_nodes[node->payload].registers_only) {
            for (k = 0; k < node->num_operands; ++k) {
                const uint32_t operand = lowered->value_nodes[lowered->operands[node->first_operand + k]];
                work->live[operand] = lowered->nodes[operand].kind == STACK_PTX_NODE_CONSTANT;
            }
        }
    }
    work->moved = work->live;
}

/* Names a temporary of a stack. */
STACK_PTX__HOT void stack_ptx__name_temporary(
    const StackPtxLanguage* language, StackPtx__Work* work, uint32_t stack_idx, uint32_t number, StackPtx__Text16* text
) {
    const StackPtx__Text16* stem = &language->stems[stack_idx];
    *text = *stem;
    if (number < 1000) { /* ", %_s65535_999" fits */
        text->length = (uint8_t)(stem->length + stack_ptx__format_decimal(number, text->text + stem->length));
    } else {
        char digits[10];
        const uint32_t num_digits = stack_ptx__format_decimal(number, digits);
        if (stem->length + num_digits <= sizeof text->text) {
            memcpy(text->text + stem->length, digits, num_digits);
            text->length = (uint8_t)(stem->length + num_digits);
        } else {
            memcpy(text->text, &number, sizeof number);
            text->length = STACK_PTX__LONG;
            work->has_long_texts = 1;
        }
    }
}

/* Names and counts the temporaries of the first sorted nodes. */
static void stack_ptx__name_results(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work, uint32_t num_with_temporaries
) {
    const StackPtxNode* nodes = lowered->nodes;
    const uint32_t* sorted_nodes = work->sorted_nodes;
    uint32_t* num_temporaries = work->num_temporaries;
    StackPtx__Text16* texts = work->texts;
    uint32_t i, k;
    memset(num_temporaries, 0, language->stack_info.num_stacks * sizeof *num_temporaries);
    for (i = 0; i < num_with_temporaries; ++i) {
        const StackPtxNode* node = &nodes[sorted_nodes[i]];
        stack_ptx__name_temporary(language, work, node->stack_idx, num_temporaries[node->stack_idx]++, &texts[node->first_value]);
        for (k = 1; k < node->num_values; ++k) {
            const uint32_t value = node->first_value + k;
            const uint32_t stack_idx = lowered->value_stacks[value];
            stack_ptx__name_temporary(language, work, stack_idx, num_temporaries[stack_idx]++, &texts[value]);
        }
    }
}

/* Inputs and most constants are written in place; instructions and special registers have temporaries for results. Lists the
   latter from the front of the array and the former from its back, so that loops over one kind predict well. Names and counts
   the temporaries. Returns how many nodes have them. */
static uint32_t stack_ptx__sort_nodes(const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work) {
    const StackPtxNode* nodes = lowered->nodes;
    const uint32_t num_nodes = lowered->num_nodes;
    const uint8_t* moved = NULL;
    uint32_t* front = work->sorted_nodes;
    uint32_t* back = work->sorted_nodes + num_nodes;
    uint32_t i;
    work->has_long_texts = 0;
    work->moved = NULL;
    if (language->has_registers_only) {
        stack_ptx__mark_moved(language, lowered, work);
        moved = work->moved;
    }
    for (i = 0; i < num_nodes; ++i) {
        /* No short circuit, which would be a branch. */
        const uint32_t is_front = (uint32_t)(nodes[i].kind >= STACK_PTX_NODE_SPECIAL) | (moved != NULL ? moved[i] : 0u);
        *front = i;
        back[-1] = i;
        front += is_front;
        back -= is_front ^ 1u;
    }
    stack_ptx__name_results(language, lowered, work, (uint32_t)(front - work->sorted_nodes));
    return (uint32_t)(front - work->sorted_nodes);
}

/* Names an input or constant. */
STACK_PTX__HOT void stack_ptx__name_leaf(
    const StackPtxLanguage* language, StackPtx__Work* work, const StackPtxNode* node, uint32_t payload, StackPtx__Text16* text
) {
    const uint32_t constant_type = language->stacks[node->stack_idx].constant_type;
    text->length = STACK_PTX__LONG;
    if (node->kind == STACK_PTX_NODE_INPUT) {
        if (language->register_infos != NULL) {
            *text = language->register_infos[payload].text;
        } else {
            stack_ptx__format_register(text, language->registers[payload].name);
        }
    } else if (constant_type < STACK_PTX_CONSTANT_TYPE_F64) {
        memcpy(text->text, ", ", 2);
        text->length = (uint8_t)(2 + stack_ptx__format_literal(constant_type, payload, text->text + 2));
    }
    work->has_long_texts |= text->length == STACK_PTX__LONG;
}

/* Names the inputs and constants among the sorted nodes. */
static void stack_ptx__name_leaves(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    StackPtx__Work* work,
    const uint32_t* leaves,
    uint32_t num_leaves
) {
    uint32_t i;
    for (i = 0; i < num_leaves; ++i) {
        const StackPtxNode* node = &lowered->nodes[leaves[i]];
        stack_ptx__name_leaf(language, work, node, node->payload, &work->texts[node->first_value]);
    }
}

static void stack_ptx__write_temporary(
    const StackPtxLanguage* language, StackPtx__Writer* writer, StackPtx__Temporary temporary
) {
    const StackPtx__Text16* stem = &language->stems[temporary.stack_idx];
    char digits[10];
    stack_ptx__write(writer, stem->text + 2, stem->length - 2u);
    stack_ptx__write(writer, digits, stack_ptx__format_decimal(temporary.number, digits));
}

/* The suffix of a special register whose node has this payload: the element of a vector one. */
static const char* stack_ptx__element_suffix(const StackPtxLanguage* language, uint32_t payload) {
    static const char* const suffixes[4] = {".x", ".y", ".z", ".w"};
    const StackPtxStackInfo* info = &language->stack_info;
    const bool is_vector = stack_ptx__is_vector(info, info->special_register_descriptors[payload & UINT16_MAX].arg_type_idx);
    return is_vector ? suffixes[payload >> 16] : "";
}

static void stack_ptx__write_constant(const StackPtxLanguage* language, StackPtx__Writer* writer, const StackPtxNode* node) {
    char literal[STACK_PTX__MAX_LITERAL];
    const uint32_t constant_type = language->stacks[node->stack_idx].constant_type;
    stack_ptx__write(writer, literal, stack_ptx__format_literal(constant_type, node->payload, literal));
}

/* A value of any length, without the comma before it. */
static void stack_ptx__write_value(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    const StackPtx__Work* work,
    StackPtx__Writer* writer,
    uint32_t value
) {
    const uint32_t node_idx = lowered->value_nodes[value];
    const StackPtxNode* node = &lowered->nodes[node_idx];
    const StackPtx__Text16* text = &work->texts[value];
    if (text->length != STACK_PTX__LONG) {
        stack_ptx__write(writer, text->text + 2, text->length - 2u);
    } else if (node->kind == STACK_PTX_NODE_INPUT) {
        stack_ptx__write(writer, "%", 1);
        stack_ptx__write_string(writer, language->registers[node->payload].name);
    } else if (node->kind == STACK_PTX_NODE_CONSTANT && (work->moved == NULL || !work->moved[node_idx])) {
        stack_ptx__write_constant(language, writer, node);
    } else {
        StackPtx__Temporary temporary;
        temporary.stack_idx = lowered->value_stacks[value];
        memcpy(&temporary.number, text->text, sizeof temporary.number);
        stack_ptx__write_temporary(language, writer, temporary);
    }
}

/* The values of an operand or result: one, or a vector in braces. */
static void stack_ptx__write_group(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    const StackPtx__Work* work,
    StackPtx__Writer* writer,
    uint32_t arg_type,
    const uint32_t* values, /* NULL: those from first_value on */
    uint32_t first_value
) {
    const uint32_t count = stack_ptx__num_elems(&language->stack_info, arg_type);
    const bool is_vector = stack_ptx__is_vector(&language->stack_info, arg_type);
    uint32_t i;
    if (is_vector) {
        stack_ptx__write(writer, "{", 1);
    }
    for (i = 0; i < count; ++i) {
        if (i > 0) {
            stack_ptx__write(writer, ", ", 2);
        }
        stack_ptx__write_value(language, lowered, work, writer, values != NULL ? values[i] : first_value + i);
    }
    if (is_vector) {
        stack_ptx__write(writer, "}", 1);
    }
}

/* The instruction that copies a value of a stack, and a space. PTX has no mov for 8-bit registers, which only cvt, ld and st
   take, nor for the f16 types, whose registers are moved as bits. */
static void stack_ptx__write_move_name(const StackPtxLanguage* language, StackPtx__Writer* writer, uint32_t stack_idx) {
    static const char* const others[][2] = {
        {"u8", "cvt.u8.u8 "},
        {"s8", "cvt.u8.u8 "},
        {"b8", "cvt.u8.u8 "},
        {"f16", "mov.b16 "},
        {"f16x2", "mov.b32 "},
    };
    const char* prefix = language->stack_info.stack_literal_prefixes[stack_idx];
    size_t i;
    for (i = 0; i < sizeof others / sizeof others[0]; ++i) {
        if (strcmp(prefix, others[i][0]) == 0) {
            stack_ptx__write_string(writer, others[i][1]);
            return;
        }
    }
    stack_ptx__write(writer, "mov.", 4);
    stack_ptx__write_string(writer, prefix);
    stack_ptx__write(writer, " ", 1);
}

/* The line of an instruction, special register or moved constant, of any form. */
STACK_PTX__COLD void stack_ptx__write_node(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    const StackPtx__Work* work,
    StackPtx__Writer* writer,
    const StackPtxNode* node
) {
    const StackPtxStackInfo* info = &language->stack_info;
    const uint32_t idx = node->payload & (node->kind == STACK_PTX_NODE_SPECIAL ? UINT16_MAX : UINT32_MAX);
    if (node->kind == STACK_PTX_NODE_SPECIAL) {
        stack_ptx__write_move_name(language, writer, node->stack_idx);
        stack_ptx__write_value(language, lowered, work, writer, node->first_value);
        stack_ptx__write(writer, ", %", 3);
        stack_ptx__write_string(writer, info->special_register_strings[idx]);
        stack_ptx__write_string(writer, stack_ptx__element_suffix(language, node->payload));
    } else if (node->kind == STACK_PTX_NODE_CONSTANT) {
        stack_ptx__write_move_name(language, writer, node->stack_idx);
        stack_ptx__write_value(language, lowered, work, writer, node->first_value);
        stack_ptx__write(writer, ", ", 2);
        stack_ptx__write_constant(language, writer, node);
    } else {
        const StackPtxPtxInstructionDescriptor* descriptor = &info->ptx_instruction_descriptors[idx];
        const uint32_t num_args = stack_ptx__num_args(info, descriptor);
        const uint32_t num_rets = stack_ptx__num_rets(info, descriptor);
        const uint32_t* operands = lowered->operands + node->first_operand;
        const char* name = info->ptx_instruction_strings[idx];
        const char* immediates = strchr(name, ' ');
        uint32_t value = node->first_value;
        uint32_t i;
        stack_ptx__write(writer, name, immediates == NULL ? strlen(name) : (size_t)(immediates - name));
        for (i = 0; i < num_rets; ++i) {
            /* Two results are written p|q. */
            stack_ptx__write(writer, i == 0 ? " " : "|", 1);
            stack_ptx__write_group(language, lowered, work, writer, descriptor->ret_types[i], NULL, value);
            value += stack_ptx__num_elems(info, descriptor->ret_types[i]);
        }
        for (i = 0; i < num_args; ++i) {
            stack_ptx__write(writer, ", ", 2);
            stack_ptx__write_group(language, lowered, work, writer, descriptor->arg_types[i], operands, 0);
            operands += stack_ptx__num_elems(info, descriptor->arg_types[i]);
        }
        if (immediates != NULL) {
            stack_ptx__write(writer, ",", 1);
            stack_ptx__write_string(writer, immediates);
        }
    }
    stack_ptx__write(writer, ";\n", 2);
}

/* Bytes that the fast line may touch: the instruction's text, a result, four operands, and an end. */
#define STACK_PTX__LINE_BYTES (64u + 5u * 16u + 2u)

/* The name and the result of a simple instruction. Sizes are fixed; only lengths differ. */
STACK_PTX__HOT char* stack_ptx__write_head(const StackPtx__Text64* instruction, const StackPtx__Text16* result, char* cursor) {
    const uint32_t instruction_length = instruction->length;
    const uint32_t result_length = result->length - 2u;
    memcpy(cursor, instruction->text, 32);
    if (instruction_length > 32) {
        memcpy(cursor + 32, instruction->text + 32, sizeof instruction->text - 32);
    }
    cursor += instruction_length;
    memcpy(cursor, result->text + 2, 14);
    return cursor + result_length;
}

STACK_PTX__HOT char* stack_ptx__write_operand(const StackPtx__Text16* text, char* cursor) {
    const uint32_t length = text->length;
    memcpy(cursor, text, 16);
    return cursor + length;
}

/* Operand `i` of a simple instruction. A missing one is text 0 with length 0, which is cheaper than a branch on their number. */
STACK_PTX__HOT char* stack_ptx__write_operand_of(
    const StackPtx__Text16* texts, const uint32_t* operands, uint32_t num_operands, uint32_t i, char* cursor
) {
    const uint32_t is_there = 0u - (uint32_t)(i < num_operands);
    const StackPtx__Text16* text = &texts[operands[i] & is_there];
    const uint32_t length = text->length & is_there;
    memcpy(cursor, text, 16);
    return cursor + length;
}

/* The line of a simple instruction, given room for all that is copied. */
STACK_PTX__HOT char* stack_ptx__write_simple(
    const StackPtx__Text64* instruction,
    const StackPtx__Text16* texts,
    const uint32_t* operands,
    const StackPtxNode* node,
    char* cursor
) {
    const uint32_t num_operands = node->num_operands;
    cursor = stack_ptx__write_head(instruction, &texts[node->first_value], cursor);
    cursor = stack_ptx__write_operand_of(texts, operands, num_operands, 0, cursor);
    cursor = stack_ptx__write_operand_of(texts, operands, num_operands, 1, cursor);
    cursor = stack_ptx__write_operand_of(texts, operands, num_operands, 2, cursor);
    if (num_operands > 3) {
        cursor = stack_ptx__write_operand_of(texts, operands, num_operands, 3, cursor);
    }
    memcpy(cursor, ";\n", 2);
    return cursor + 2;
}

/* Writes the lines of the first sorted nodes. */
static void stack_ptx__write_nodes(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    const StackPtx__Work* work,
    uint32_t num_with_temporaries,
    StackPtx__Writer* writer
) {
    const StackPtx__OpNode* op_nodes = language->op_nodes;
    const StackPtx__Text64* op_texts = language->op_texts;
    const StackPtx__Text16* texts = work->texts;
    const uint32_t* operands = lowered->operands;
    const bool is_fast = !work->has_long_texts && writer->capacity >= STACK_PTX__LINE_BYTES;
    const size_t last_fast = is_fast ? writer->capacity - STACK_PTX__LINE_BYTES : 0; /* the last begin of a fast line */
    size_t length = writer->length;
    uint32_t i;
    for (i = 0; i < num_with_temporaries; ++i) {
        const StackPtxNode* node = &lowered->nodes[work->sorted_nodes[i]];
        if (node->kind == STACK_PTX_NODE_PTX && op_nodes[node->payload].is_simple_text && is_fast && length <= last_fast) {
            char* line = writer->buffer + length;
            length +=
                (size_t)(stack_ptx__write_simple(&op_texts[node->payload], texts, operands + node->first_operand, node, line) -
                         line);
        } else {
            writer->length = length;
            stack_ptx__write_node(language, lowered, work, writer, node);
            length = writer->length;
        }
    }
    writer->length = length;
}

static void stack_ptx__write_declarations(
    const StackPtxLanguage* language, const StackPtx__Work* work, StackPtx__Writer* writer
) {
    const size_t num_stacks = language->stack_info.num_stacks;
    size_t i;
    for (i = 0; i < num_stacks; ++i) {
        const StackPtx__Text16* stem = &language->stems[i];
        char digits[10];
        if (work->num_temporaries[i] == 0) {
            continue;
        }
        stack_ptx__write(writer, ".reg .", 6);
        stack_ptx__write_string(writer, language->stack_info.stack_literal_prefixes[i]);
        stack_ptx__write(writer, stem->text + 1, stem->length - 1u);
        stack_ptx__write(writer, "<", 1);
        stack_ptx__write(writer, digits, stack_ptx__format_decimal(work->num_temporaries[i], digits));
        stack_ptx__write(writer, ">;\n", 3);
    }
}

/* ---- emission: requests ---- */

/* Register that a request's value is read from, by its canonical index; UINT32_MAX if it is no register. */
static uint32_t stack_ptx__source_of(const StackPtxLanguage* language, const StackPtxLowered* lowered, uint32_t request) {
    const uint32_t value = lowered->request_values[request];
    const StackPtxNode* node;
    if (value == STACK_PTX_NO_VALUE) {
        return UINT32_MAX;
    }
    node = &lowered->nodes[lowered->value_nodes[value]];
    return node->kind == STACK_PTX_NODE_INPUT ? language->register_infos[node->payload].canonical : UINT32_MAX;
}

static uint32_t stack_ptx__target_of(const StackPtxLanguage* language, uint32_t request) {
    return language->register_infos[language->requests[request]].canonical;
}

static void stack_ptx__add_move(
    StackPtx__Work* work,
    uint32_t* num_moves,
    StackPtx__MoveKind kind,
    uint32_t request,
    uint32_t value,
    const StackPtx__Temporary* temporary /* NULL: none */
) {
    StackPtx__Move* move = &work->moves[(*num_moves)++];
    move->kind = kind;
    move->request = request;
    move->value = value;
    if (temporary != NULL) {
        move->temporary = *temporary;
    }
}

/* One after the other. */
static uint32_t stack_ptx__plan_in_order(const StackPtxLowered* lowered, StackPtx__Work* work) {
    uint32_t num_moves = 0, i;
    for (i = 0; i < lowered->num_requests; ++i) {
        if (lowered->request_values[i] != STACK_PTX_NO_VALUE || lowered->mode == STACK_PTX_MODE_LENIENT) {
            stack_ptx__add_move(work, &num_moves, STACK_PTX__MOVE_VALUE, i, lowered->request_values[i], NULL);
        }
    }
    return num_moves;
}

/* True if a register that another pending request reads would be written too early. */
static bool stack_ptx__is_blocked(const StackPtx__Work* work, uint32_t num_requests, uint32_t request) {
    const uint32_t target = work->pending[request].target;
    uint32_t i;
    for (i = 0; i < num_requests; ++i) {
        if (i != request && work->pending[i].is_pending && work->pending[i].source == target) {
            return true;
        }
    }
    return false;
}

/* As one parallel move: a register is written after its last read, and one of each cycle is saved first. Of requests for the same
   register the last counts. */
static uint32_t stack_ptx__plan_in_parallel(
    const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work
) {
    StackPtx__Pending* pending = work->pending;
    const uint32_t num_requests = lowered->num_requests;
    uint32_t num_moves = 0, num_pending = 0, i, k;

    for (i = 0; i < num_requests; ++i) {
        memset(&pending[i], 0, sizeof pending[i]);
        pending[i].target = stack_ptx__target_of(language, i);
        pending[i].source = stack_ptx__source_of(language, lowered, i);
        pending[i].is_pending = 1;
        for (k = i + 1; k < num_requests; ++k) {
            pending[i].is_pending &= stack_ptx__target_of(language, k) != pending[i].target;
        }
        num_pending += pending[i].is_pending;
    }
    while (num_pending > 0) {
        const uint32_t num_before = num_pending;
        for (i = 0; i < num_requests; ++i) {
            if (pending[i].is_pending && !stack_ptx__is_blocked(work, num_requests, i)) {
                stack_ptx__add_move(
                    work,
                    &num_moves,
                    pending[i].is_saved ? STACK_PTX__MOVE_SAVED : STACK_PTX__MOVE_VALUE,
                    i,
                    lowered->request_values[i],
                    &pending[i].temporary
                );
                pending[i].is_pending = 0;
                --num_pending;
            }
        }
        if (num_pending == num_before) {
            StackPtx__Temporary temporary;
            for (i = 0; !pending[i].is_pending; ++i) {
            }
            temporary.stack_idx = language->registers[language->requests[i]].stack_idx;
            temporary.number = work->num_temporaries[temporary.stack_idx]++;
            stack_ptx__add_move(work, &num_moves, STACK_PTX__MOVE_TO_SAVE, i, STACK_PTX_NO_VALUE, &temporary);
            for (k = 0; k < num_requests; ++k) {
                if (pending[k].source == pending[i].target) {
                    pending[k].source = UINT32_MAX;
                    pending[k].is_saved = 1;
                    pending[k].temporary = temporary;
                }
            }
        }
    }
    return num_moves;
}

static uint32_t stack_ptx__plan_moves(const StackPtxLanguage* language, const StackPtxLowered* lowered, StackPtx__Work* work) {
    uint32_t i;
    if (lowered->mode == STACK_PTX_MODE_LENIENT) {
        for (i = 0; i < lowered->num_requests; ++i) {
            const uint32_t source = stack_ptx__source_of(language, lowered, i);
            if (source != UINT32_MAX && language->register_infos[source].first_request < i) {
                return stack_ptx__plan_in_parallel(language, lowered, work);
            }
        }
    }
    return stack_ptx__plan_in_order(lowered, work);
}

static void stack_ptx__write_moves(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    const StackPtx__Work* work,
    uint32_t num_moves,
    StackPtx__Writer* writer
) {
    uint32_t i;
    for (i = 0; i < num_moves; ++i) {
        const StackPtx__Move* move = &work->moves[i];
        const StackPtxRegister* target = &language->registers[language->requests[move->request]];
        const char* prefix = language->stack_info.stack_literal_prefixes[target->stack_idx];
        stack_ptx__write_move_name(language, writer, target->stack_idx);
        if (move->kind == STACK_PTX__MOVE_TO_SAVE) {
            stack_ptx__write_temporary(language, writer, move->temporary);
            stack_ptx__write(writer, ", ", 2);
        }
        stack_ptx__write(writer, "%", 1);
        stack_ptx__write_string(writer, target->name);
        if (move->kind != STACK_PTX__MOVE_TO_SAVE) {
            stack_ptx__write(writer, ", ", 2);
        }
        if (move->kind == STACK_PTX__MOVE_SAVED) {
            stack_ptx__write_temporary(language, writer, move->temporary);
        } else if (move->kind == STACK_PTX__MOVE_VALUE && move->value == STACK_PTX_NO_VALUE) {
            char literal[STACK_PTX__MAX_LITERAL];
            const uint32_t constant_type = stack_ptx__constant_type_of_prefix(prefix);
            stack_ptx__write(writer, literal, stack_ptx__format_literal(constant_type, 0, literal));
        } else if (move->kind == STACK_PTX__MOVE_VALUE) {
            stack_ptx__write_value(language, lowered, work, writer, move->value);
        }
        stack_ptx__write(writer, ";\n", 2);
    }
}

static StackPtxResult stack_ptx__emit(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    StackPtx__Work* work,
    uint32_t num_with_temporaries,
    uint32_t num_moves,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    StackPtx__Writer writer = stack_ptx__open_writer(buffer, buffer_size);
    if (language->limits.max_frame_depth > 0 || lowered->mode == STACK_PTX_MODE_LENIENT) {
        stack_ptx__write(&writer, "{\n", 2);
        stack_ptx__write_declarations(language, work, &writer);
        stack_ptx__name_leaves(
            language, lowered, work, work->sorted_nodes + num_with_temporaries, lowered->num_nodes - num_with_temporaries
        );
        stack_ptx__write_nodes(language, lowered, work, num_with_temporaries, &writer);
        stack_ptx__write_moves(language, lowered, work, num_moves, &writer);
        stack_ptx__write(&writer, "}", 1);
    }
    return stack_ptx__close_writer(&writer, buffer_size, bytes_written_out);
}

StackPtxResult stack_ptx_emit(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    void* workspace,
    size_t workspace_bytes,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    StackPtx__Work work;
    uint32_t num_with_temporaries, num_moves;
    const StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    if (lowered == NULL || bytes_written_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__open_work(language, workspace, &work);
    num_with_temporaries = stack_ptx__sort_nodes(language, lowered, &work);
    num_moves = stack_ptx__plan_moves(language, lowered, &work);
    return stack_ptx__emit(language, lowered, &work, num_with_temporaries, num_moves, buffer, buffer_size, bytes_written_out);
}

/* ---- emission of simple programs ----
   stack_ptx_compile gives no lowered form to anyone. If all that a program needs is inputs, constants and instructions with scalar
   operands and short texts, its stub is written straight from the rows, which have their texts at their own indices. */

typedef struct StackPtx__LiveRows {
    const uint32_t* lines; /* rows of instructions, first to last */
    const uint32_t* leaves; /* rows of inputs and constants, in no order */
    uint32_t num_lines;
    uint32_t num_leaves;
} StackPtx__LiveRows;

/* Finds the rows that requests need. False if some are not simple. */
static bool stack_ptx__find_simple(
    const StackPtxLanguage* language,
    StackPtx__Work* work,
    const uint32_t* request_rows,
    size_t num_requests,
    StackPtx__LiveRows* live_rows_out
) {
    const StackPtx__Row* rows = work->rows;
    const StackPtx__OpNode* op_nodes = language->op_nodes;
    const uint32_t num_rows = work->num_rows;
    uint8_t* live = work->live;
    uint32_t* lines = work->sorted_nodes + num_rows;
    uint32_t* leaves = work->sorted_nodes;
    uint32_t are_simple = 1, r;
    size_t i;
    if (num_rows > language->limits.max_nodes) { /* there may be no places for all texts */
        return false;
    }
    memset(live, 0, num_rows);
    for (i = 0; i < num_requests; ++i) {
        live[request_rows[i]] = 1;
    }
    for (r = num_rows - 1; r > 0; --r) {
        if (live[r]) {
            const StackPtx__Row* row = &rows[r];
            const uint64_t operands_0 = row->operands[0], operands_1 = row->operands[1];
            const StackPtx__OpNode* op_node = &op_nodes[(uint32_t)row->head];
            const uint32_t is_line = op_node->is_ptx;
            are_simple &= op_node->is_simple_text;
            live[(uint32_t)operands_0] = 1;
            live[operands_0 >> 32] = 1;
            live[(uint32_t)operands_1] = 1;
            live[operands_1 >> 32] = 1;
            /* No branch, which could not be predicted. */
            lines[-1] = r;
            lines -= is_line;
            *leaves = r;
            leaves += is_line ^ 1u;
        }
    }
    live_rows_out->lines = lines;
    live_rows_out->leaves = work->sorted_nodes;
    live_rows_out->num_lines = (uint32_t)(work->sorted_nodes + num_rows - lines);
    live_rows_out->num_leaves = (uint32_t)(leaves - work->sorted_nodes);
    return are_simple != 0;
}

/* Names inputs, constants and results, and counts the temporaries of each stack. False if a text is too long. */
static bool stack_ptx__name_simple(const StackPtxLanguage* language, StackPtx__Work* work, const StackPtx__LiveRows* live_rows) {
    const StackPtx__Row* rows = work->rows;
    const StackPtx__OpNode* op_nodes = language->op_nodes;
    StackPtx__Text16* texts = work->texts;
    uint32_t* numbers = work->num_temporaries;
    uint32_t i;
    work->has_long_texts = 0;
    for (i = 0; i < live_rows->num_leaves; ++i) {
        const uint32_t r = live_rows->leaves[i];
        stack_ptx__name_leaf(language, work, &op_nodes[(uint32_t)rows[r].head].node, (uint32_t)(rows[r].head >> 32), &texts[r]);
    }
    memset(numbers, 0, language->stack_info.num_stacks * sizeof *numbers);
    for (i = 0; i < live_rows->num_lines; ++i) {
        const uint32_t r = live_rows->lines[i];
        const uint32_t stack_idx = op_nodes[(uint32_t)rows[r].head].node.stack_idx;
        stack_ptx__name_temporary(language, work, stack_idx, numbers[stack_idx]++, &texts[r]);
    }
    texts[0].length = 0; /* of operands that an instruction does not have */
    return !work->has_long_texts;
}

/* The lines of instructions. One that might not fit is written beside the buffer first. */
static void stack_ptx__write_simple_lines(
    const StackPtxLanguage* language, const StackPtx__Work* work, const StackPtx__LiveRows* live_rows, StackPtx__Writer* writer
) {
    const StackPtx__Text64* op_texts = language->op_texts;
    const StackPtx__Text16* texts = work->texts;
    const StackPtx__Row* rows = work->rows;
    const uint32_t* lines = live_rows->lines;
    const uint32_t num_lines = live_rows->num_lines;
    char* const buffer = writer->buffer;
    const size_t num_fast = writer->capacity >= STACK_PTX__LINE_BYTES ? writer->capacity - STACK_PTX__LINE_BYTES + 1 : 0;
    size_t length = writer->length;
    char beside[STACK_PTX__LINE_BYTES];
    uint32_t i;
    for (i = 0; i < num_lines; ++i) {
        /* Copies: what is written might change the row, for all that a compiler knows. */
        const uint64_t operands_0 = rows[lines[i]].operands[0], operands_1 = rows[lines[i]].operands[1];
        const uint32_t op_idx = (uint32_t)rows[lines[i]].head;
        const bool is_fast = length < num_fast;
        char* line = is_fast ? buffer + length : beside;
        char* cursor = stack_ptx__write_head(&op_texts[op_idx], &texts[lines[i]], line);
        cursor = stack_ptx__write_operand(&texts[(uint32_t)operands_0], cursor);
        cursor = stack_ptx__write_operand(&texts[operands_0 >> 32], cursor);
        cursor = stack_ptx__write_operand(&texts[(uint32_t)operands_1], cursor);
        if (operands_1 >> 32 != 0) {
            cursor = stack_ptx__write_operand(&texts[operands_1 >> 32], cursor);
        }
        memcpy(cursor, ";\n", 2);
        cursor += 2;
        if (!is_fast && length + (size_t)(cursor - line) <= writer->capacity) {
            memcpy(buffer + length, line, (size_t)(cursor - line));
        }
        length += (size_t)(cursor - line);
    }
    writer->length = length;
}

/* Writes the stub of a program whose rows are simple. False if they are not; then nothing has changed. The rows of requests are in
   request_values, in the order of the moves. */
static bool stack_ptx__emit_simple(
    const StackPtxLanguage* language, StackPtx__Work* work, uint32_t num_moves, StackPtx__Writer* writer
) {
    StackPtx__LiveRows live_rows;
    uint32_t i;
    if (!stack_ptx__find_simple(language, work, work->request_values, num_moves, &live_rows) ||
        !stack_ptx__name_simple(language, work, &live_rows)) {
        return false;
    }
    stack_ptx__write(writer, "{\n", 2);
    stack_ptx__write_declarations(language, work, writer);
    stack_ptx__write_simple_lines(language, work, &live_rows, writer);
    for (i = 0; i < num_moves; ++i) {
        const StackPtxRegister* target = &language->registers[language->requests[work->moves[i].request]];
        const StackPtx__Text16* text = &work->texts[work->request_values[i]];
        stack_ptx__write_move_name(language, writer, target->stack_idx);
        stack_ptx__write(writer, "%", 1);
        stack_ptx__write_string(writer, target->name);
        stack_ptx__write(writer, text->text, text->length);
        stack_ptx__write(writer, ";\n", 2);
    }
    stack_ptx__write(writer, "}", 1);
    return true;
}

/* ---- canonical hash ---- */

static int stack_ptx__is_less(const StackPtxHash* a, const StackPtxHash* b) {
    return a->words[0] != b->words[0] ? a->words[0] < b->words[0] : a->words[1] < b->words[1];
}

static uint32_t stack_ptx__op_of_node(const StackPtxLanguage* language, const StackPtxNode* node) {
    switch (node->kind) {
        case STACK_PTX_NODE_INPUT: return language->first_input + node->stack_idx;
        case STACK_PTX_NODE_CONSTANT: return language->first_constant + node->stack_idx;
        case STACK_PTX_NODE_SPECIAL: return language->first_special + (node->payload & UINT16_MAX);
        default: return node->payload;
    }
}

StackPtxResult stack_ptx_hash(
    const StackPtxLanguage* language,
    const StackPtxLowered* lowered,
    void* workspace,
    size_t workspace_bytes,
    StackPtxHash* hash_out
) {
    StackPtx__Work work;
    StackPtxHash* hashes;
    StackPtxHash total;
    uint64_t num_volatile = 0;
    uint32_t i, k;
    const StackPtxResult result = stack_ptx__check_work(language, workspace, workspace_bytes);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    if (lowered == NULL || hash_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__open_work(language, workspace, &work);
    hashes = work.hashes;

    for (i = 0; i < lowered->num_nodes; ++i) {
        const StackPtxNode* node = &lowered->nodes[i];
        const uint32_t op_idx = stack_ptx__op_of_node(language, node);
        const uint32_t* operands = lowered->operands + node->first_operand;
        StackPtxHash hash = language->op_hashes[op_idx];

        if (node->kind == STACK_PTX_NODE_PTX) {
            uint32_t is_exchanged = 0;
            if (language->ops[op_idx].commutes != 0) {
                is_exchanged = (uint32_t)stack_ptx__is_less(&hashes[operands[1]], &hashes[operands[0]]);
            }
            for (k = 0; k < node->num_operands; ++k) {
                const StackPtxHash* operand = &hashes[operands[k < 2 ? k ^ is_exchanged : k]];
                stack_ptx__absorb(&hash, operand->words[0], operand->words[1]);
            }
        } else if (node->kind == STACK_PTX_NODE_SPECIAL) {
            const char* suffix = stack_ptx__element_suffix(language, node->payload);
            if (suffix[0] != '\0') {
                hash = stack_ptx__hash_special(language, node->payload & UINT16_MAX, suffix);
            }
        } else {
            stack_ptx__absorb(&hash, node->payload, STACK_PTX__TAG_NODE);
        }
        if (language->op_nodes[op_idx].is_volatile) {
            stack_ptx__absorb(&hash, ++num_volatile, STACK_PTX__TAG_VOLATILE);
        }
        hashes[node->first_value] = hash;
        for (k = 1; k < node->num_values; ++k) {
            hashes[node->first_value + k] = hash;
            stack_ptx__absorb(&hashes[node->first_value + k], k, STACK_PTX__TAG_RESULT);
        }
    }

    total = language->salt;
    for (i = 0; i < lowered->num_requests; ++i) {
        const uint32_t value = lowered->request_values[i];
        const StackPtxHash* type_hash = &language->stacks[language->registers[language->requests[i]].stack_idx].type_hash;
        stack_ptx__absorb(&total, type_hash->words[0], type_hash->words[1]);
        if (value == STACK_PTX_NO_VALUE) {
            stack_ptx__absorb(&total, i, STACK_PTX__TAG_MISSING);
        } else {
            stack_ptx__absorb(&total, hashes[value].words[0], hashes[value].words[1]);
        }
    }
    stack_ptx__absorb(&total, lowered->num_requests, STACK_PTX__TAG_PROGRAM);
    *hash_out = total;
    return STACK_PTX_SUCCESS;
}

/* ---- all in one call ---- */

static uint32_t stack_ptx__clamp(size_t value) { return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value; }

/* A bare language has no memory for registers, routines and requests, whose numbers are unknown when its size is asked for. No
   more requests find a value than the stacks can hold. */
static StackPtxResult stack_ptx__place_compile(
    const StackPtxCompilerInfo* compiler_info,
    const StackPtxLanguageInfo* info,
    StackPtx__Layout* layout,
    size_t* language_bytes_out
) {
    StackPtxResult result = stack_ptx__check_counts(info);
    if (result == STACK_PTX_SUCCESS) {
        result = stack_ptx__check_types(info->stack_info, NULL);
    }
    if (result == STACK_PTX_SUCCESS) {
        const size_t max_values = info->stack_info->num_stacks * compiler_info->stack_size;
        stack_ptx__place_work(
            layout,
            &info->limits,
            info->stack_info,
            1,
            stack_ptx__bound_operands(info->stack_info),
            STACK_PTX__MAX_BARE_REGISTERS,
            max_values,
            max_values
        );
        *language_bytes_out = stack_ptx__place_language(NULL, info, 1, NULL);
        if (*language_bytes_out > SIZE_MAX / 2 || layout->bytes > SIZE_MAX / 2) {
            result = STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
        }
    }
    return result;
}

static void stack_ptx__describe_compile(
    const StackPtxCompilerInfo* compiler_info,
    const StackPtxStackInfo* stack_info,
    size_t execution_limit,
    StackPtxLanguageInfo* info_out
) {
    memset(info_out, 0, sizeof *info_out);
    info_out->stack_info = stack_info;
    info_out->limits.stack_size = stack_ptx__clamp(compiler_info->stack_size);
    info_out->limits.max_nodes = stack_ptx__clamp(compiler_info->max_ast_size);
    info_out->limits.max_frame_depth = stack_ptx__clamp(compiler_info->max_frame_depth);
    info_out->limits.store_size = stack_ptx__clamp(compiler_info->store_size);
    info_out->limits.execution_limit = stack_ptx__clamp(execution_limit);
}

StackPtxResult stack_ptx_compile_workspace_size(
    const StackPtxCompilerInfo* compiler_info, const StackPtxStackInfo* stack_info, size_t* bytes_out
) {
    StackPtxLanguageInfo info;
    StackPtx__Layout layout;
    size_t language_bytes = 0;
    StackPtxResult result;
    if (compiler_info == NULL || bytes_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    if (compiler_info->max_frame_depth == 0) {
        *bytes_out = 1; /* malloc(0) may give NULL; nothing is used */
        return STACK_PTX_SUCCESS;
    }
    if (stack_info == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__describe_compile(compiler_info, stack_info, 0, &info);
    result = stack_ptx__check_counts(&info);
    if (result == STACK_PTX_SUCCESS) {
        result = stack_ptx__check_stack_info(stack_info, NULL);
    }
    if (result == STACK_PTX_SUCCESS) {
        result = stack_ptx__place_compile(compiler_info, &info, &layout, &language_bytes);
    }
    if (result == STACK_PTX_SUCCESS) {
        *bytes_out = language_bytes + layout.bytes;
    }
    return result;
}

StackPtxResult stack_ptx_compile(
    const StackPtxCompilerInfo* compiler_info,
    const StackPtxStackInfo* stack_info,
    const StackPtxInstruction* instructions,
    const StackPtxRegister* registers,
    size_t num_registers,
    const StackPtxInstruction** routines,
    size_t num_routines,
    const size_t* requests,
    size_t num_requests,
    size_t execution_limit,
    void* workspace,
    size_t workspace_bytes,
    char* buffer,
    size_t buffer_size,
    size_t* bytes_written_out
) {
    StackPtxLanguageInfo info;
    StackPtx__Layout layout;
    StackPtxLanguage* language = NULL;
    StackPtx__Work work;
    StackPtx__Writer writer;
    StackPtxLowered lowered;
    StackPtxResult result;
    size_t language_bytes = 0, i;
    uint32_t num_moves = 0;

    if (compiler_info == NULL || bytes_written_out == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    if (compiler_info->max_frame_depth == 0) {
        *bytes_written_out = 0;
        if (buffer != NULL && buffer_size == 0) {
            return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_BUFFER);
        }
        if (buffer != NULL) {
            buffer[0] = '\0';
        }
        return STACK_PTX_SUCCESS;
    }
    if (stack_info == NULL || instructions == NULL || workspace == NULL) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INVALID_VALUE);
    }
    stack_ptx__describe_compile(compiler_info, stack_info, execution_limit, &info);
    info.registers = registers;
    info.num_registers = num_registers;
    info.routines = (const StackPtxInstruction* const*)routines;
    info.num_routines = num_routines;
    info.requests = requests;
    info.num_requests = num_requests;
    result = stack_ptx__place_compile(compiler_info, &info, &layout, &language_bytes);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    if (workspace_bytes < language_bytes + layout.bytes) {
        return STACK_PTX__ERROR(STACK_PTX_ERROR_INSUFFICIENT_WORKSPACE);
    }
    result = stack_ptx__init_language(&info, 1, workspace, language_bytes, &language);
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    language->layout = layout;
    stack_ptx__open_work(language, (char*)workspace + language_bytes, &work);
    result = stack_ptx__run(
        language, STACK_PTX_MODE_COMPATIBLE, STACK_PTX_FLAG_NO_VALUE_NUMBERING, instructions, SIZE_MAX, &work, NULL
    );
    if (result != STACK_PTX_SUCCESS) {
        return result;
    }
    for (i = 0; i < num_requests; ++i) {
        const uint32_t row = stack_ptx__pop(&work.stacks[registers[requests[i]].stack_idx]);
        if (row != 0) {
            work.request_values[num_moves] = row;
            stack_ptx__add_move(&work, &num_moves, STACK_PTX__MOVE_VALUE, (uint32_t)i, STACK_PTX_NO_VALUE, NULL);
        }
    }
    writer = stack_ptx__open_writer(buffer, buffer_size);
    if (stack_ptx__emit_simple(language, &work, num_moves, &writer)) {
        return stack_ptx__close_writer(&writer, buffer_size, bytes_written_out);
    }
    stack_ptx__mark_live(&work, work.request_values, num_moves);
    stack_ptx__collect(language, &work, &lowered);
    lowered.mode = STACK_PTX_MODE_COMPATIBLE;
    for (i = 0; i < num_moves; ++i) {
        work.moves[i].value = work.value_ids[work.request_values[i]];
    }
    return stack_ptx__emit(
        language,
        &lowered,
        &work,
        stack_ptx__sort_nodes(language, &lowered, &work),
        num_moves,
        buffer,
        buffer_size,
        bytes_written_out
    );
}

#endif /* STACK_PTX_EMIT_H */
