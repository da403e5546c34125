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

/* ---- constants of the exchange ---- */
#define TUNE__NUM_STEPS 6u    /* exchanges, each about the constants of the one before; polynomials take one or two */
#define TUNE__NUM_CUTS 6u     /* times that a step which makes the error larger is cut to a quarter */
#define TUNE__NUM_ROUNDS 12u  /* linear programs of an exchange, each with the peaks that the last one left; about four serve */
#define TUNE__NUM_PIVOTS 12u  /* exchanges of a constraint, for each unknown of a linear program; it takes three or four */
#define TUNE__NUM_NODES 512u  /* the most points that a linear program chooses between */
#define TUNE__NODES_OF_ROW 4u /* points, for each unknown, that it begins with, spread evenly */
#define TUNE__FIRST_BOX                                                                                            \
    1e5   /* how far constants may move in the first step, in units of the error: monomials cancel by that much */
#define TUNE__LEAST_FALL 1e-3 /* of the error, relative: an exchange that promises less is not worth a step */
#define TUNE__LEAST_GAIN_LEFT                                                                              \
    4e-3 /* of the error after a step, over what the exchange promised: above it, there is another step */
#define TUNE__LEAST_ALONG 1e-12 /* of a pivot: smaller ones are rounding */
#define TUNE__TILT 1e-9  /* weight of small steps in what is minimised: without it exchanges of equal error can go in circles */
#define TUNE__SLACK 1e-9 /* by which rounding may let a point exceed the error of a linear program, relative */
/* A result that a processor flushes to zero has no error where the target is below the least normal number, `flushed`. Whether one
   just above is flushed depends on the constants' last bits, so exchanges ignore zeros up to this many times `flushed`. */
#define TUNE__MAY_FLUSH 2.0

/* ---- constants of the last bits ---- */
#define TUNE__NUM_ACTIVE 256u /* points of the largest errors, which refuse most moves at the cost of a few points */
#define TUNE__NUM_BINS 512u /* of errors, by which these points are found without sorting */
#define TUNE__FIRST_SLACK 0.1 /* by which a move may make the least error so far larger at first, relative; it falls to 0 */

/* An error as it counts: rounded as results are, and, where that is equal, before. */
typedef struct TuneWorstError {
    double rounded, plain;
} TuneWorstError;

static bool tune__is_less(TuneWorstError a, TuneWorstError b) {
    return a.rounded < b.rounded || (a.rounded == b.rounded && a.plain < b.plain);
}

/* A constraint: `row` times the unknowns is at least `bound`. The last unknown is the error. */
typedef struct TuneConstraint {
    double row[TUNE__MAX_ROWS];
    double bound;
} TuneConstraint;

