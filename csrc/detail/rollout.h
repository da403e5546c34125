/*
 * rollout.h - programs in a loop: what a program computes becomes what it reads at the next step.
 *
 * Private to evo.native.rollout. The implementation lies beside that of ptx_vm.h, whose runs it repeats: a step is one lowered
 * program, made of the program, of a field that says how states change, and of the integrator. So all arithmetic of a step is that
 * of the virtual machine, and a block of trajectories stays in the first-level cache for all its steps.
 *
 * Columns. Values by their index: inputs of the program first, then others that the field alone reads. A program's register r is
 * column r. The field's registers are the columns and then the program's requests; its requests are the change of each state, or
 * with ROLLOUT_MAP its next value.
 *
 * A trajectory ends at the first record at which an f32 state is not finite: from there on its records are NaN (0x7fffffff), of
 * other types 0. Every trajectory's bits depend on that trajectory alone.
 *
 * With a grid, height x width trajectories are its cells, row by row: they read states of their neighbours, and end together.
 */

#ifndef EVO_ROLLOUT_H
#define EVO_ROLLOUT_H

#include "../ptx_vm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ROLLOUT_MAP, ROLLOUT_EULER, ROLLOUT_RK4 };

/* A column's value of trajectory j at step i: values[i * step_stride + j * trajectory_stride], of 4 bytes; the latter is 0 or 1. */
typedef struct RolloutColumn {
    const uint32_t* values;
    size_t step_stride;
    size_t trajectory_stride;
} RolloutColumn;

#define ROLLOUT_NO_STATE UINT32_MAX

/* Contents of a column: a state of the cell dy rows below and dx columns to the right, or NO_STATE, 0, 0: values of its own. */
typedef struct RolloutNeighbour {
    uint32_t state;
    int32_t dy, dx; /* at most as far as the grid's sides are long */
} RolloutNeighbour;

/* Values outside of a grid: its other end; the grid as in a mirror along its edge; a value. */
enum { ROLLOUT_PERIODIC, ROLLOUT_REFLECT, ROLLOUT_CONSTANT };

typedef struct RolloutGrid {
    size_t height, width;
    uint32_t boundary;
    const uint32_t* outside;            /* of each state; read with ROLLOUT_CONSTANT */
    const RolloutNeighbour* neighbours; /* of each column */
} RolloutGrid;

typedef struct RolloutPlan {
    uint32_t integrator; /* with a grid not ROLLOUT_RK4, whose stages would need those of neighbours */
    uint32_t num_columns;
    uint32_t num_inputs; /* of the columns, those that programs read */
    uint32_t num_states;
    uint32_t f32_stack;
    uint32_t add, fma; /* instructions; not read with ROLLOUT_MAP */
    const StackPtxLowered* field;
    const RolloutColumn* columns;
    const uint32_t* state_columns; /* where each state begins, and is read */
    const float* dt;               /* of each step, or one of all; not read with ROLLOUT_MAP */
    size_t dt_stride;
    size_t num_trajectories;
    size_t num_steps;
    size_t record_every; /* steps; num_steps is a multiple */
    const RolloutGrid* grid; /* NULL: trajectories know nothing of each other */
} RolloutPlan;

/* Runs a program. outputs: (num_states, num_steps / record_every, num_trajectories). needed_out: bytes of memory that it takes; if
   that is more than memory_bytes, nothing has been done and the result is SUCCESS. */
PtxVmResult rollout_run(
    const RolloutPlan* plan, const PtxVmSet* set, PtxVmLevel level, const StackPtxLowered* program, void* memory,
    size_t memory_bytes, size_t* needed_out, uint32_t* outputs
);

#ifdef __cplusplus
}
#endif

#endif /* EVO_ROLLOUT_H */

/* ================================================================================================================== */

#if defined(ROLLOUT_IMPLEMENTATION) && !defined(ROLLOUT_IMPLEMENTATION_INCLUDED)
#define ROLLOUT_IMPLEMENTATION_INCLUDED

/* ---- the program of a step --------------------------------------------------------------------------------------- */

enum { ROLLOUT__H, ROLLOUT__HALF_H, ROLLOUT__SIXTH_H, ROLLOUT__NUM_TIMES }; /* registers behind the columns */

