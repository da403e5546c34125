/*
 * tune.h - fits the constants of a program to a target: by Levenberg-Marquardt, and then, if asked, for the least largest error.
 *
 * The program is lowered once and derived once (derive.h); its constants become inputs of the derived program, which is prepared
 * once. Each iteration is then one run that sums up products of outputs, derivatives and target (ptx_vm_gram), and one solve of a
 * small linear system. In the end the constants' words are rewritten.
 *
 * Usage
 *
 *     #define TUNE_IMPLEMENTATION           in exactly one C or C++ file, which also sees the three other headers
 *     #include "tune.h"
 *
 *     TuneProblem problem = {derive_set, vm_set, level, inputs, num_registers, num_points, target, options};
 *     stack_ptx_lower(language, STACK_PTX_MODE_LENIENT, 0, words, num_words, .., &lowered, NULL);
 *     do {
 *         result = tune_program(&problem, &lowered, words, num_words, memory, memory_bytes, &bytes, &outcome);
 *         if (result == TUNE_ERROR_INSUFFICIENT_MEMORY) grow memory to `bytes`
 *     } while (result == TUNE_ERROR_INSUFFICIENT_MEMORY);
 *
 * Meaning
 *
 *   constants    The finite f32, f16 and bf16 constants on which the first request y depends (derive_constants), at most
 *                TUNE_MAX_PARAMETERS of them, the first in evaluation order.
 *   words        Lowering merges equal constants, so a constant's words are all CONSTANT words of its stack with its bits, up to
 *                the first RETURN. All of them are rewritten; those that were dead stay dead. Constants that no word of the program
 *                pushes, as those of a template, stay as they are.
 *   error        The mean squared difference of y and the target over the points where both are finite. If is_scaled, that
 *                of a + b y for the best a and b, or of b y if is_through_origin, which are projected out at each step (variable projection, in Kaufman's
 *                approximation). Points may have weights.
 *   iterations   Levenberg-Marquardt with Marquardt's scaling and Nielsen's damping. A step is taken if the error falls
 *                and no more points are left out. It ends early if a step gains less than a millionth, or moves no constant.
 *   rank         Normal equations are scaled to a unit diagonal and solved by Cholesky decomposition with diagonal pivoting. A
 *                constant whose column depends on the others is left where it is. The damping makes that rare.
 *   worst        With a TuneWorst, Levenberg-Marquardt is only the beginning: exchanges as of Remez and a search in the constants' last
 *                bits make the largest error small, in the program's own arithmetic (detail/tune_worst.h). No result is worse than what
 *                came in.
 *
 * A result depends on the arguments alone: not on the SIMD level among x86-64 levels, nor on threads.
 *
 * Memory and threads. Nothing is allocated; the caller owns all memory, which may have any alignment and any contents. There is
 * no global state. A problem may be used by any number of threads; memory, by one at a time. No pointer may be NULL unless its
 * comment says so.
 *
 * Options, defined before the implementation
 *
 *     TUNE_DEBUG          errors assert where they are found
 *     TUNE_STATIC         functions are static; each including file also defines TUNE_IMPLEMENTATION
 */

#ifndef TUNE_H
#define TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "derive.h"
#include "detail/result.h"
#include "ptx_vm.h"
#include "stack_ptx.h"

#define TUNE_VERSION_MAJOR 1
#define TUNE_VERSION_MINOR 0
#define TUNE_VERSION_PATCH 0

#define TUNE_API EVO__API(TUNE_STATIC)

#define TUNE_MAX_PARAMETERS 16

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE__RESULTS(X)                                                                                             \
    X(TUNE_SUCCESS, 0)                                                                                               \
    X(TUNE_ERROR_INVALID_VALUE, 1) /* NULL, an input that the program reads but has no values, no such SIMD level */ \
    X(TUNE_ERROR_INSUFFICIENT_MEMORY, 2) /* bytes_needed_out tells how much to come back with */

typedef enum { TUNE__RESULTS(EVO__ENUMERATOR) TUNE_RESULT_NUM_ENUMS } TuneResult;

/* The enumerator's name, or "TUNE_RESULT_UNKNOWN". The text is static. */
TUNE_API const char* tune_result_to_string(TuneResult result);

