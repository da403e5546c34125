/*
 * tune_worst.h - constants for the least largest error over the points.
 *
 * Private: included only by the implementation in tune.h. Two stages, each of which keeps the best constants so far:
 *
 *   exchange   With the derivatives at the constants, the step that makes the largest error least is a linear program in as many
 *              unknowns as constants, and one more: the error (Osborne and Watson 1969). Its dual simplex is Stiefel's exchange, the
 *              one of Remez; a box around the constants gives it a basis to begin with, and columns that depend on others an end.
 *              A step is shortened until the error falls.
 *   last bits  Moves of one to three constants by powers of two of their last bits, at random but of a seed that depends on the
 *              program alone. Most are refused by the points where errors are largest; what passes runs over all of them.
 *
 * What counts is the error over all points of the TuneWorst, many more than the problem's: constants fit the rounding of a few
 * thousand points too well. Where an error is largest joins the points that refuse moves, an exchange as well.
 */
#ifndef TUNE_WORST_H_INCLUDED
#define TUNE_WORST_H_INCLUDED

#define TUNE__MAX_ROWS (TUNE_MAX_PARAMETERS + 1)
#define TUNE__FIRST_BOX 1e5      /* in errors: monomials on an interval cancel by that much */
#define TUNE__NUM_STEPS 6u       /* exchanges; polynomials take one or two */
#define TUNE__NUM_CUTS 6u        /* of a step, each to a quarter */
#define TUNE__LEAST_FALL 1e-3    /* of the error that an exchange promises, relative */
#define TUNE__LEAST_GAIN_LEFT 4e-3 /* of the error after a step, over what was promised: beyond, there is another */
#define TUNE__NUM_PIVOTS 12u     /* for each row: it takes three or four */
#define TUNE__LEAST_ALONG 1e-12  /* of a pivot */
#define TUNE__NUM_ROUNDS 12u     /* of an exchange, each over more points; it takes about four */
#define TUNE__NUM_NODES 512u     /* points, at most, between which an exchange chooses */
#define TUNE__NODES_OF_ROW 4u    /* points, of each row, that it begins with */
#define TUNE__TILT 1e-9 /* of the error that is minimised, towards small steps: without, exchanges can go round in circles */
#define TUNE__SLACK 1e-9 /* by which an error may exceed the levelled one, relative */
#define TUNE__FIRST_SLACK 0.1 /* by which an error may exceed the least so far at first, relative */
#define TUNE__MAY_FLUSH                                                                                           \
    2.0 /* times as large results may be 0 in exchanges: whether the least normal is flushed, last bits decide */
#define TUNE__NUM_ACTIVE 256u /* points that refuse moves */
#define TUNE__NUM_BINS 512u

/* An error as it counts: rounded as results are, and, where that is equal, before. */
typedef struct TuneWorstError {
    double rounded, plain;
} TuneWorstError;

static bool tune__is_less(TuneWorstError a, TuneWorstError b) {
    return a.rounded < b.rounded || (a.rounded == b.rounded && a.plain < b.plain);
}

typedef struct TuneNodes TuneNodes;

/* What the second part of tuning works with. */
typedef struct TuneSearch {
    const TuneRun* run;
    const PtxVmProgram *program, *derived; /* y; y and its derivatives */
    void *workspace, *derived_workspace;
    size_t workspace_bytes, derived_workspace_bytes;
    void* outputs[TUNE__MAX_ROWS]; /* y at all points, and its derivative by each constant at the problem's */
    double* errors; /* of all points, as they count */
    double* distances; /* target less result, times scale, at the problem's points */
    double* slopes[TUNE_MAX_PARAMETERS]; /* derivatives by each constant, times scale */
    TuneNodes* nodes;
    PtxVmInput* active_inputs;
    float* active_values; /* of each input that varies, TUNE__NUM_ACTIVE */
    uint32_t* active; /* points, and how many */
    uint32_t num_active, next_active;
    double flushed; /* where targets are below, a result of zero has no error */
    uint64_t random;
} TuneSearch;

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* The nearest number of a format, ties to even. */
static double tune__rounded(const TuneWorst* worst, double y) {
    uint64_t bits, magic_bits;
    double magic;
    memcpy(&bits, &y, sizeof bits);
    const uint64_t exponent = bits >> 52 & 0x7ff, least = (uint64_t)(1023 + worst->least_exponent);
    magic_bits = ((exponent > least ? exponent : least) + 53 - worst->num_digits) << 52 | 0x8000000000000u;
    memcpy(&magic, &magic_bits, sizeof magic);
    const double rounded = (y + magic) - magic;
    return fabs(rounded) > worst->largest ? (double)INFINITY : rounded;
}