#define ROLLOUT__NODES_OF_STATE 12u /* that the integrator adds, at most; each has at most three operands */

typedef struct Rollout__Builder {
    const RolloutPlan* plan;
    StackPtxNode* nodes;
    uint32_t* operands;
    uint16_t* stacks;
    uint32_t num_nodes, num_operands, num_values;
    uint32_t* registers;        /* value of each column, time and request of the program; NO_VALUE: none yet */
    uint32_t* program_values;   /* of the program's values, in the latest stage */
    uint32_t* field_values;
    uint32_t* states; /* values of states: at the step's beginning, in the latest stage, their changes, and sums of these */
    uint32_t* stage_states;
    uint32_t* changes;
    uint32_t* first_changes;
    uint32_t* middle_changes;
    uint32_t* requests;
    bool has_constants; /* of program and field, which stages share */
} Rollout__Builder;

static uint32_t rollout__num_stages(const RolloutPlan* plan) { return plan->integrator == ROLLOUT_RK4 ? 4 : 1; }

static void rollout__take_builder(
    EvoArena* arena, const RolloutPlan* plan, const StackPtxLowered* program, Rollout__Builder* builder
) {
    const StackPtxLowered* field = plan->field;
    const uint64_t num_stages = rollout__num_stages(plan), num_states = plan->num_states;
    const uint64_t num_registers = plan->num_columns + ROLLOUT__NUM_TIMES;
    const uint64_t num_added = num_registers + num_states * ROLLOUT__NODES_OF_STATE + num_stages * program->num_requests;
    const uint64_t num_nodes = num_added + num_stages * ((uint64_t)program->num_nodes + field->num_nodes);
    const uint64_t num_values = num_added + num_stages * ((uint64_t)program->num_values + field->num_values);
    builder->plan = plan;
    builder->nodes = (StackPtxNode*)evo__take(arena, num_nodes, sizeof(StackPtxNode));
    builder->operands = (uint32_t*)evo__take(
        arena, 3 * num_added + 3 + num_stages * ((uint64_t)program->num_operands + field->num_operands), sizeof(uint32_t)
    );
    builder->stacks = (uint16_t*)evo__take(arena, num_values, sizeof(uint16_t));
    builder->registers = (uint32_t*)evo__take(arena, num_registers + program->num_requests, sizeof(uint32_t));
    builder->program_values = (uint32_t*)evo__take(arena, program->num_values, sizeof(uint32_t));
    builder->field_values = (uint32_t*)evo__take(arena, field->num_values, sizeof(uint32_t));
    uint32_t** const of_states[] = {&builder->states,        &builder->stage_states,   &builder->changes,
                                    &builder->first_changes, &builder->middle_changes, &builder->requests};
    for (size_t i = 0; i < sizeof of_states / sizeof *of_states; i++)
        *of_states[i] = (uint32_t*)evo__take(arena, num_states, sizeof(uint32_t));
    builder->num_nodes = builder->num_operands = builder->num_values = 0;
    builder->has_constants = false;
}

static uint32_t rollout__add(
    Rollout__Builder* builder, uint32_t kind, uint32_t payload, uint32_t stack, uint32_t num_operands, const uint32_t* operands
) {
    const StackPtxNode node = {(uint16_t)kind, (uint16_t)stack,       (uint16_t)num_operands, 1,
                               payload,        builder->num_operands, builder->num_values};
    builder->nodes[builder->num_nodes++] = node;
    for (uint32_t k = 0; k < num_operands; k++) builder->operands[builder->num_operands++] = operands[k];
    builder->stacks[builder->num_values] = (uint16_t)stack;
    return builder->num_values++;
}

/* The value of a register, an input of the step unless a stage has given it another. */
static uint32_t rollout__register(Rollout__Builder* builder, uint32_t register_idx, uint32_t stack) {
    if (builder->registers[register_idx] == STACK_PTX_NO_VALUE)
        builder->registers[register_idx] = rollout__add(builder, STACK_PTX_NODE_INPUT, register_idx, stack, 0, NULL);
    return builder->registers[register_idx];
}

static uint32_t rollout__state(Rollout__Builder* builder, uint32_t state) {
    return rollout__register(builder, builder->plan->state_columns[state], builder->plan->f32_stack);
}