/* Errors at each point whose largest is to be small: the distance of result and target, times a scale. Results are rounded to a
   format first: to num_digits binary digits, or to a multiple of the last digit of 2^least_exponent; above `largest` they are infinite.
   Where the target is below `flushed`, a result of zero has no error. num_trials: of the constants' last bits. */
typedef struct TuneWorst {
    size_t num_points; /* at least the problem's, with which they begin; inputs have as many. Exchanges see only the problem's */
    const double* targets;
    const double* scales; /* above 0 */
    uint32_t num_digits; /* 24: results are not rounded */
    int32_t least_exponent;
    double largest;
    double flushed;
    uint32_t num_trials;
} TuneWorst;

/* A loss at each point in place of squared errors: the sum over points at offset + scale y is to be least. */
typedef struct TuneLoss {
    const PtxVmProgram* program; /* prepared for STORE: of prediction, target and weight the loss, its slope, and its curvature,
                                    which are derivatives by the prediction. Without curvature if is_of_errors */
    size_t num_points;
    const float* target;
    const float* weights; /* NULL: the program does not read them */
    float start; /* offset to begin with, where the loss is finite */
    bool is_of_errors; /* least where prediction and target are equal */
    float first_error; /* down to which errors are told apart in the first iteration, and in each further one closer, */
    float least_error; /* but not below; above 0 */
} TuneLoss;

/* The problem that constants are fitted to. Keep what it points to unchanged while it is used. */
typedef struct TuneProblem {
    const DeriveSet* derive_set;
    const PtxVmSet* vm_set;
    PtxVmLevel level;
    const PtxVmInput* inputs; /* parallel to the registers that programs are lowered with */
    size_t num_inputs;
    size_t num_points;
    const float* target; /* of the first request */
    uint32_t num_iterations;
    bool is_scaled;
    const float* root_weights; /* roots of the weights of points, above 0; NULL: all weigh the same */
    const TuneWorst* worst; /* NULL: least squares decide. Else is_scaled is false */
    const TuneLoss* loss; /* NULL: squared errors. Else is_scaled is true, and target and root_weights are not read */
    bool is_through_origin; /* is_scaled is by b y, without a */
} TuneProblem;

/* Result of tuning a program. Errors are sums of squares over points, or the largest; NaN if there was nothing to tune. */
typedef struct TuneOutcome {
    uint32_t num_parameters; /* constants that were fitted; 0 if there are none, or the program cannot run on a CPU */
    uint32_t num_evaluations; /* runs of the derived program over all points */
    uint64_t is_changed; /* 1 if words were rewritten, otherwise 0 */
    double error_before;
    double error_after;
} TuneOutcome;

/* Tunes one program. `lowered` is that of `words` in lenient mode, with value numbering and without folding: a folded constant has
   no words. The words are rewritten in place. bytes_needed_out is written only on INSUFFICIENT_MEMORY; memory may be NULL if
   memory_bytes is 0. */
TUNE_API TuneResult tune_program(
    const TuneProblem* problem, const StackPtxLowered* lowered, StackPtxInstruction* words, size_t num_words, void* memory,
    size_t memory_bytes, size_t* bytes_needed_out, TuneOutcome* outcome_out
);

/* Of an output y: offset and scale with the least sum of losses, and that sum; NaN if y is not finite everywhere, or it. The sums are
   those of y less reference, its value at the first point, over num_points that are looked at. */
typedef struct TuneScaling {
    uint64_t num_points;
    double reference, sum_y, sum_yy;
    double offset, scale, loss;
} TuneScaling;

/* Fits the offset and scale of each of num_rows outputs, (num_rows, loss->num_points), in at most num_iterations. If there
   is a sample, it decides them; sample_points are its points among all. sample may be NULL. Memory is as for tune_program. */
TUNE_API TuneResult tune_scalings(
    const TuneLoss* loss, const TuneLoss* sample, const uint32_t* sample_points, const float* outputs, size_t num_rows,
    uint32_t num_iterations, void* memory, size_t memory_bytes, size_t* bytes_needed_out, TuneScaling* scalings_out
);

#ifdef __cplusplus
}
#endif

#endif /* TUNE_H */

/* ================================================================================================================== */