/* The search of one program. */
typedef struct TuneSearch {
    const TuneRun* run;
    TuneMachine y, derived; /* the result alone; with its derivatives */
    void* outputs[TUNE__MAX_ROWS]; /* y at all points, and its derivative by each constant at the problem's */
    double* errors; /* of all points, as they count */
    double* distances; /* target less result, times scale, at the problem's points */
    double* slopes[TUNE_MAX_PARAMETERS]; /* derivatives by each constant, times scale */
    double units[TUNE_MAX_PARAMETERS]; /* a constant that moves by its unit moves a result by an error of one at most */
    TuneConstraint* nodes; /* points that a linear program chooses between: one of their two constraints, without the error */
    uint32_t num_nodes;
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

static double tune__finite_or_infinity(double error) { return tune__is_finite(error) ? error : (double)INFINITY; }

static TuneWorstError tune__error(const TuneSearch* search, float result, size_t point) {
    const TuneWorst* worst = search->run->problem->worst;
    const double y = result, target = worst->targets[point], scale = worst->scales[point];
    TuneWorstError error = {0.0, 0.0};
    if (y == 0.0 && fabs(target) < search->flushed) return error;
    error.plain = tune__finite_or_infinity(fabs(y - target) * scale);
    error.rounded = error.plain;
    if (worst->num_digits < 24) error.rounded = tune__finite_or_infinity(fabs(tune__rounded(worst, y) - target) * scale);
    return error;
}

static void tune__raise(TuneWorstError* worst, TuneWorstError error) {
    if (error.rounded > worst->rounded) worst->rounded = error.rounded;
    if (error.plain > worst->plain) worst->plain = error.plain;
}

/* The largest error over all points. Leaves each point's behind. */
static TuneWorstError tune__all_errors(TuneSearch* search, const float* constants) {
    const TuneRun* run = search->run;
    const float* y = (const float*)search->outputs[0];
    TuneWorstError largest = {0.0, 0.0};
    (void)tune__store(run, &search->y, run->inputs, run->problem->worst->num_points, constants, search->outputs);
    run->outcome->num_evaluations++;
    for (size_t i = 0; i < run->problem->worst->num_points; i++) {
        const TuneWorstError error = tune__error(search, y[i], i);
        search->errors[i] = error.rounded;
        tune__raise(&largest, error);
    }
    return largest;
}

/* ---- exchange ---------------------------------------------------------------------------------------------------- */

/* Constraints' left sides as factors L and U of their rows in another order. Those of singular ones are of no use, which the
   caller's comparisons refuse. */
typedef struct TuneFactorRow {
    double row[TUNE__MAX_ROWS];
    uint32_t number; /* of the constraint */
} TuneFactorRow;

static void tune__factorise(const TuneConstraint* rows, uint32_t n, TuneFactorRow* factors) {
    for (uint32_t i = 0; i < n; i++) {
        factors[i].number = i;
        memcpy(factors[i].row, rows[i].row, n * sizeof(double));
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t pivot = k;
        for (uint32_t i = k + 1; i < n; i++)
            if (fabs(factors[i].row[k]) > fabs(factors[pivot].row[k])) pivot = i;
        const TuneFactorRow kept = factors[k];
        factors[k] = factors[pivot];
        factors[pivot] = kept;
        for (uint32_t i = k + 1; i < n; i++) {
            const double factor = factors[i].row[k] /= factors[k].row[k];
            if (factor == 0.0) continue; /* most rows are walls at first */
            for (uint32_t j = k + 1; j < n; j++) factors[i].row[j] -= factor * factors[k].row[j];
        }
    }
}

static void tune__solve_rows(const TuneFactorRow* factors, uint32_t n, const double* right, double* solution) {
    for (uint32_t i = 0; i < n; i++) {
        solution[i] = right[factors[i].number];
        for (uint32_t j = 0; j < i; j++) solution[i] -= factors[i].row[j] * solution[j];
    }
    for (uint32_t i = n; i-- > 0;) {
        for (uint32_t j = i + 1; j < n; j++) solution[i] -= factors[i].row[j] * solution[j];
        solution[i] /= factors[i].row[i];
    }
}

/* The same for the system of the columns. */
static void tune__solve_columns(const TuneFactorRow* factors, uint32_t n, const double* right, double* solution) {
    double middle[TUNE__MAX_ROWS];
    memcpy(middle, right, n * sizeof *middle);
    for (uint32_t i = 0; i < n; i++) {
        middle[i] /= factors[i].row[i];
        for (uint32_t j = i + 1; j < n; j++) middle[j] -= factors[i].row[j] * middle[i];
    }
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t j = 0; j < i; j++) middle[j] -= factors[i].row[j] * middle[i];
    for (uint32_t i = 0; i < n; i++) solution[factors[i].number] = middle[i];
}

