/* Included by tune.h: losses of one's own in the place of squared errors. Each step minimises the parabola that touches the loss at each
   point: with its second derivative, or, for a loss of errors, as wide as reaches the least loss where the error is zero (iteratively
   reweighted least squares, which goes down wherever the loss grows more slowly than squares). */

#define TUNE__LOSS_LANES 4u
typedef double TuneLanes __attribute__((vector_size(32)));
typedef int64_t TuneMask __attribute__((vector_size(32)));
typedef float TuneFloats __attribute__((vector_size(16), aligned(4)));
#define TUNE__MOST_CURVATURE 1e30f
#define TUNE__CLOSER                                                                                                  \
    0.5f /* from iteration to iteration: a point on a kink would hold a fit back, were it told from its neighbours */
#define TUNE__FIRST_SCALINGS 5u /* iterations for offset and scale alone, before constants move too */

enum {
    TUNE__LOSS_SUM,
    TUNE__SLOPES,
    TUNE__SLOPES_Y,
    TUNE__CURVATURES,
    TUNE__CURVATURES_Y,
    TUNE__CURVATURES_YY,
    TUNE__NUM_LOSS_SUMS
};

/* Results of a loss at each point. Parameters are offset and scale, and then constants. */
typedef struct TuneLossRun {
    const TuneLoss* loss;
    uint32_t num_constants; /* that move */
    float least_error;
    float* y; /* less its value at the first point */
    float* derivatives[TUNE_MAX_PARAMETERS]; /* of y by each constant */
    float *predictions, *losses, *slopes, *curvatures;
    double* products; /* of a derivative with slopes or curvatures */
    void* workspace;
    size_t workspace_bytes;
} TuneLossRun;

static double tune__add_lanes(const TuneLanes* lanes) { return ((*lanes)[0] + (*lanes)[1]) + ((*lanes)[2] + (*lanes)[3]); }

#define tune__lanes(values) __builtin_convertvector(*(const TuneFloats*)(values), TuneLanes)

/* The sum over points of products, times a column if there is one. A derivative that is not finite counts as zero. */
static double tune__dot(const float* column, const double* products, size_t num_points) {
    TuneLanes lanes = {0.0};
    for (size_t i = 0; i < num_points; i += TUNE__LOSS_LANES) {
        TuneLanes product;
        memcpy(&product, products + i, sizeof product);
        if (column != NULL) product *= tune__lanes(column + i);
        lanes += (TuneLanes)((product - product == 0.0) & (TuneMask)product);
    }
    return tune__add_lanes(&lanes);
}

/* Losses with their derivatives at offset + scale y. */
static bool tune__store_losses(const TuneLossRun* run, float offset, float scale) {
    const TuneLoss* loss = run->loss;
    for (size_t i = 0; i < loss->num_points; i++) run->predictions[i] = offset + scale * run->y[i];
    const PtxVmInput inputs[3] = {{run->predictions, false}, {loss->target, false}, {loss->weights, false}};
    void* const outputs[3] = {run->losses, run->slopes, run->curvatures};
    return ptx_vm_store(loss->program, inputs, 3, loss->num_points, outputs, run->workspace, run->workspace_bytes) ==
        PTX_VM_SUCCESS;
}

/* The same with curvatures. */
static bool tune__losses(TuneLossRun* run, float offset, float scale) {
    const TuneLoss* loss = run->loss;
    if (!tune__store_losses(run, offset, scale)) return false;
    for (size_t i = 0; i < loss->num_points && loss->is_of_errors; i++) {
        const float error = fabsf(run->predictions[i] - loss->target[i]);
        run->curvatures[i] = fabsf(run->slopes[i]) / (error > run->least_error ? error : run->least_error);
    }
    run->least_error *= TUNE__CLOSER;
    if (!(run->least_error > loss->least_error)) run->least_error = loss->least_error;
    for (size_t i = 0; i < loss->num_points; i++) {
        const float positive = run->curvatures[i] > 0.0f ? run->curvatures[i] : 0.0f;
        run->curvatures[i] = positive < TUNE__MOST_CURVATURE ? positive : TUNE__MOST_CURVATURE;
    }
    return true;
}

static void tune__add_losses(const TuneLossRun* run, double* sums) {
    TuneLanes lanes[TUNE__NUM_LOSS_SUMS] = {{0.0}};
    for (size_t i = 0; i < run->loss->num_points; i += TUNE__LOSS_LANES) { /* arrays are filled up with zeros */
        const TuneLanes y = tune__lanes(run->y + i), slope = tune__lanes(run->slopes + i);
        const TuneLanes curvature = tune__lanes(run->curvatures + i), product = curvature * y;
        lanes[TUNE__LOSS_SUM] += tune__lanes(run->losses + i);
        lanes[TUNE__SLOPES] += slope;
        lanes[TUNE__SLOPES_Y] += slope * y;
        lanes[TUNE__CURVATURES] += curvature;
        lanes[TUNE__CURVATURES_Y] += product;
        lanes[TUNE__CURVATURES_YY] += product * y;
    }
    for (uint32_t i = 0; i < TUNE__NUM_LOSS_SUMS; i++) sums[i] = tune__add_lanes(&lanes[i]);
}