#if defined(TUNE_IMPLEMENTATION) && !defined(TUNE_IMPLEMENTATION_INCLUDED)
#define TUNE_IMPLEMENTATION_INCLUDED

#include <math.h>
#include <string.h>

#include "detail/arena.h"

#define TUNE__ERROR(code) EVO__ERROR(TUNE_DEBUG, TUNE_ERROR_##code)

#define TUNE__MAX_UNKNOWNS (TUNE_MAX_PARAMETERS + 2) /* of a loss: offset and scale too */
#define TUNE__FIRST_DAMPING 1e-3
#define TUNE__LEAST_DAMPING 1e-10
#define TUNE__LEAST_PIVOT 1e-9 /* of a matrix with a diagonal of about one; rounding to f32 leaves about 1e-14 */
#define TUNE__LEAST_GAIN 1e-6 /* of the error, relative */
#define TUNE__LEAST_VARIATION 1e-12 /* of a column that is projected, relative to its square: below, nothing is left of it */

const char* tune_result_to_string(TuneResult result) { EVO__RETURN_NAME(result, TUNE__RESULTS, "TUNE_RESULT_UNKNOWN") }

static bool tune__is_finite(double number) { return fabs(number) <= 1.7976931348623157e308; }

/* ---- normal equations -------------------------------------------------------------------------------------------- */

/* The error at some constants, and its model: error - 2 step'gradient + step'matrix step. */
typedef struct TuneModel {
    uint32_t num_parameters;
    double weight; /* of the points that count */
    double error;
    double gradient[TUNE__MAX_UNKNOWNS];
    double matrix[TUNE__MAX_UNKNOWNS][TUNE__MAX_UNKNOWNS];
} TuneModel;

enum { TUNE__ONE, TUNE__TARGET, TUNE__Y, TUNE__FIRST_PARAMETER };

static double tune__sum(const double* sums, uint32_t i, uint32_t j) {
    return i >= j ? sums[i * (i + 1) / 2 + j] : sums[j * (j + 1) / 2 + i];
}

/* The sum of products, with what was taken off; without references: without the means. */
static double tune__product(const double* sums, const double* references, uint32_t i, uint32_t j) {
    const double of_i = tune__sum(sums, i, TUNE__ONE), of_j = tune__sum(sums, j, TUNE__ONE);
    if (references == NULL) return tune__sum(sums, i, j) - of_i * of_j / sums[0];
    const double at_i = references[i - TUNE__TARGET], at_j = references[j - TUNE__TARGET];
    return tune__sum(sums, i, j) + at_i * of_j + at_j * of_i + at_i * at_j * sums[0];
}

/* Whether the square that is left of a column is more than rounding. */
static bool tune__varies(double left, double factor, const double* sums, const double* references, uint32_t column) {
    return left > TUNE__LEAST_VARIATION * factor * tune__product(sums, references, column, column);
}

/* With r = target - a - b y at the best a and b, and P what projects 1 and y out: error r'r, gradient b J'P r, matrix
   b b J'P J. Through the origin, a is 0. */
static void tune__scaled_model(const double* sums, const double* references, bool through_origin, TuneModel* model) {
    const double* kept = through_origin ? references : NULL;
    const double yy = tune__product(sums, kept, TUNE__Y, TUNE__Y), yt = tune__product(sums, kept, TUNE__Y, TUNE__TARGET);
    const double tt = tune__product(sums, kept, TUNE__TARGET, TUNE__TARGET), slope = yt / yy;
    if (!tune__varies(yy, 1.0, sums, references, TUNE__Y)) {
        model->num_parameters = 0; /* no scale fits */
        model->error = tt;
        return;
    }
    double along_y[TUNE_MAX_PARAMETERS];
    model->error = tt - slope * yt;
    for (uint32_t i = 0; i < model->num_parameters; i++) {
        const uint32_t column = TUNE__FIRST_PARAMETER + i;
        along_y[i] = tune__product(sums, kept, column, TUNE__Y);
        model->gradient[i] = slope * (tune__product(sums, kept, column, TUNE__TARGET) - slope * along_y[i]);
        for (uint32_t j = 0; j <= i; j++) {
            const double product = tune__product(sums, kept, column, TUNE__FIRST_PARAMETER + j) - along_y[i] * along_y[j] / yy;
            model->matrix[i][j] = model->matrix[j][i] = slope * slope * product;
        }
        if (!tune__varies(model->matrix[i][i], slope * slope, sums, references, column))
            model->matrix[i][i] = 0.0; /* it only scales or shifts y */
    }
}