static uint32_t rollout__sum(Rollout__Builder* builder, uint32_t a, uint32_t b) {
    const uint32_t operands[2] = {a, b};
    return rollout__add(builder, STACK_PTX_NODE_PTX, builder->plan->add, builder->plan->f32_stack, 2, operands);
}

/* value + change * time */
static uint32_t rollout__moved(Rollout__Builder* builder, uint32_t value, uint32_t change, uint32_t time) {
    const uint32_t stack = builder->plan->f32_stack;
    const uint32_t operands[3] = {change, rollout__register(builder, builder->plan->num_columns + time, stack), value};
    return rollout__add(builder, STACK_PTX_NODE_PTX, builder->plan->fma, stack, 3, operands);
}

/* Adds a program's nodes. The field's registers from num_columns on are `outputs`, NULL for the program. False if it reads a register that there is not. */
static bool rollout__add_program(
    Rollout__Builder* builder, const StackPtxLowered* program, const uint32_t* outputs, uint32_t num_outputs, uint32_t* values
) {
    const uint32_t num_columns = builder->plan->num_columns;
    const uint32_t num_registers = outputs == NULL ? builder->plan->num_inputs : num_columns + num_outputs;
    for (uint32_t i = 0; i < program->num_nodes; i++) {
        const StackPtxNode* node = &program->nodes[i];
        uint32_t* value = &values[node->first_value];
        if (node->kind == STACK_PTX_NODE_INPUT) {
            if (node->payload >= num_registers) return false;
            *value = node->payload < num_columns ? rollout__register(builder, node->payload, node->stack_idx)
                                                 : outputs[node->payload - num_columns];
            if (*value == STACK_PTX_NO_VALUE)
                *value = rollout__add(builder, STACK_PTX_NODE_CONSTANT, 0, node->stack_idx, 0, NULL);
        } else if (node->kind != STACK_PTX_NODE_CONSTANT || !builder->has_constants) {
            if (node->num_values != 1 || node->num_operands > 3) return false;
            uint32_t operands[3] = {0, 0, 0};
            for (uint32_t k = 0; k < node->num_operands; k++) operands[k] = values[program->operands[node->first_operand + k]];
            *value = rollout__add(builder, node->kind, node->payload, node->stack_idx, node->num_operands, operands);
        }
    }
    return true;
}

/* The changes of states as the program and the field say at the stage's states. */
static bool rollout__add_stage(Rollout__Builder* builder, const StackPtxLowered* program) {
    const RolloutPlan* plan = builder->plan;
    uint32_t* outputs = builder->registers + plan->num_columns + ROLLOUT__NUM_TIMES;
    if (!rollout__add_program(builder, program, NULL, 0, builder->program_values)) return false;
    for (uint32_t i = 0; i < program->num_requests; i++) {
        const uint32_t value = program->request_values[i];
        outputs[i] = value == STACK_PTX_NO_VALUE ? value : builder->program_values[value];
    }
    if (!rollout__add_program(builder, plan->field, outputs, program->num_requests, builder->field_values)) return false;
    for (uint32_t s = 0; s < plan->num_states; s++) {
        if (plan->field->request_values[s] == STACK_PTX_NO_VALUE) return false;
        builder->changes[s] = builder->field_values[plan->field->request_values[s]];
    }
    builder->has_constants = true;
    return true;
}

/* The states of the next stage. */
static void rollout__move_states(Rollout__Builder* builder, uint32_t time) {
    const RolloutPlan* plan = builder->plan;
    for (uint32_t s = 0; s < plan->num_states; s++)
        builder->stage_states[s] = rollout__moved(builder, builder->states[s], builder->changes[s], time);
    for (uint32_t s = 0; s < plan->num_states; s++) builder->registers[plan->state_columns[s]] = builder->stage_states[s];
}