static TuneWorstError tune__error(const TuneSearch* search, float result, size_t point) {
    const TuneWorst* worst = search->run->problem->worst;
    const double y = result, target = worst->targets[point], scale = worst->scales[point];
    const bool is_flushed = y == 0.0 && fabs(target) < search->flushed;
    TuneWorstError error;
    error.plain = is_flushed ? 0.0 : fabs(y - target) * scale;
    error.rounded = worst->num_digits < 24 && !is_flushed ? fabs(tune__rounded(worst, y) - target) * scale : error.plain;
    if (!(error.plain <= 1.7976931348623157e308)) error.plain = (double)INFINITY;
    if (!(error.rounded <= 1.7976931348623157e308)) error.rounded = (double)INFINITY;
    return error;
}

static void tune__raise(TuneWorstError* worst, TuneWorstError error) {
    if (error.rounded > worst->rounded) worst->rounded = error.rounded;
    if (error.plain > worst->plain) worst->plain = error.plain;
}

/* The largest error over all points. Leaves each point's behind. */
static TuneWorstError tune__all_errors(TuneSearch* search, const float* constants, TuneOutcome* outcome) {
    const TuneProblem* problem = search->run->problem;
    const TuneWorst* worst = problem->worst;
    TuneWorstError largest = {0.0, 0.0};
    memcpy(search->run->constants, constants, search->run->num_parameters * sizeof *constants);
    (void)ptx_vm_store(
        search->program, search->run->inputs, problem->num_inputs + search->run->num_parameters, worst->num_points,
        search->outputs, search->workspace, search->workspace_bytes
    );
    outcome->num_evaluations++;
    const float* y = (const float*)search->outputs[0];
    for (size_t i = 0; i < worst->num_points; i++) {
        const TuneWorstError error = tune__error(search, y[i], i);
        search->errors[i] = error.rounded;
        tune__raise(&largest, error);
    }
    return largest;
}

/* ---- exchange ---------------------------------------------------------------------------------------------------- */

/* A constraint: `row` times the unknowns is at least `bound`. The last unknown is the error. */
typedef struct TuneConstraint {
    double row[TUNE__MAX_ROWS];
    double bound;
} TuneConstraint;

/* Constraints' left sides as factors L and U of their rows in another order. Those of singular ones are of no use, which the
   caller's comparisons refuse. */
typedef struct TuneFactors {
    double matrix[TUNE__MAX_ROWS][TUNE__MAX_ROWS];
    uint32_t order[TUNE__MAX_ROWS];
} TuneFactors;

