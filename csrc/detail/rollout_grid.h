/*
 * rollout_grid.h - rollouts whose trajectories are grids of cells that read their neighbours.
 *
 * Private to rollout.h, whose implementation includes it. A state of a grid lies in a plane with a margin as wide as the farthest
 * neighbour, so that a neighbour's block is the cells' block at another address: a step copies nothing, writes the next states to
 * planes of their own and fills their margins by the boundary. What blocks compute in the margins is overwritten.
 */

#ifndef EVO_ROLLOUT_GRID_H
#define EVO_ROLLOUT_GRID_H

#include <stdlib.h>

typedef struct Rollout__Planes {
    size_t margin, stride, first,
        num_cells; /* stride: of rows; num_cells: from the first to the last, margins between them too */
    size_t size;                             /* of a plane, with room for a block behind */
    uint32_t* values;                        /* of the step's inputs that are no states; then states and next states */
    bool* has_neighbours;                    /* of states: that the step reads */
} Rollout__Planes;

static void rollout__take_planes(EvoArena* arena, const RolloutPlan* plan, const PtxVmProgram* step, Rollout__Planes* planes) {
    const RolloutGrid* grid = plan->grid;
    planes->margin = 0;
    for (uint32_t c = 0; c < plan->num_columns; c++) {
        const size_t dy = (size_t)abs(grid->neighbours[c].dy), dx = (size_t)abs(grid->neighbours[c].dx);
        const size_t far = dy > dx ? dy : dx;
        if (far > planes->margin) planes->margin = far;
    }
    planes->stride = grid->width + 2 * planes->margin;
    planes->first = planes->margin * planes->stride + planes->margin;
    planes->num_cells = (grid->height - 1) * planes->stride + grid->width;
    planes->size = (grid->height + 2 * planes->margin) * planes->stride + step->kernels->num_points;
    planes->values = (uint32_t*)evo__take(arena, planes->size, (step->num_inputs + 2 * plan->num_states) * sizeof(uint32_t));
    planes->has_neighbours = (bool*)evo__take(arena, plan->num_states, sizeof(bool));
}

static void rollout__clear_planes(const RolloutPlan* plan, const PtxVmProgram* step, Rollout__Planes* planes) {
    memset(planes->values, 0, planes->size * (step->num_inputs + 2 * plan->num_states) * sizeof(uint32_t));
    memset(planes->has_neighbours, 0, plan->num_states * sizeof(bool));
}

/* A column's values of a grid at a step, in a plane whose margins stay as they are. */
static void rollout__copy_grid(
    const RolloutPlan* plan, const Rollout__Planes* planes, uint32_t column, size_t step, size_t grid_idx, uint32_t* plane
) {
    const RolloutColumn* from = &plan->columns[column];
    const size_t height = plan->grid->height, width = plan->grid->width;
    const uint32_t* values = from->values + step * from->step_stride;
    for (size_t y = 0; y < height; y++) {
        uint32_t* row = plane + planes->first + y * planes->stride;
        if (from->trajectory_stride == 0)
            for (size_t x = 0; x < width; x++) row[x] = values[0];
        else
            memcpy(row, values + (grid_idx * height + y) * width, width * sizeof *row);
    }
}

/* The coordinate that the boundary takes for one outside of a side. Margins are at most as wide as the side. */
static size_t rollout__inside(const RolloutGrid* grid, ptrdiff_t at, size_t side) {
    const ptrdiff_t last = (ptrdiff_t)side - 1;
    if (grid->boundary == ROLLOUT_PERIODIC) return (size_t)(at < 0 ? at + last + 1 : at > last ? at - last - 1 : at);
    return (size_t)(at < 0 ? -1 - at : at > last ? 2 * last + 1 - at : at);
}

static void rollout__fill_margins(const RolloutPlan* plan, const Rollout__Planes* planes, uint32_t state, uint32_t* plane) {
    const RolloutGrid* grid = plan->grid;
    const size_t margin = planes->margin, stride = planes->stride, height = grid->height, width = grid->width;
    const bool is_constant = grid->boundary == ROLLOUT_CONSTANT;
    for (size_t y = 0; y < height; y++) {
        uint32_t* row = plane + planes->first + y * stride;
        for (size_t x = 0; x < margin; x++) {
            row[(ptrdiff_t)x - (ptrdiff_t)margin] =
                is_constant ? grid->outside[state] : row[rollout__inside(grid, (ptrdiff_t)x - (ptrdiff_t)margin, width)];
            row[width + x] = is_constant ? grid->outside[state] : row[rollout__inside(grid, (ptrdiff_t)(width + x), width)];
        }
    }
    for (size_t y = 0; y < 2 * margin; y++) {
        const size_t to = y < margin ? y : height + y;
        uint32_t* row = plane + to * stride;
        if (is_constant)
            for (size_t x = 0; x < stride; x++) row[x] = grid->outside[state];
        else
            memcpy(
                row, plane + (margin + rollout__inside(grid, (ptrdiff_t)to - (ptrdiff_t)margin, height)) * stride,
                stride * sizeof *row
            );
    }
}