static void tune__plain_model(const double* sums, TuneModel* model) {
    const double tt = tune__sum(sums, TUNE__TARGET, TUNE__TARGET), ty = tune__sum(sums, TUNE__Y, TUNE__TARGET);
    model->error = tt - 2.0 * ty + tune__sum(sums, TUNE__Y, TUNE__Y);
    for (uint32_t i = 0; i < model->num_parameters; i++) {
        const uint32_t column = TUNE__FIRST_PARAMETER + i;
        model->gradient[i] = tune__sum(sums, column, TUNE__TARGET) - tune__sum(sums, column, TUNE__Y);
        for (uint32_t j = 0; j <= i; j++)
            model->matrix[i][j] = model->matrix[j][i] = tune__sum(sums, column, TUNE__FIRST_PARAMETER + j);
    }
}

/* Solves (matrix + damping diagonal) step = gradient. Parameters that do not matter, or that depend on others, get 0. */
static void tune__solve(const TuneModel* model, double damping, double* step) {
    const uint32_t n = model->num_parameters;
    double scale[TUNE__MAX_UNKNOWNS], factor[TUNE__MAX_UNKNOWNS][TUNE__MAX_UNKNOWNS], right[TUNE__MAX_UNKNOWNS];
    uint32_t order[TUNE__MAX_UNKNOWNS], rank = 0;
    for (uint32_t i = 0; i < n; i++) {
        scale[i] = model->matrix[i][i] > 0.0 ? 1.0 / sqrt(model->matrix[i][i]) : 0.0;
        order[i] = i;
        step[i] = 0.0;
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) factor[i][j] = scale[i] * model->matrix[i][j] * scale[j];
        factor[i][i] = scale[i] > 0.0 ? 1.0 + damping : 0.0;
    }
    for (; rank < n; rank++) {
        uint32_t best = rank;
        for (uint32_t i = rank + 1; i < n; i++)
            if (factor[order[i]][order[i]] > factor[order[best]][order[best]]) best = i;
        const uint32_t pivot = order[best];
        order[best] = order[rank];
        order[rank] = pivot;
        if (!(factor[pivot][pivot] > TUNE__LEAST_PIVOT)) break;
        factor[pivot][pivot] = sqrt(factor[pivot][pivot]);
        for (uint32_t i = rank + 1; i < n; i++) factor[order[i]][pivot] /= factor[pivot][pivot];
        for (uint32_t i = rank + 1; i < n; i++) {
            for (uint32_t j = rank + 1; j <= i; j++) {
                const uint32_t row = order[i], column = order[j];
                factor[row][column] -= factor[row][pivot] * factor[column][pivot];
                factor[column][row] = factor[row][column];
            }
        }
    }
    for (uint32_t i = 0; i < rank; i++) {
        right[i] = scale[order[i]] * model->gradient[order[i]];
        for (uint32_t j = 0; j < i; j++) right[i] -= factor[order[i]][order[j]] * right[j];
        right[i] /= factor[order[i]][order[i]];
    }
    for (uint32_t i = rank; i-- > 0;) {
        for (uint32_t j = i + 1; j < rank; j++) right[i] -= factor[order[j]][order[i]] * right[j];
        right[i] /= factor[order[i]][order[i]];
        step[order[i]] = scale[order[i]] * right[i];
    }
}

/* By how much the model says that the error falls. */
static double tune__expected_gain(const TuneModel* model, const double* step) {
    double gain = 0.0;
    for (uint32_t i = 0; i < model->num_parameters; i++) {
        double along = 2.0 * model->gradient[i];
        for (uint32_t j = 0; j < model->num_parameters; j++) along -= model->matrix[i][j] * step[j];
        gain += step[i] * along;
    }
    return gain;
}

#include "detail/tune_loss.h"

/* ---- programs at constants --------------------------------------------------------------------------------------- */

/* A prepared program, with memory to run it. */
typedef struct TuneMachine {
    const PtxVmProgram* program; /* NULL: it cannot run on a CPU */
    void* workspace;
    size_t workspace_bytes;
} TuneMachine;