static void tune__factorise(const TuneConstraint* rows, uint32_t n, TuneFactors* factors) {
    for (uint32_t i = 0; i < n; i++) {
        factors->order[i] = i;
        memcpy(factors->matrix[i], rows[i].row, n * sizeof(double));
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t pivot = k;
        for (uint32_t i = k + 1; i < n; i++)
            if (fabs(factors->matrix[i][k]) > fabs(factors->matrix[pivot][k])) pivot = i;
        if (pivot != k) {
            double kept[TUNE__MAX_ROWS];
            const uint32_t kept_order = factors->order[k];
            memcpy(kept, factors->matrix[k], n * sizeof(double));
            memcpy(factors->matrix[k], factors->matrix[pivot], n * sizeof(double));
            memcpy(factors->matrix[pivot], kept, n * sizeof(double));
            factors->order[k] = factors->order[pivot];
            factors->order[pivot] = kept_order;
        }
        for (uint32_t i = k + 1; i < n; i++) {
            const double factor = factors->matrix[i][k] /= factors->matrix[k][k];
            if (factor == 0.0) continue; /* most rows are walls at first */
            for (uint32_t j = k + 1; j < n; j++) factors->matrix[i][j] -= factor * factors->matrix[k][j];
        }
    }
}

static void tune__solve_rows(const TuneFactors* factors, uint32_t n, const double* right, double* solution) {
    for (uint32_t i = 0; i < n; i++) {
        solution[i] = right[factors->order[i]];
        for (uint32_t j = 0; j < i; j++) solution[i] -= factors->matrix[i][j] * solution[j];
    }
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t j = i + 1; j < n; j++) solution[i] -= factors->matrix[i][j] * solution[j];
        solution[i] /= factors->matrix[i][i];
    }
}

/* The same for the system of the columns. */
static void tune__solve_columns(const TuneFactors* factors, uint32_t n, const double* right, double* solution) {
    double middle[TUNE__MAX_ROWS];
    memcpy(middle, right, n * sizeof *middle);
    for (uint32_t i = 0; i < n; i++) {
        middle[i] /= factors->matrix[i][i];
        for (uint32_t j = i + 1; j < n; j++) middle[j] -= factors->matrix[i][j] * middle[i];
    }
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t j = 0; j < i; j++) middle[j] -= factors->matrix[i][j] * middle[i];
    for (uint32_t i = 0; i < n; i++) solution[factors->order[i]] = middle[i];
}

/* The points among which an exchange chooses: the left sides of a point's two constraints, but for their sign. */
struct TuneNodes {
    TuneConstraint nodes[TUNE__NUM_NODES];
    uint32_t count;
};

static void tune__add_node(const TuneSearch* search, const double* units, size_t point, TuneNodes* nodes) {
    const uint32_t n = search->run->num_parameters;
    if (nodes->count == TUNE__NUM_NODES) return;
    TuneConstraint* node = &nodes->nodes[nodes->count++];
    for (uint32_t k = 0; k < n; k++) node->row[k] = units[k] * search->slopes[k][point];
    node->bound = search->distances[point];
}

static TuneConstraint tune__signed(const TuneConstraint* node, uint32_t n, double sign) {
    TuneConstraint constraint;
    for (uint32_t k = 0; k < n; k++) constraint.row[k] = sign * node->row[k];
    constraint.row[n] = 1.0;
    constraint.bound = sign * node->bound;
    return constraint;
}

static TuneConstraint tune__wall(uint32_t n, uint32_t k, double sign, double box) {
    TuneConstraint constraint;
    memset(&constraint, 0, (n + 1) * sizeof(double));
    constraint.row[k] = sign;
    constraint.bound = -box;
    return constraint;
}

/* The constraint that some unknowns break most. False: none. */
static bool tune__most_broken(const TuneNodes* nodes, uint32_t n, double box, const double* unknowns, TuneConstraint* broken) {
    double violation = TUNE__SLACK * fabs(unknowns[n]), sign = 1.0;
    uint32_t which = TUNE__NUM_NODES;
    for (uint32_t i = 0; i < nodes->count; i++) {
        double distance = nodes->nodes[i].bound;
        for (uint32_t k = 0; k < n; k++) distance -= nodes->nodes[i].row[k] * unknowns[k];
        if (!(fabs(distance) - unknowns[n] > violation)) continue;
        violation = fabs(distance) - unknowns[n];
        sign = distance < 0.0 ? -1.0 : 1.0;
        which = i;
    }
    if (which < TUNE__NUM_NODES) *broken = tune__signed(&nodes->nodes[which], n, sign);
    for (uint32_t k = 0; k < n; k++) {
        if (!(fabs(unknowns[k]) - box > violation)) continue;
        violation = fabs(unknowns[k]) - box;
        which = 0;
        *broken = tune__wall(n, k, unknowns[k] > 0.0 ? -1.0 : 1.0, box);
    }
    return which < TUNE__NUM_NODES;
}