static void tune__add_node(TuneSearch* search, size_t point) {
    if (search->num_nodes == TUNE__NUM_NODES) return;
    TuneConstraint* node = &search->nodes[search->num_nodes++];
    for (uint32_t k = 0; k < search->run->num_parameters; k++) node->row[k] = search->units[k] * search->slopes[k][point];
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
static bool tune__most_broken(const TuneSearch* search, double box, const double* unknowns, TuneConstraint* broken) {
    const uint32_t n = search->run->num_parameters;
    double violation = TUNE__SLACK * fabs(unknowns[n]);
    bool is_broken = false;
    for (uint32_t i = 0; i < search->num_nodes; i++) {
        double distance = search->nodes[i].bound;
        for (uint32_t k = 0; k < n; k++) distance -= search->nodes[i].row[k] * unknowns[k];
        if (!(fabs(distance) - unknowns[n] > violation)) continue;
        violation = fabs(distance) - unknowns[n];
        *broken = tune__signed(&search->nodes[i], n, distance < 0.0 ? -1.0 : 1.0);
        is_broken = true;
    }
    for (uint32_t k = 0; k < n; k++) {
        if (!(fabs(unknowns[k]) - box > violation)) continue;
        violation = fabs(unknowns[k]) - box;
        *broken = tune__wall(n, k, unknowns[k] > 0.0 ? -1.0 : 1.0, box);
        is_broken = true;
    }
    return is_broken;
}

/* Exchanges constraints of the basis until none is broken. */
static void tune__pivot(const TuneSearch* search, double box, const double* gradient, TuneConstraint* basis, double* unknowns) {
    const uint32_t n = search->run->num_parameters;
    double bounds[TUNE__MAX_ROWS], multipliers[TUNE__MAX_ROWS], along[TUNE__MAX_ROWS];
    TuneConstraint entering;
    TuneFactorRow factors[TUNE__MAX_ROWS];
    for (uint32_t pivot = 0;; pivot++) {
        for (uint32_t k = 0; k <= n; k++) bounds[k] = basis[k].bound;
        tune__factorise(basis, n + 1, factors);
        tune__solve_rows(factors, n + 1, bounds, unknowns);
        if (pivot == TUNE__NUM_PIVOTS * (n + 1) || !tune__most_broken(search, box, unknowns, &entering)) return;
        tune__solve_columns(factors, n + 1, gradient, multipliers);
        tune__solve_columns(factors, n + 1, entering.row, along);
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
static bool tune__add_peaks(TuneSearch* search, const double* step, double error) {
    const size_t num_points = search->run->problem->num_points;
    double *left = search->errors, peak = 0.0;
    size_t where = 0;
    const uint32_t count = search->num_nodes;
    memcpy(left, search->distances, num_points * sizeof *left);
    for (uint32_t k = 0; k < search->run->num_parameters; k++)
        for (size_t i = 0; i < num_points; i++) left[i] -= step[k] * search->slopes[k][i];
    for (size_t i = 0; i <= num_points; i++) {
        if (i == num_points || peak * left[i] < 0.0) { /* a run ends */
            if (fabs(peak) > error) tune__add_node(search, where);
            peak = 0.0;
        }
        if (i == num_points || !(fabs(left[i]) > fabs(peak))) continue;
        peak = left[i];
        where = i;
    }
    return search->num_nodes > count;
}

/* The step, at most `box` in units, whose linear model has the least largest error, which is returned. */
static double tune__exchange(TuneSearch* search, double box, double* step) {
    const uint32_t n = search->run->num_parameters;
    const size_t last = search->run->problem->num_points - 1;
    TuneConstraint basis[TUNE__MAX_ROWS];
    double gradient[TUNE__MAX_ROWS], unknowns[TUNE__MAX_ROWS];
    size_t first = 0;
    for (size_t i = 1; i <= last; i++)
        if (fabs(search->distances[i]) > fabs(search->distances[first])) first = i;
    search->num_nodes = 0;
    tune__add_node(search, first);
    for (uint32_t k = 0; k <= TUNE__NODES_OF_ROW * n; k++) tune__add_node(search, last * k / (TUNE__NODES_OF_ROW * n));
    basis[n] = tune__signed(&search->nodes[0], n, search->distances[first] < 0.0 ? -1.0 : 1.0);
    for (uint32_t k = 0; k < n; k++) {
        const double turns = 0.61803398874989485 * (k + 1);
        gradient[k] = TUNE__TILT * (1.0 + turns - floor(turns));
        basis[k] = tune__wall(n, k, basis[n].row[k] > gradient[k] ? -1.0 : 1.0, box);
    }
    gradient[n] = 1.0;
    for (uint32_t round = 0; round < TUNE__NUM_ROUNDS; round++) {
        tune__pivot(search, box, gradient, basis, unknowns);
        for (uint32_t k = 0; k < n; k++) step[k] = unknowns[k] * search->units[k];
        if (!tune__add_peaks(search, step, unknowns[n] * (1.0 + TUNE__LEAST_FALL))) break;
    }
    return unknowns[n];
}

/* Runs the derived program at the problem's points. False if a result is not finite. */
static bool tune__linearise(TuneSearch* search, const float* constants) {
    const TuneRun* run = search->run;
    const TuneWorst* worst = run->problem->worst;
    const float* y = (const float*)search->outputs[0];
    (void)tune__store(run, &search->derived, run->inputs, run->problem->num_points, constants, search->outputs);
    run->outcome->num_evaluations++;
    for (size_t i = 0; i < run->problem->num_points; i++) {
        if (!(y[i] - y[i] == 0.0f)) return false;
        const bool is_flushed = y[i] == 0.0f && fabs(worst->targets[i]) < search->flushed;
        search->distances[i] = is_flushed ? 0.0 : (worst->targets[i] - (double)y[i]) * worst->scales[i];
    }
    for (uint32_t k = 0; k < run->num_parameters; k++) {
        const float* slopes = (const float*)search->outputs[1 + k];
        double largest = 0.0;
        for (size_t i = 0; i < run->problem->num_points; i++) {
            const double slope = slopes[i] - slopes[i] == 0.0f ? slopes[i] * worst->scales[i] : 0.0;
            search->slopes[k][i] = slope;
            if (fabs(slope) > largest) largest = fabs(slope);
        }
        search->units[k] = largest > 0.0 ? 1.0 / largest : 0.0;
    }
    return true;
}

/* Improves the constants in place by exchanges. */
static TuneWorstError tune__exchanges(TuneSearch* search, TuneWorstError error, float* constants) {
    const uint32_t n = search->run->num_parameters;
    double step[TUNE__MAX_ROWS], part[TUNE__MAX_ROWS], box = TUNE__FIRST_BOX * error.plain;
    float moved[TUNE_MAX_PARAMETERS];
    search->flushed *= TUNE__MAY_FLUSH;
    error = tune__all_errors(search, constants);
    for (uint32_t i = 0; i < TUNE__NUM_STEPS && tune__linearise(search, constants); i++) {
        const double promised = tune__exchange(search, box, step);
        if (!(promised < (1.0 - TUNE__LEAST_FALL) * error.plain)) break;
        double cut = 1.0, reach = 0.0;
        bool is_better = false;
        for (uint32_t k = 0; k < n; k++)
            if (search->units[k] > 0.0 && fabs(step[k]) / search->units[k] > reach) reach = fabs(step[k]) / search->units[k];
        for (uint32_t number = 0; number < TUNE__NUM_CUTS && !is_better; number++, cut /= 4.0) {
            for (uint32_t k = 0; k < n; k++) part[k] = cut * step[k];
            if (!tune__move(n, part, constants, moved)) break;
            const TuneWorstError trial = tune__all_errors(search, moved);
            is_better = trial.plain < error.plain;
            if (!is_better) continue;
            error = trial;
            memcpy(constants, moved, n * sizeof *constants);
        }
        if (!is_better || error.plain < (1.0 + TUNE__LEAST_GAIN_LEFT) * promised) break;
        if (cut < 0.25) box = 4.0 * cut * reach;
    }
    search->flushed = search->run->problem->worst->flushed;
    return tune__all_errors(search, constants);
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
    const float* y = (const float*)search->outputs[0];
    TuneWorstError largest = {0.0, 0.0};
    (void)tune__store(search->run, &search->y, search->active_inputs, search->num_active, constants, search->outputs);
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

static TuneWorstError tune__last_bits(TuneSearch* search, TuneWorstError error, float* constants) {
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
            bar = error = tune__all_errors(search, constants);
            tune__choose_active(search, error.rounded);
        }
        const uint32_t num_moved = 1 + tune__draw(search, 3);
        memcpy(moved, constants, n * sizeof *constants);
        for (uint32_t k = 0; k < num_moved; k++) {
            const uint32_t which = tune__draw(search, n);
            const uint32_t num_digits = search->run->num_digits[which];
            const uint32_t bits =
                tune__draw(search, 1 + tune__reach(constants[which], num_digits, search->units[which], error.plain));
            moved[which] = tune__nudged(moved[which], num_digits, (tune__draw(search, 2) ? 1 : -1) * (int32_t)(1u << bits));
        }
        if (memcmp(moved, constants, n * sizeof *constants) == 0 || !tune__passes_active(search, moved, bar)) continue;
        const TuneWorstError trial = tune__all_errors(search, moved);
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

static TuneResult tune__prepare_search(const TuneRun* run, const StackPtxLowered* derived, EvoArena* arena, TuneSearch* search) {
    const TuneProblem* problem = run->problem;
    const size_t num_points = problem->num_points, num_all = problem->worst->num_points;
    const size_t num_inputs = problem->num_inputs + run->num_parameters;
    StackPtxLowered plain = *derived; /* whose nodes come first, with that of y as the last */
    plain.num_nodes = plain.value_nodes[plain.request_values[0]] + 1;
    plain.num_requests = 1;
    TuneResult result = tune__prepare(problem, PTX_VM_RUN_STORE, &plain, arena, &search->y);
    if (result == TUNE_SUCCESS) result = tune__prepare(problem, PTX_VM_RUN_STORE, derived, arena, &search->derived);
    if (result != TUNE_SUCCESS) return result;
    for (uint32_t k = 0; k <= run->num_parameters; k++)
        search->outputs[k] = evo__take(arena, k == 0 ? num_all : num_points, sizeof(float));
    search->errors = (double*)evo__take(arena, num_all, sizeof(double));
    search->distances = (double*)evo__take(arena, num_points, sizeof(double));
    for (uint32_t k = 0; k < run->num_parameters; k++) search->slopes[k] = (double*)evo__take(arena, num_points, sizeof(double));
    search->nodes = (TuneConstraint*)evo__take(arena, TUNE__NUM_NODES, sizeof(TuneConstraint));
    search->active = (uint32_t*)evo__take(arena, TUNE__NUM_ACTIVE, sizeof(uint32_t));
    search->active_inputs = (PtxVmInput*)evo__take(arena, num_inputs, sizeof(PtxVmInput));
    search->active_values = (float*)evo__take(arena, problem->num_inputs * TUNE__NUM_ACTIVE, sizeof(float));
    if (search->active_values == NULL) return TUNE_ERROR_INSUFFICIENT_MEMORY;
    memcpy(search->active_inputs, run->inputs, num_inputs * sizeof *run->inputs);
    for (size_t i = 0; i < problem->num_inputs; i++)
        if (!run->inputs[i].is_uniform && run->inputs[i].values != NULL)
            search->active_inputs[i].values = &search->active_values[i * TUNE__NUM_ACTIVE];
    return TUNE_SUCCESS;
}

/* Improves the constants, which were `first` and are fitted by least squares. */
static TuneResult tune__least_worst(
    const TuneRun* run, const StackPtxLowered* derived, const float* first, float* constants, EvoArena* arena
) {
    const size_t num_bytes = run->num_parameters * sizeof *constants;
    TuneSearch search;
    memset(&search, 0, sizeof search);
    search.run = run;
    search.flushed = run->problem->worst->flushed;
    const TuneResult result = tune__prepare_search(run, derived, arena, &search);
    if (result != TUNE_SUCCESS) return result;
    const TuneWorstError before = tune__all_errors(&search, first);
    TuneWorstError error = tune__all_errors(&search, constants);
    if (!tune__is_less(error, before)) {
        error = before;
        memcpy(constants, first, num_bytes);
    }
    for (uint32_t k = 0; k < run->num_parameters; k++) {
        uint32_t bits;
        memcpy(&bits, &constants[k], sizeof bits);
        search.random = (search.random ^ bits) * 0x100000001b3u;
    }
    if (tune__is_finite(error.rounded) && error.plain > 0.0) {
        error = tune__exchanges(&search, error, constants);
        if (error.rounded > 0.0 && tune__is_finite(error.rounded)) error = tune__last_bits(&search, error, constants);
    }
    if (!tune__is_less(error, before)) {
        error = before;
        memcpy(constants, first, num_bytes);
    }
    run->outcome->error_before = before.rounded;
    run->outcome->error_after = error.rounded;
    return TUNE_SUCCESS;
}

#endif /* TUNE_WORST_H_INCLUDED */