/* The fit of one program, whose constants are inputs that follow those of the problem. */
typedef struct TuneRun {
    const TuneProblem* problem;
    TuneOutcome* outcome;
    TuneMachine derived; /* y and its derivatives: sums of their products, or with a loss at all points */
    PtxVmInput* inputs;
    float* constants;
    double *sums, *references;
    uint32_t num_parameters;
    uint32_t num_digits[TUNE_MAX_PARAMETERS]; /* of the constants' formats */
    TuneLossRun* loss; /* NULL: squared errors */
} TuneRun;

static TuneResult tune__prepare(
    const TuneProblem* problem, PtxVmRunKind kind, const StackPtxLowered* lowered, EvoArena* arena, TuneMachine* machine
) {
    size_t num_bytes;
    ptx_vm_program_size(lowered, &num_bytes);
    void* memory = evo__take(arena, num_bytes, 1);
    if (memory == NULL) return TUNE_ERROR_INSUFFICIENT_MEMORY;
    const PtxVmResult result =
        ptx_vm_program_init(problem->vm_set, problem->level, kind, lowered, memory, num_bytes, &machine->program, NULL);
    if (result == PTX_VM_ERROR_NO_CPU_MEANING) return TUNE_SUCCESS;
    if (result != PTX_VM_SUCCESS) return TUNE__ERROR(INVALID_VALUE);
    ptx_vm_workspace_size(machine->program, &machine->workspace_bytes);
    machine->workspace = evo__take(arena, machine->workspace_bytes, 1);
    return machine->workspace == NULL ? TUNE_ERROR_INSUFFICIENT_MEMORY : TUNE_SUCCESS;
}

/* Runs a program at points. False if the run is refused. */
static bool tune__store(
    const TuneRun* run, const TuneMachine* machine, const PtxVmInput* inputs, size_t num_points, const float* constants,
    void* const* outputs
) {
    const size_t num_inputs = run->problem->num_inputs + run->num_parameters;
    memcpy(run->constants, constants, run->num_parameters * sizeof *constants);
    return ptx_vm_store(
               machine->program, inputs, num_inputs, num_points, outputs, machine->workspace, machine->workspace_bytes
           ) == PTX_VM_SUCCESS;
}

static bool tune__store_for_loss(const TuneRun* run, const float* constants) {
    void* outputs[1 + TUNE_MAX_PARAMETERS] = {run->loss->y};
    for (uint32_t k = 0; k < run->num_parameters; k++) outputs[1 + k] = run->loss->derivatives[k];
    if (!tune__store(run, &run->derived, run->inputs, run->problem->num_points, constants, outputs)) return false;
    tune__centre(run->loss->y, NULL, run->loss);
    return true;
}

/* False if the run is refused. constants: with a loss, they come after offset and scale. */
static bool tune__evaluate(const TuneRun* run, const float* constants, TuneModel* model) {
    const TuneProblem* problem = run->problem;
    const TuneMachine* machine = &run->derived;
    run->outcome->num_evaluations++;
    if (run->loss != NULL) {
        if (run->loss->num_constants > 0 && !tune__store_for_loss(run, constants + 2)) return false;
        return tune__loss_model(run->loss, constants[0], constants[1], model);
    }
    memcpy(run->constants, constants, run->num_parameters * sizeof *constants);
    model->num_parameters = run->num_parameters;
    if (ptx_vm_gram(
            machine->program, run->inputs, problem->num_inputs + run->num_parameters, problem->num_points, problem->target,
            problem->root_weights, problem->is_scaled, run->sums, run->references, machine->workspace, machine->workspace_bytes
        ) != PTX_VM_SUCCESS) {
        return false;
    }
    model->weight = run->sums[0];
    if (!(model->weight > 0.0)) {
        model->num_parameters = 0;
        model->error = 0.0;
    } else if (problem->is_scaled) {
        tune__scaled_model(run->sums, run->references, problem->is_through_origin, model);
    } else {
        tune__plain_model(run->sums, model);
    }
    model->error = model->error > 0.0 ? model->error : 0.0;
    return true;
}