/* Exchanges constraints of the basis until none is broken. */
static void tune__pivot(
    const TuneNodes* nodes, uint32_t n, double box, const double* gradient, TuneConstraint* basis, double* unknowns
) {
    double bounds[TUNE__MAX_ROWS], multipliers[TUNE__MAX_ROWS], along[TUNE__MAX_ROWS];
    TuneConstraint entering;
    TuneFactors factors;
    for (uint32_t pivot = 0;; pivot++) {
        for (uint32_t k = 0; k <= n; k++) bounds[k] = basis[k].bound;
        tune__factorise(basis, n + 1, &factors);
        tune__solve_rows(&factors, n + 1, bounds, unknowns);
        if (pivot == TUNE__NUM_PIVOTS * (n + 1) || !tune__most_broken(nodes, n, box, unknowns, &entering)) return;
        tune__solve_columns(&factors, n + 1, gradient, multipliers);
        tune__solve_columns(&factors, n + 1, entering.row, along);
        uint32_t leaving = n + 1;
        double least = (double)INFINITY;
        for (uint32_t k = 0; k <= n; k++) {
            const double ratio = (multipliers[k] > 0.0 ? multipliers[k] : 0.0) / along[k];
            if (along[k] > TUNE__LEAST_ALONG && ratio < least) {
                least = ratio;
                leaving = k;
            }
        }
        if (leaving > n) return;
        basis[leaving] = entering;
    }
}

/* Adds the peaks of what a step leaves, of each run of points of one sign, that exceed the error. False: there is none. */
static bool tune__add_peaks(TuneSearch* search, const double* units, const double* step, double error, TuneNodes* nodes) {
    const size_t num_points = search->run->problem->num_points;
    double *left = search->errors, peak = 0.0;
    size_t where = 0;
    const uint32_t count = nodes->count;
    memcpy(left, search->distances, num_points * sizeof *left);
    for (uint32_t k = 0; k < search->run->num_parameters; k++) {
        const double* slopes = search->slopes[k];
        for (size_t i = 0; i < num_points; i++) left[i] -= step[k] * slopes[i];
    }
    for (size_t i = 0; i < num_points; i++) {
        if (peak * left[i] < 0.0) {
            if (fabs(peak) > error) tune__add_node(search, units, where, nodes);
            peak = 0.0;
        }
        if (!(fabs(left[i]) > fabs(peak))) continue;
        peak = left[i];
        where = i;
    }
    if (fabs(peak) > error) tune__add_node(search, units, where, nodes);
    return nodes->count > count;
}

/* The step, at most `box` in units, whose linear model has the least largest error, which is returned. */
static double tune__exchange(TuneSearch* search, const double* units, double box, double* step) {
    const uint32_t n = search->run->num_parameters;
    const size_t num_points = search->run->problem->num_points;
    TuneNodes* nodes = search->nodes;
    TuneConstraint basis[TUNE__MAX_ROWS];
    double gradient[TUNE__MAX_ROWS], unknowns[TUNE__MAX_ROWS];
    size_t first = 0;
    for (size_t i = 1; i < num_points; i++)
        if (fabs(search->distances[i]) > fabs(search->distances[first])) first = i;
    nodes->count = 0;
    tune__add_node(search, units, first, nodes);
    for (uint32_t k = 0; k <= TUNE__NODES_OF_ROW * n; k++)
        tune__add_node(search, units, (num_points - 1) * k / (TUNE__NODES_OF_ROW * n), nodes);
    basis[n] = tune__signed(&nodes->nodes[0], n, search->distances[first] < 0.0 ? -1.0 : 1.0);
    for (uint32_t k = 0; k < n; k++) {
        const double turns = 0.61803398874989485 * (k + 1);
        gradient[k] = TUNE__TILT * (1.0 + turns - floor(turns));
        basis[k] = tune__wall(n, k, basis[n].row[k] > gradient[k] ? -1.0 : 1.0, box);
    }
    gradient[n] = 1.0;
    for (uint32_t round = 0; round < TUNE__NUM_ROUNDS; round++) {
        tune__pivot(nodes, n, box, gradient, basis, unknowns);
        for (uint32_t k = 0; k < n; k++) step[k] = unknowns[k] * units[k];
        if (!tune__add_peaks(search, units, step, unknowns[n] * (1.0 + TUNE__LEAST_FALL), nodes)) break;
    }
    return unknowns[n];
}