/* Writes the states of a record. Returns whether the grid goes on: it does until an f32 state of a cell is not finite. */
static bool rollout__record_grid(
    const RolloutPlan* plan, const Rollout__Planes* planes, const Rollout__Run* run, size_t record, size_t grid_idx,
    bool is_alive, uint32_t* outputs
) {
    const size_t height = plan->grid->height, width = plan->grid->width, num_records = plan->num_steps / plan->record_every;
    for (uint32_t s = 0; is_alive && s < plan->num_states; s++) {
        if (!rollout__is_f32(plan, s)) continue;
        uint32_t is_finite = 1;
        for (size_t y = 0; y < height; y++) {
            const uint32_t* row = run->states[s] + planes->first + y * planes->stride;
            for (size_t x = 0; x < width; x++) is_finite &= (row[x] & 0x7f800000u) != 0x7f800000u;
        }
        is_alive = is_finite;
    }
    for (uint32_t s = 0; s < plan->num_states; s++) {
        const uint32_t ended = rollout__is_f32(plan, s) ? 0x7fffffffu : 0u;
        uint32_t* output = outputs + (s * num_records + record) * plan->num_trajectories + grid_idx * height * width;
        for (size_t y = 0; y < height; y++, output += width) {
            memcpy(output, run->states[s] + planes->first + y * planes->stride, width * sizeof *output);
            for (size_t x = 0; !is_alive && x < width; x++) output[x] = ended;
        }
    }
    return is_alive;
}

static void rollout__step_grid(
    const RolloutPlan* plan, const PtxVmProgram* program, const Rollout__Planes* planes, Rollout__Run* run, size_t step,
    size_t grid_idx
) {
    const size_t block = program->kernels->num_points;
    const uint32_t first_output = ptx_vm__first_output(program);
    for (uint32_t s = 0; s < plan->num_states; s++)
        if (planes->has_neighbours[s]) rollout__fill_margins(plan, planes, s, run->states[s]);
    for (uint32_t i = 0; i < program->num_inputs; i++) {
        const uint32_t column = program->input_registers[i];
        if (column >= plan->num_columns)
            rollout__read_time(plan, program, run, step, i);
        else if (run->state_of[i] == ROLLOUT_NO_STATE && (step == 0 || plan->columns[column].step_stride != 0))
            rollout__copy_grid(plan, planes, column, step, grid_idx, planes->values + i * planes->size);
    }
    for (size_t cell = planes->first; cell < planes->first + planes->num_cells; cell += block) {
        for (uint32_t i = 0; i < program->num_inputs; i++) {
            const uint32_t column = program->input_registers[i], state = run->state_of[i];
            if (column >= plan->num_columns) continue;
            const RolloutNeighbour* neighbour = &plan->grid->neighbours[column];
            const ptrdiff_t away = neighbour->dy * (ptrdiff_t)planes->stride + neighbour->dx;
            const uint32_t* plane = state == ROLLOUT_NO_STATE ? planes->values + i * planes->size : run->states[state];
            run->vm.memory[i] = (char*)(plane + cell + away);
        }
        for (uint32_t s = 0; s < plan->num_states; s++) run->vm.memory[first_output + s] = (char*)(run->next_states[s] + cell);
        program->kernels->enter(program->steps, run->vm.memory);
    }
    rollout__swap_states(plan, run);
}

static void rollout__run_grid(
    const RolloutPlan* plan, const PtxVmProgram* program, const Rollout__Planes* planes, Rollout__Run* run, size_t grid_idx,
    uint32_t* outputs
) {
    for (uint32_t s = 0; s < plan->num_states; s++) {
        run->states[s] = planes->values + (program->num_inputs + 2 * (size_t)s) * planes->size;
        run->next_states[s] = run->states[s] + planes->size;
        rollout__copy_grid(plan, planes, plan->state_columns[s], 0, grid_idx, run->states[s]);
    }
    bool is_alive = true;
    for (size_t step = 0; step < plan->num_steps; step++) {
        if (is_alive) rollout__step_grid(plan, program, planes, run, step, grid_idx);
        if ((step + 1) % plan->record_every == 0)
            is_alive = rollout__record_grid(plan, planes, run, step / plan->record_every, grid_idx, is_alive, outputs);
    }
}

#endif /* EVO_ROLLOUT_GRID_H */