static bool tune__is_better(const TuneModel* model, const TuneModel* than) {
    return model->weight >= than->weight && model->error / model->weight < than->error / than->weight;
}

/* Writes the constants plus the step. False if none moves or one would not be finite. */
static bool tune__move(uint32_t num_parameters, const double* step, const float* from, float* to) {
    bool moves = false;
    for (uint32_t i = 0; i < num_parameters; i++) {
        const double number = (double)from[i] + step[i];
        if (!(fabs(number) <= 3.4028234663852886e38)) return false;
        to[i] = (float)number;
        moves = moves || to[i] != from[i];
    }
    return moves;
}

/* Improves the constants in place. */
static TuneResult tune__iterate(const TuneRun* run, uint32_t num_iterations, float* constants) {
    TuneOutcome* outcome = run->outcome;
    TuneModel model, trial;
    double damping = TUNE__FIRST_DAMPING, growth = 2.0, step[TUNE__MAX_UNKNOWNS];
    float moved[TUNE__MAX_UNKNOWNS];
    if (!tune__evaluate(run, constants, &model)) return TUNE__ERROR(INVALID_VALUE);
    outcome->error_before = outcome->error_after = model.error;
    if (!tune__is_finite(model.error)) return TUNE_SUCCESS; /* as of a loss where an output is not finite */
    for (uint32_t i = 0; i < num_iterations && model.num_parameters > 0; i++) {
        tune__solve(&model, damping, step);
        if (!tune__move(model.num_parameters, step, constants, moved)) break;
        (void)tune__evaluate(run, moved, &trial);
        if (!tune__is_better(&trial, &model)) {
            damping *= growth;
            if (run->loss != NULL && damping < 1.0) damping = 1.0; /* half a step: a loss may end beside its parabola */
            growth *= 2.0;
            continue;
        }
        const double gain = model.error - trial.error, ratio = gain / tune__expected_gain(&model, step);
        const double cube = (2.0 * ratio - 1.0) * (2.0 * ratio - 1.0) * (2.0 * ratio - 1.0);
        const bool is_done = gain < TUNE__LEAST_GAIN * model.error;
        damping *= 1.0 - cube > 0.1 ? (1.0 - cube < 2.0 ? 1.0 - cube : 2.0) : 0.1;
        damping = damping > TUNE__LEAST_DAMPING ? damping : TUNE__LEAST_DAMPING;
        growth = 2.0;
        model = trial;
        memcpy(constants, moved, model.num_parameters * sizeof *constants);
        if (is_done) break;
    }
    outcome->error_after = model.error;
    return TUNE_SUCCESS;
}

/* The same with a loss: first offset and scale, then all. */
static TuneResult tune__iterate_loss(const TuneRun* run, float* constants) {
    float unknowns[TUNE__MAX_UNKNOWNS] = {run->loss->loss->start, 0.0f};
    memcpy(unknowns + 2, constants, run->num_parameters * sizeof *constants);
    if (!tune__store_for_loss(run, constants)) return TUNE__ERROR(INVALID_VALUE);
    TuneResult result = tune__iterate(run, TUNE__FIRST_SCALINGS, unknowns);
    run->loss->num_constants = run->num_parameters;
    if (result == TUNE_SUCCESS) result = tune__iterate(run, run->problem->num_iterations, unknowns);
    memcpy(constants, unknowns + 2, run->num_parameters * sizeof *constants);
    return result;
}

#include "detail/tune_worst.h"

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Index of the constant that a word pushes; num_nodes: none. */
static uint32_t tune__constant_of(
    const StackPtxLowered* lowered, const uint32_t* nodes, uint32_t num_nodes, StackPtxInstruction word
) {
    uint32_t k = word.instruction_type == STACK_PTX_INSTRUCTION_TYPE_CONSTANT ? 0 : num_nodes;
    while (k < num_nodes &&
           (word.aux != lowered->nodes[nodes[k]].stack_idx || word.payload.u != lowered->nodes[nodes[k]].payload)) {
        k++;
    }
    return k;
}