/* Runs the derived program. False if a result is not finite. units: what changes of a constant are measured in, so that one moves
   a result by an error of one at most. */
static bool tune__linearise(TuneSearch* search, const float* constants, double* units, TuneOutcome* outcome) {
    const TuneProblem* problem = search->run->problem;
    const TuneWorst* worst = problem->worst;
    memcpy(search->run->constants, constants, search->run->num_parameters * sizeof *constants);
    (void)ptx_vm_store(
        search->derived, search->run->inputs, problem->num_inputs + search->run->num_parameters, problem->num_points,
        search->outputs, search->derived_workspace, search->derived_workspace_bytes
    );
    outcome->num_evaluations++;
    const float* y = (const float*)search->outputs[0];
    for (size_t i = 0; i < problem->num_points; i++) {
        if (!(y[i] - y[i] == 0.0f)) return false;
        const bool is_flushed = y[i] == 0.0f && fabs(worst->targets[i]) < search->flushed;
        search->distances[i] = is_flushed ? 0.0 : (worst->targets[i] - (double)y[i]) * worst->scales[i];
    }
    for (uint32_t k = 0; k < search->run->num_parameters; k++) {
        const float* slopes = (const float*)search->outputs[1 + k];
        double largest = 0.0;
        for (size_t i = 0; i < problem->num_points; i++) {
            const double slope = slopes[i] - slopes[i] == 0.0f ? slopes[i] * worst->scales[i] : 0.0;
            search->slopes[k][i] = slope;
            if (fabs(slope) > largest) largest = fabs(slope);
        }
        units[k] = largest > 0.0 ? 1.0 / largest : 0.0;
    }
    return true;
}

/* Improves the constants in place by exchanges. units: as they are in the end. */
static TuneWorstError tune__exchanges(
    TuneSearch* search, TuneWorstError error, float* constants, double* units, TuneOutcome* outcome
) {
    const uint32_t n = search->run->num_parameters;
    double step[TUNE__MAX_ROWS], part[TUNE__MAX_ROWS], box = TUNE__FIRST_BOX * error.plain;
    float moved[TUNE_MAX_PARAMETERS];
    TuneModel model;
    model.num_parameters = n;
    search->flushed *= TUNE__MAY_FLUSH;
    error = tune__all_errors(search, constants, outcome);
    for (uint32_t i = 0; i < TUNE__NUM_STEPS; i++) {
        if (!tune__linearise(search, constants, units, outcome)) break;
        const double promised = tune__exchange(search, units, box, step);
        if (!(promised < (1.0 - TUNE__LEAST_FALL) * error.plain)) break;
        double cut = 1.0, reach = 0.0;
        bool is_better = false;
        for (uint32_t k = 0; k < n; k++)
            if (units[k] > 0.0 && fabs(step[k]) / units[k] > reach) reach = fabs(step[k]) / units[k];
        for (uint32_t number = 0; number < TUNE__NUM_CUTS && !is_better; number++, cut /= 4.0) {
            for (uint32_t k = 0; k < n; k++) part[k] = cut * step[k];
            if (!tune__move(&model, part, constants, moved)) break;
            const TuneWorstError trial = tune__all_errors(search, moved, outcome);
            is_better = trial.plain < error.plain;
            if (!is_better) continue;
            error = trial;
            memcpy(constants, moved, n * sizeof *constants);
        }
        if (!is_better || error.plain < (1.0 + TUNE__LEAST_GAIN_LEFT) * promised) break;
        if (cut < 0.25) box = 4.0 * cut * reach;
    }
    search->flushed = search->run->problem->worst->flushed;
    return tune__all_errors(search, constants, outcome);
}