/* The step as a lowered program: its registers are the columns and the times, its requests the next states. */
static bool rollout__build(Rollout__Builder* builder, const StackPtxLowered* program, StackPtxLowered* step_out) {
    const RolloutPlan* plan = builder->plan;
    const uint32_t num_states = plan->num_states;
    memset(builder->registers, 0xff, (plan->num_columns + ROLLOUT__NUM_TIMES + program->num_requests) * sizeof(uint32_t));
    if (plan->integrator != ROLLOUT_MAP)
        for (uint32_t s = 0; s < num_states; s++) builder->states[s] = rollout__state(builder, s);
    if (!rollout__add_stage(builder, program)) return false;
    if (plan->integrator == ROLLOUT_MAP) {
        memcpy(builder->requests, builder->changes, num_states * sizeof(uint32_t));
    } else if (plan->integrator == ROLLOUT_EULER) {
        rollout__move_states(builder, ROLLOUT__H);
        memcpy(builder->requests, builder->stage_states, num_states * sizeof(uint32_t));
    } else {
        memcpy(builder->first_changes, builder->changes, num_states * sizeof(uint32_t));
        rollout__move_states(builder, ROLLOUT__HALF_H);
        if (!rollout__add_stage(builder, program)) return false;
        memcpy(builder->middle_changes, builder->changes, num_states * sizeof(uint32_t));
        rollout__move_states(builder, ROLLOUT__HALF_H);
        if (!rollout__add_stage(builder, program)) return false;
        for (uint32_t s = 0; s < num_states; s++)
            builder->middle_changes[s] = rollout__sum(builder, builder->middle_changes[s], builder->changes[s]);
        rollout__move_states(builder, ROLLOUT__H);
        if (!rollout__add_stage(builder, program)) return false;
        for (uint32_t s = 0; s < num_states; s++) {
            const uint32_t ends = rollout__sum(builder, builder->first_changes[s], builder->changes[s]);
            const uint32_t middle = rollout__sum(builder, builder->middle_changes[s], builder->middle_changes[s]);
            builder->requests[s] =
                rollout__moved(builder, builder->states[s], rollout__sum(builder, ends, middle), ROLLOUT__SIXTH_H);
        }
    }
    memset(builder->operands + builder->num_operands, 0, 3 * sizeof(uint32_t)); /* which are read beyond the last */
    memset(step_out, 0, sizeof *step_out);
    step_out->nodes = builder->nodes;
    step_out->operands = builder->operands;
    step_out->value_stacks = builder->stacks;
    step_out->request_values = builder->requests;
    step_out->num_nodes = builder->num_nodes;
    step_out->num_operands = builder->num_operands;
    step_out->num_values = builder->num_values;
    step_out->num_requests = num_states;
    step_out->mode = program->mode;
    return true;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

typedef struct Rollout__Run {
    PtxVmRun vm;
    uint32_t** states; /* a block of each: where the step reads it, and where it writes the next */
    uint32_t** next_states;
    uint32_t* blocks; /* those */
    uint32_t* alive; /* of the block's trajectories: all bits, or none */
    uint32_t* state_of; /* of the step's inputs: the state, or NO_STATE */
} Rollout__Run;

static void rollout__take_run(EvoArena* arena, const RolloutPlan* plan, const PtxVmProgram* step, Rollout__Run* run) {
    const size_t block = step->kernels->num_points;
    ptx_vm__take_run(arena, step, &run->vm);
    run->states = (uint32_t**)evo__take(arena, plan->num_states, sizeof(uint32_t*));
    run->next_states = (uint32_t**)evo__take(arena, plan->num_states, sizeof(uint32_t*));
    run->blocks = (uint32_t*)evo__take(arena, 2 * (uint64_t)plan->num_states * block, sizeof(uint32_t));
    run->alive = (uint32_t*)evo__take(arena, block, sizeof(uint32_t));
    run->state_of = (uint32_t*)evo__take(arena, step->num_inputs, sizeof(uint32_t));
}

/* A column's block at a step, padded with zeros. */
static void rollout__copy(
    const RolloutColumn* column, size_t step, size_t first, size_t num_valid, size_t block, uint32_t* copy
) {
    const uint32_t* values = column->values + step * column->step_stride;
    if (column->trajectory_stride == 0) {
        for (size_t j = 0; j < block; j++) copy[j] = values[0];
        return;
    }
    memcpy(copy, values + first, num_valid * sizeof *copy);
    memset(copy + num_valid, 0, (block - num_valid) * sizeof *copy);
}

static bool rollout__is_f32(const RolloutPlan* plan, uint32_t state) {
    return plan->field->value_stacks[plan->field->request_values[state]] == plan->f32_stack;
}

/* Writes a state. Returns whether any value has the largest exponent, as what is not finite has. */
static bool rollout__write(const uint32_t* state, size_t num_valid, uint32_t* output) {
    uint32_t carries = 0;
    for (size_t j = 0; j < num_valid; j++) {
        output[j] = state[j];
        carries |= (state[j] & 0x7fffffffu) + 0x00800000u;
    }
    return carries >> 31 != 0;
}

/* Writes the states of a record. all_alive: whether no trajectory has ended. Returns whether any goes on. */
static bool rollout__record(
    const RolloutPlan* plan, Rollout__Run* run, size_t record, size_t first, size_t num_valid, bool* all_alive, uint32_t* outputs
) {
    const size_t num_records = plan->num_steps / plan->record_every;
    outputs += record * plan->num_trajectories + first;
    for (uint32_t s = 0; s < plan->num_states; s++)
        if (rollout__write(run->states[s], num_valid, outputs + s * num_records * plan->num_trajectories))
            *all_alive = *all_alive && !rollout__is_f32(plan, s);
    if (*all_alive) return true;
    uint32_t any = 0;
    for (uint32_t s = 0; s < plan->num_states; s++) {
        if (!rollout__is_f32(plan, s)) continue;
        for (size_t j = 0; j < num_valid; j++) run->alive[j] &= 0u - (uint32_t)((run->states[s][j] & 0x7f800000u) != 0x7f800000u);
    }
    for (size_t j = 0; j < num_valid; j++) any |= run->alive[j];
    for (uint32_t s = 0; s < plan->num_states; s++) {
        uint32_t* output = outputs + s * num_records * plan->num_trajectories;
        const uint32_t ended = rollout__is_f32(plan, s) ? 0x7fffffffu : 0u;
        for (size_t j = 0; j < num_valid; j++) output[j] = (run->states[s][j] & run->alive[j]) | (ended & ~run->alive[j]);
    }
    return any != 0;
}

/* Fills in a time of a step. */
static void rollout__read_time(
    const RolloutPlan* plan, const PtxVmProgram* program, Rollout__Run* run, size_t step, uint32_t input
) {
    static const float parts[ROLLOUT__NUM_TIMES] = {1.0f, 2.0f, 6.0f};
    if (step > 0 && plan->dt_stride == 0) return;
    const size_t block_bytes = ptx_vm__block_bytes(program);
    const float time = plan->dt[step * plan->dt_stride] / parts[program->input_registers[input] - plan->num_columns];
    ptx_vm__fill(run->vm.vectors + input * block_bytes, &time, block_bytes);
}

static void rollout__swap_states(const RolloutPlan* plan, Rollout__Run* run) {
    for (uint32_t s = 0; s < plan->num_states; s++) {
        uint32_t* next = run->next_states[s];
        run->next_states[s] = run->states[s];
        run->states[s] = next;
    }
}

/* Fills in the inputs of a block of trajectories at a step that the one before does not have already. */
static void rollout__read(
    const RolloutPlan* plan, const PtxVmProgram* program, Rollout__Run* run, size_t step, size_t first, size_t num_valid
) {
    const size_t block = program->kernels->num_points, block_bytes = ptx_vm__block_bytes(program);
    for (uint32_t i = 0; i < program->num_inputs; i++) {
        const uint32_t column = program->input_registers[i];
        uint32_t* copy = (uint32_t*)(void*)(run->vm.vectors + i * block_bytes);
        if (run->state_of[i] != ROLLOUT_NO_STATE)
            run->vm.memory[i] = (char*)run->states[run->state_of[i]];
        else if (column >= plan->num_columns)
            rollout__read_time(plan, program, run, step, i);
        else if (step == 0 || plan->columns[column].step_stride != 0)
            rollout__copy(&plan->columns[column], step, first, num_valid, block, copy);
    }
}

static void rollout__run_block(
    const RolloutPlan* plan, const PtxVmProgram* program, Rollout__Run* run, size_t first, size_t num_valid, uint32_t* outputs
) {
    const size_t block = program->kernels->num_points;
    const uint32_t first_output = ptx_vm__first_output(program);
    for (uint32_t s = 0; s < plan->num_states; s++) {
        run->states[s] = run->blocks + 2 * s * block;
        run->next_states[s] = run->states[s] + block;
        rollout__copy(&plan->columns[plan->state_columns[s]], 0, first, num_valid, block, run->states[s]);
    }
    memset(run->alive, 0xff, block * sizeof *run->alive);
    bool goes_on = true, all_alive = true;
    for (size_t step = 0; step < plan->num_steps; step++) {
        if (goes_on) {
            rollout__read(plan, program, run, step, first, num_valid);
            for (uint32_t s = 0; s < plan->num_states; s++) run->vm.memory[first_output + s] = (char*)run->next_states[s];
            program->kernels->enter(program->steps, run->vm.memory);
            rollout__swap_states(plan, run);
        }
        if ((step + 1) % plan->record_every == 0)
            goes_on = rollout__record(plan, run, step / plan->record_every, first, num_valid, &all_alive, outputs);
    }
}

#include "rollout_grid.h"

PtxVmResult rollout_run(
    const RolloutPlan* plan, const PtxVmSet* set, PtxVmLevel level, const StackPtxLowered* program, void* memory,
    size_t memory_bytes, size_t* needed_out, uint32_t* outputs
) {
    if (plan->grid != NULL && plan->integrator == ROLLOUT_RK4) return PTX_VM_ERROR_INVALID_VALUE;
    EvoArena arena = evo__arena(memory, memory_bytes);
    Rollout__Builder builder;
    StackPtxLowered lowered;
    rollout__take_builder(&arena, plan, program, &builder);
    *needed_out = 4 * arena.num_bytes; /* a prepared step takes about as much again */
    if (arena.num_bytes > memory_bytes) return PTX_VM_SUCCESS;
    if (!rollout__build(&builder, program, &lowered)) return PTX_VM_ERROR_INVALID_VALUE;
    size_t num_bytes = 0;
    const PtxVmProgram* step = NULL;
    ptx_vm_program_size(&lowered, &num_bytes);
    void* prepared = evo__take(&arena, num_bytes, 1);
    *needed_out = 2 * arena.num_bytes;
    if (prepared == NULL) return PTX_VM_SUCCESS;
    const PtxVmResult result = ptx_vm_program_init(set, level, PTX_VM_RUN_STORE, &lowered, prepared, num_bytes, &step, NULL);
    if (result != PTX_VM_SUCCESS) return result;
    Rollout__Run run;
    rollout__take_run(&arena, plan, step, &run);
    Rollout__Planes planes;
    if (plan->grid != NULL) rollout__take_planes(&arena, plan, step, &planes);
    *needed_out = arena.num_bytes;
    if (arena.num_bytes > memory_bytes) return PTX_VM_SUCCESS;

    if (plan->grid != NULL) rollout__clear_planes(plan, step, &planes);
    for (uint32_t i = 0; i < step->num_inputs; i++) {
        const uint32_t column = step->input_registers[i];
        run.state_of[i] = ROLLOUT_NO_STATE;
        for (uint32_t s = 0; s < plan->num_states; s++)
            if (column == plan->state_columns[s]) run.state_of[i] = s;
        if (plan->grid != NULL && column < plan->num_columns && plan->grid->neighbours[column].state != ROLLOUT_NO_STATE) {
            run.state_of[i] = plan->grid->neighbours[column].state;
            planes.has_neighbours[run.state_of[i]] = true;
        } else if (column < plan->num_columns && plan->columns[column].values == NULL) {
            return PTX_VM_ERROR_INVALID_VALUE;
        }
    }
    ptx_vm__run_start(step, NULL, &run.vm); /* constants alone */
    const size_t block = step->kernels->num_points;
    const PtxVmMode mode = ptx_vm__set_mode();
    if (plan->grid != NULL) {
        const size_t num_grids = plan->num_trajectories / (plan->grid->height * plan->grid->width);
        for (size_t g = 0; g < num_grids; g++) rollout__run_grid(plan, step, &planes, &run, g, outputs);
    }
    for (size_t first = 0; plan->grid == NULL && first < plan->num_trajectories; first += block) {
        const size_t left = plan->num_trajectories - first;
        rollout__run_block(plan, step, &run, first, left < block ? left : block, outputs);
    }
    ptx_vm__restore_mode(mode);
    return PTX_VM_SUCCESS;
}

#endif /* ROLLOUT_IMPLEMENTATION */