/* The constants that are tuned: finite, and pushed by words. False: not enough memory. */
static bool tune__choose(
    const TuneProblem* problem, const StackPtxLowered* lowered, const StackPtxInstruction* words, size_t num_words,
    EvoArena* arena, uint32_t* nodes, uint32_t* num_nodes
) {
    size_t num_bytes, count = 0;
    bool is_pushed[TUNE_MAX_PARAMETERS + 1] = {false};
    derive_size(lowered, TUNE_MAX_PARAMETERS, &num_bytes);
    EvoArena scratch = *arena;
    void* memory = evo__take(&scratch, num_bytes, 1);
    if (memory == NULL) {
        arena->num_bytes = scratch.num_bytes;
        return false;
    }
    derive_constants(problem->derive_set, lowered, 0, memory, num_bytes, nodes, TUNE_MAX_PARAMETERS, &count);
    for (size_t i = 0; i < num_words; i++) is_pushed[tune__constant_of(lowered, nodes, (uint32_t)count, words[i])] = true;
    for (size_t i = 0; i < count; i++)
        if (is_pushed[i] && (lowered->nodes[nodes[i]].payload & 0x7f800000u) != 0x7f800000u) nodes[(*num_nodes)++] = nodes[i];
    return true;
}

static TuneResult tune__run(
    TuneRun* run, const StackPtxLowered* lowered, StackPtxInstruction* words, size_t num_words, EvoArena* arena
) {
    const TuneProblem* problem = run->problem;
    uint32_t nodes[TUNE_MAX_PARAMETERS], n = 0;
    float constants[TUNE_MAX_PARAMETERS] = {0.0f}, first[TUNE_MAX_PARAMETERS];
    size_t num_bytes;
    StackPtxLowered derived;
    TuneLossRun loss;
    memset(&loss, 0, sizeof loss);
    if (!tune__choose(problem, lowered, words, num_words, arena, nodes, &n)) return TUNE_ERROR_INSUFFICIENT_MEMORY;
    if (n == 0) return TUNE_SUCCESS;
    run->num_parameters = n;
    run->inputs = (PtxVmInput*)evo__take(arena, problem->num_inputs + n, sizeof(PtxVmInput));
    run->constants = (float*)evo__take(arena, n, sizeof(float));
    run->sums = (double*)evo__take(arena, PTX_VM_GRAM_NUM_ENTRIES(1 + n), sizeof(double));
    run->references = (double*)evo__take(arena, 2 + n, sizeof(double));
    derive_size(lowered, n, &num_bytes);
    void* memory = evo__take(arena, num_bytes, 1);
    if (memory == NULL) return TUNE_ERROR_INSUFFICIENT_MEMORY;
    if (derive_program(problem->derive_set, lowered, 0, nodes, n, (uint32_t)problem->num_inputs, memory, num_bytes, &derived) !=
        DERIVE_SUCCESS) {
        return TUNE__ERROR(INVALID_VALUE);
    }
    const PtxVmRunKind kind = problem->loss != NULL ? PTX_VM_RUN_STORE : PTX_VM_RUN_GRAM;
    TuneResult result = tune__prepare(problem, kind, &derived, arena, &run->derived);
    if (result != TUNE_SUCCESS || run->derived.program == NULL) return result;
    if (problem->loss != NULL) {
        run->loss = &loss;
        if (!tune__take_loss_run(problem->loss, n, arena, &loss)) return TUNE_ERROR_INSUFFICIENT_MEMORY;
    }
    for (uint32_t i = 0; i < problem->num_inputs; i++) run->inputs[i] = problem->inputs[i];
    for (uint32_t k = 0; k < n; k++) {
        const PtxVmInput input = {&run->constants[k], true};
        run->inputs[problem->num_inputs + k] = input;
        memcpy(&constants[k], &lowered->nodes[nodes[k]].payload, sizeof constants[k]);
        run->num_digits[k] = ptx_vm_set_digits(problem->vm_set, lowered->nodes[nodes[k]].stack_idx);
    }
    memcpy(first, constants, sizeof first);
    result = run->loss != NULL ? tune__iterate_loss(run, constants) : tune__iterate(run, problem->num_iterations, constants);
    if (result == TUNE_SUCCESS && problem->worst != NULL) result = tune__least_worst(run, &derived, first, constants, arena);
    if (result != TUNE_SUCCESS) return result;
    run->outcome->num_parameters = n;
    run->outcome->is_changed = memcmp(constants, first, n * sizeof *constants) != 0;
    for (size_t i = 0; i < num_words; i++) {
        const uint32_t k = tune__constant_of(lowered, nodes, n, words[i]);
        if (k < n) words[i].payload.f = constants[k];
    }
    return TUNE_SUCCESS;
}