/* ---- last bits --------------------------------------------------------------------------------------------------- */

static uint32_t tune__draw(TuneSearch* search, uint32_t count) {
    uint64_t bits = search->random += 0x9e3779b97f4a7c15u; /* SplitMix64 */
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(((bits ^ bits >> 31) >> 32) * count >> 32);
}

static void tune__activate(TuneSearch* search, uint32_t slot, uint32_t point) {
    const TuneProblem* problem = search->run->problem;
    search->active[slot] = point;
    for (size_t i = 0; i < problem->num_inputs; i++) {
        const PtxVmInput* input = &search->run->inputs[i];
        if (input->is_uniform || input->values == NULL) continue;
        memcpy(&search->active_values[i * TUNE__NUM_ACTIVE + slot], (const float*)input->values + point, sizeof(float));
    }
}

/* The points of the largest errors, which `errors` has, become the active ones. */
static void tune__choose_active(TuneSearch* search, double largest) {
    uint32_t counts[TUNE__NUM_BINS] = {0}, bin = TUNE__NUM_BINS, num_chosen = 0;
    const size_t num_points = search->run->problem->worst->num_points;
    const double factor = (TUNE__NUM_BINS - 0.5) / largest;
    for (size_t i = 0; i < num_points; i++) counts[(uint32_t)(search->errors[i] * factor)]++;
    while (bin > 0 && num_chosen + counts[bin - 1] <= TUNE__NUM_ACTIVE / 2) num_chosen += counts[--bin];
    if (bin == TUNE__NUM_BINS) bin--;
    search->num_active = 0;
    for (size_t i = 0; i < num_points && search->num_active < TUNE__NUM_ACTIVE / 2; i++)
        if (search->errors[i] * factor >= bin) tune__activate(search, search->num_active++, (uint32_t)i);
    search->next_active = 0;
}

static bool tune__passes_active(TuneSearch* search, const float* constants, TuneWorstError bar) {
    const TuneProblem* problem = search->run->problem;
    const float* y = (const float*)search->outputs[0];
    TuneWorstError largest = {0.0, 0.0};
    memcpy(search->run->constants, constants, search->run->num_parameters * sizeof *constants);
    (void)ptx_vm_store(
        search->program, search->active_inputs, problem->num_inputs + search->run->num_parameters, search->num_active,
        search->outputs, search->workspace, search->workspace_bytes
    );
    for (uint32_t i = 0; i < search->num_active; i++) tune__raise(&largest, tune__error(search, y[i], search->active[i]));
    return tune__is_less(largest, bar);
}

/* By how many bits a move of a constant may exceed its last, so that it changes no result by more than an eighth of the error. */
static uint32_t tune__reach(float constant, uint32_t num_digits, double unit, double error) {
    int exponent, exponent_of_error;
    (void)frexp((double)constant, &exponent);
    (void)frexp(error * unit, &exponent_of_error);
    const int reach = exponent_of_error - 4 - (exponent - (int)num_digits), most = (int)num_digits - 2;
    return (uint32_t)(reach > 0 ? (reach < most ? reach : most) : 0);
}

static float tune__nudged(float constant, uint32_t num_digits, int32_t count) {
    int exponent;
    (void)frexp((double)constant, &exponent);
    return (float)((double)constant + ldexp((double)count, (exponent > -125 ? exponent : -125) - (int)num_digits));
}