/* The sum of losses and its model in offset, scale and constants. False if the loss is refused. */
static bool tune__loss_model(TuneLossRun* run, float offset, float scale, TuneModel* model) {
    double sums[TUNE__NUM_LOSS_SUMS];
    model->weight = 1.0;
    model->num_parameters = 2 + run->num_constants;
    if (!tune__losses(run, offset, scale)) return false;
    tune__add_losses(run, sums);
    const size_t num_points = run->loss->num_points;
    model->error = sums[TUNE__LOSS_SUM];
    model->gradient[0] = -0.5 * sums[TUNE__SLOPES];
    model->gradient[1] = -0.5 * sums[TUNE__SLOPES_Y];
    model->matrix[0][0] = 0.5 * sums[TUNE__CURVATURES];
    model->matrix[0][1] = model->matrix[1][0] = 0.5 * sums[TUNE__CURVATURES_Y];
    model->matrix[1][1] = 0.5 * sums[TUNE__CURVATURES_YY];
    const double half = 0.5 * (double)scale;
    for (uint32_t k = 0; k < run->num_constants; k++) {
        const float* column = run->derivatives[k];
        double* row = model->matrix[2 + k];
        for (size_t i = 0; i < num_points; i++) run->products[i] = (double)column[i] * (double)run->slopes[i];
        model->gradient[2 + k] = -half * tune__dot(NULL, run->products, num_points);
        for (size_t i = 0; i < num_points; i++) run->products[i] = (double)column[i] * (double)run->curvatures[i];
        row[0] = half * tune__dot(NULL, run->products, num_points);
        row[1] = half * tune__dot(run->y, run->products, num_points);
        for (uint32_t j = 0; j <= k; j++)
            row[2 + j] = (double)scale * half * tune__dot(run->derivatives[j], run->products, num_points);
        for (uint32_t j = 0; j < 2 + k; j++) model->matrix[j][2 + k] = row[j];
    }
    return true;
}

static float* tune__take_points(EvoArena* arena, size_t num_points) {
    float* points = (float*)evo__take(arena, num_points + TUNE__LOSS_LANES, sizeof(float));
    if (points != NULL) memset(points + num_points, 0, TUNE__LOSS_LANES * sizeof(float));
    return points;
}

/* False: not enough memory. */
static bool tune__take_loss_run(const TuneLoss* loss, uint32_t num_constants, EvoArena* arena, TuneLossRun* run) {
    const size_t num_points = loss->num_points;
    run->loss = loss;
    run->least_error = loss->first_error;
    float** const arrays[] = {&run->y, &run->predictions, &run->losses, &run->slopes, &run->curvatures};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) *arrays[i] = tune__take_points(arena, num_points);
    for (uint32_t k = 0; k < num_constants; k++) run->derivatives[k] = tune__take_points(arena, num_points);
    run->products = (double*)evo__take(arena, num_points + TUNE__LOSS_LANES, sizeof(double));
    ptx_vm_workspace_size(loss->program, &run->workspace_bytes);
    run->workspace = evo__take(arena, run->workspace_bytes, 1);
    if (run->workspace == NULL) return false;
    memset(run->products + num_points, 0, TUNE__LOSS_LANES * sizeof(double));
    return true;
}

/* Outputs less the first; points: those of a sample, or NULL. */
static void tune__centre(const float* output, const uint32_t* points, const TuneLossRun* run) {
    const float first = output[0];
    for (size_t i = 0; i < run->loss->num_points; i++) run->y[i] = output[points == NULL ? i : points[i]] - first;
}

/* Statistics of y at the points, without a scaling. */
static void tune__summarize(const TuneLossRun* run, float first, TuneScaling* scaling) {
    TuneLanes sums = {0.0}, squares = {0.0};
    for (size_t i = 0; i < run->loss->num_points; i += TUNE__LOSS_LANES) {
        const TuneLanes y = tune__lanes(run->y + i);
        sums += y;
        squares += y * y;
    }
    scaling->num_points = run->loss->num_points;
    scaling->reference = (double)first;
    scaling->sum_y = tune__add_lanes(&sums);
    scaling->sum_yy = tune__add_lanes(&squares);
}

/* The sum of losses alone. False if the loss is refused. */
static bool tune__sum_losses(const TuneLossRun* run, float offset, float scale, double* sum) {
    TuneLanes sums = {0.0};
    if (!tune__store_losses(run, offset, scale)) return false;
    for (size_t i = 0; i < run->loss->num_points; i += TUNE__LOSS_LANES) sums += tune__lanes(run->losses + i);
    *sum = tune__add_lanes(&sums);
    return true;
}