TuneResult tune_program(
    const TuneProblem* problem, const StackPtxLowered* lowered, StackPtxInstruction* words, size_t num_words, void* memory,
    size_t memory_bytes, size_t* bytes_needed_out, TuneOutcome* outcome_out
) {
    if (problem == NULL || lowered == NULL || (words == NULL && num_words > 0) || bytes_needed_out == NULL ||
        outcome_out == NULL || (memory == NULL && memory_bytes > 0) || lowered->num_requests == 0 || problem->target == NULL ||
        problem->derive_set == NULL || problem->vm_set == NULL || (problem->inputs == NULL && problem->num_inputs > 0)) {
        return TUNE__ERROR(INVALID_VALUE);
    }
    TuneRun run;
    size_t length = 0;
    memset(&run, 0, sizeof run);
    memset(outcome_out, 0, sizeof *outcome_out);
    outcome_out->error_before = outcome_out->error_after = (double)NAN;
    run.problem = problem;
    run.outcome = outcome_out;
    while (length < num_words && words[length].instruction_type != STACK_PTX_INSTRUCTION_TYPE_RETURN) length++;
    EvoArena arena = evo__arena(memory, memory_bytes);
    const TuneResult result = tune__run(&run, lowered, words, length, &arena);
    /* The sizes of later stages are not known before the earlier ones are done: twice as much is enough, most of the time. */
    if (result == TUNE_ERROR_INSUFFICIENT_MEMORY) *bytes_needed_out = 2 * arena.num_bytes;
    return result;
}

TuneResult tune_scalings(
    const TuneLoss* loss, const TuneLoss* sample, const uint32_t* sample_points, const float* outputs, size_t num_rows,
    uint32_t num_iterations, void* memory, size_t memory_bytes, size_t* bytes_needed_out, TuneScaling* scalings_out
) {
    if (loss == NULL || bytes_needed_out == NULL || (memory == NULL && memory_bytes > 0) || loss->num_points == 0 ||
        (num_rows > 0 && (outputs == NULL || scalings_out == NULL)) || (sample != NULL && sample_points == NULL)) {
        return TUNE__ERROR(INVALID_VALUE);
    }
    TuneLossRun all, some;
    TuneOutcome outcome;
    TuneRun run;
    memset(&all, 0, sizeof all);
    memset(&some, 0, sizeof some);
    memset(&run, 0, sizeof run);
    EvoArena arena = evo__arena(memory, memory_bytes);
    const bool fits = tune__take_loss_run(loss, 0, &arena, &all);
    if ((sample != NULL && !tune__take_loss_run(sample, 0, &arena, &some)) || !fits) {
        *bytes_needed_out = arena.num_bytes;
        return TUNE_ERROR_INSUFFICIENT_MEMORY;
    }
    run.loss = sample != NULL ? &some : &all;
    run.outcome = &outcome;
    for (size_t row = 0; row < num_rows; row++) {
        const float* output = outputs + row * loss->num_points;
        float unknowns[TUNE__MAX_UNKNOWNS] = {loss->start, 0.0f};
        TuneScaling* scaling = &scalings_out[row];
        memset(&outcome, 0, sizeof outcome);
        tune__centre(output, NULL, &all);
        if (sample != NULL) tune__centre(output, sample_points, &some);
        run.loss->least_error = loss->first_error;
        tune__summarize(run.loss, output[0], scaling);
        if (tune__iterate(&run, num_iterations, unknowns) != TUNE_SUCCESS) return TUNE__ERROR(INVALID_VALUE);
        if (sample != NULL && !tune__sum_losses(&all, unknowns[0], unknowns[1], &outcome.error_after))
            return TUNE__ERROR(INVALID_VALUE);
        scaling->scale = (double)unknowns[1];
        scaling->offset = (double)unknowns[0] - scaling->scale * (double)output[0];
        scaling->loss = outcome.error_after;
    }
    return TUNE_SUCCESS;
}

#endif /* TUNE_IMPLEMENTATION */