static TuneWorstError tune__last_bits(
    TuneSearch* search, TuneWorstError error, const double* units, float* constants, TuneOutcome* outcome
) {
    const uint32_t n = search->run->num_parameters;
    const uint32_t num_trials = search->run->problem->worst->num_trials, num_loose = num_trials / 4 * 3;
    float moved[TUNE_MAX_PARAMETERS], best[TUNE_MAX_PARAMETERS];
    TuneWorstError least = error;
    memcpy(best, constants, n * sizeof *constants);
    tune__choose_active(search, error.rounded);
    for (uint32_t i = 0; i < num_trials; i++) {
        TuneWorstError bar = error;
        if (i < num_loose) {
            bar.rounded = bar.plain = least.rounded * (1.0 + TUNE__FIRST_SLACK * (num_loose - i) / num_loose);
        } else if (i == num_loose) {
            memcpy(constants, best, n * sizeof *constants);
            bar = error = tune__all_errors(search, constants, outcome);
            tune__choose_active(search, error.rounded);
        }
        const uint32_t num_moved = 1 + tune__draw(search, 3);
        memcpy(moved, constants, n * sizeof *constants);
        for (uint32_t k = 0; k < num_moved; k++) {
            const uint32_t which = tune__draw(search, n);
            const uint32_t num_digits = search->run->num_digits[which];
            const uint32_t bits = tune__draw(search, 1 + tune__reach(constants[which], num_digits, units[which], error.plain));
            moved[which] = tune__nudged(moved[which], num_digits, (tune__draw(search, 2) ? 1 : -1) * (int32_t)(1u << bits));
        }
        if (memcmp(moved, constants, n * sizeof *constants) == 0 || !tune__passes_active(search, moved, bar)) continue;
        const TuneWorstError trial = tune__all_errors(search, moved, outcome);
        if (tune__is_less(trial, bar)) {
            error = trial;
            memcpy(constants, moved, n * sizeof *constants);
            if (tune__is_less(error, least)) {
                least = error;
                memcpy(best, constants, n * sizeof *constants);
            }
            tune__choose_active(search, error.rounded);
            continue;
        }
        uint32_t worst = 0;
        for (uint32_t j = 1; j < search->run->problem->worst->num_points; j++)
            if (search->errors[j] > search->errors[worst]) worst = j;
        if (search->num_active < TUNE__NUM_ACTIVE)
            tune__activate(search, search->num_active++, worst);
        else
            tune__activate(search, TUNE__NUM_ACTIVE / 2 + search->next_active++ % (TUNE__NUM_ACTIVE / 2), worst);
    }
    memcpy(constants, best, n * sizeof *constants);
    return least;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* Prepares a program for results at all points. */
static TuneResult tune__prepare_store(
    const TuneProblem* problem, const StackPtxLowered* lowered, EvoArena* arena, const PtxVmProgram** program, void** workspace,
    size_t* workspace_bytes
) {
    size_t num_bytes;
    ptx_vm_program_size(lowered, &num_bytes);
    void* memory = evo__take(arena, num_bytes, 1);
    if (memory == NULL) return TUNE_ERROR_INSUFFICIENT_MEMORY;
    if (ptx_vm_program_init(problem->vm_set, problem->level, PTX_VM_RUN_STORE, lowered, memory, num_bytes, program, NULL) !=
        PTX_VM_SUCCESS) {
        return TUNE__ERROR(INVALID_VALUE);
    }
    ptx_vm_workspace_size(*program, workspace_bytes);
    *workspace = evo__take(arena, *workspace_bytes, 1);
    return *workspace == NULL ? TUNE_ERROR_INSUFFICIENT_MEMORY : TUNE_SUCCESS;
}

static TuneResult tune__prepare_search(const TuneRun* run, const StackPtxLowered* derived, EvoArena* arena, TuneSearch* search) {
    const TuneProblem* problem = run->problem;
    const size_t num_points = problem->num_points, num_all = problem->worst->num_points, num_inputs = problem->num_inputs;
    StackPtxLowered plain = *derived; /* whose nodes come first, with that of y as the last */
    plain.num_nodes = plain.value_nodes[plain.request_values[0]] + 1;
    plain.num_requests = 1;
    search->run = run;
    search->flushed = problem->worst->flushed;
    TuneResult result =
        tune__prepare_store(problem, &plain, arena, &search->program, &search->workspace, &search->workspace_bytes);
    if (result == TUNE_SUCCESS)
        result = tune__prepare_store(
            problem, derived, arena, &search->derived, &search->derived_workspace, &search->derived_workspace_bytes
        );
    if (result != TUNE_SUCCESS) return result;
    for (uint32_t k = 0; k <= run->num_parameters; k++)
        search->outputs[k] = evo__take(arena, k == 0 ? num_all : num_points, sizeof(float));
    search->errors = (double*)evo__take(arena, num_all, sizeof(double));
    search->distances = (double*)evo__take(arena, num_points, sizeof(double));
    for (uint32_t k = 0; k < run->num_parameters; k++) search->slopes[k] = (double*)evo__take(arena, num_points, sizeof(double));
    search->nodes = (TuneNodes*)evo__take(arena, 1, sizeof(TuneNodes));
    search->active = (uint32_t*)evo__take(arena, TUNE__NUM_ACTIVE, sizeof(uint32_t));
    search->active_inputs = (PtxVmInput*)evo__take(arena, num_inputs + run->num_parameters, sizeof(PtxVmInput));
    search->active_values = (float*)evo__take(arena, num_inputs * TUNE__NUM_ACTIVE, sizeof(float));
    if (search->active_values == NULL) return TUNE_ERROR_INSUFFICIENT_MEMORY;
    memcpy(search->active_inputs, run->inputs, (num_inputs + run->num_parameters) * sizeof *run->inputs);
    for (size_t i = 0; i < num_inputs; i++)
        if (!run->inputs[i].is_uniform && run->inputs[i].values != NULL)
            search->active_inputs[i].values = &search->active_values[i * TUNE__NUM_ACTIVE];
    return TUNE_SUCCESS;
}

/* Improves the constants, which were `first` and are fitted by least squares. */
static TuneResult tune__least_worst(
    const TuneRun* run, const StackPtxLowered* derived, const float* first, float* constants, EvoArena* arena,
    TuneOutcome* outcome
) {
    const uint32_t n = run->num_parameters;
    double units[TUNE_MAX_PARAMETERS] = {0.0};
    TuneSearch search;
    memset(&search, 0, sizeof search);
    const TuneResult result = tune__prepare_search(run, derived, arena, &search);
    if (result != TUNE_SUCCESS) return result;
    const TuneWorstError before = tune__all_errors(&search, first, outcome);
    TuneWorstError error = tune__all_errors(&search, constants, outcome);
    if (!tune__is_less(error, before)) {
        error = before;
        memcpy(constants, first, n * sizeof *constants);
    }
    outcome->error_before = before.rounded;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t bits;
        memcpy(&bits, &constants[k], sizeof bits);
        search.random = (search.random ^ bits) * 0x100000001b3u;
    }
    if (error.rounded <= 1.7976931348623157e308 && error.plain > 0.0) {
        error = tune__exchanges(&search, error, constants, units, outcome);
        if (error.rounded > 0.0 && error.rounded <= 1.7976931348623157e308)
            error = tune__last_bits(&search, error, units, constants, outcome);
    }
    if (!tune__is_less(error, before)) {
        error = before;
        memcpy(constants, first, n * sizeof *constants);
    }
    outcome->error_after = error.rounded;
    return TUNE_SUCCESS;
}

#endif /* TUNE_WORST_H_INCLUDED */
