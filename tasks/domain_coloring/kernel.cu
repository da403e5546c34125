// Sums over pictures on the GPU: a block colours the picture of one program and writes what `score_sums` of task.py takes.
//
// Does what csrc/detail/picture_kernels.h of evo does, in the same order, so that all sums have the bits that they have on the CPU.
// Constants are those of that file. cuda.py makes macros of sizes, tables and columns.
#include "evo.cuh"

#include "coloring.cuh"
#include "spectrum.cuh"

constexpr int BLOCK = 4, REGION = 2, NUM_LUMINANCE_LEVELS = 32;
constexpr float EDGE_ENERGY = (float)((5.0 / SIZE) * (5.0 / SIZE)), ALONG = 0.17157288f;
constexpr double TINY = 1e-12;
constexpr int NUM_WARPS = EVO_BLOCK_SIZE / 32;
constexpr int NUM_SEGMENTS = EVO_BLOCK_SIZE / SIZE; // threads that share a column, one below the other
constexpr int SEGMENT = SIZE / NUM_SEGMENTS; // pixels of a thread
constexpr int SIDE = SIZE / BLOCK; // blocks along a side
constexpr int REGIONS = SIDE / REGION; // regions along a side
constexpr int NUM_BLOCK_SUMS = SUM_FOURFOLD_IMAGINARY - SUM_EDGES + 1;
constexpr int LINES = 16; // partial sums that a sum over all threads is made of

static_assert(SIZE % 32 == 0 && 2 * SIZE <= EVO_BLOCK_SIZE && SIDE * SIDE <= EVO_BLOCK_SIZE, "each block has its thread");
static_assert(NUM_LUMINANCE_LEVELS == 32, "each lane of a warp counts one level");
static_assert(NUM_BLOCK_SUMS == 8 && NUM_RESULTS == EVO_NUM_RESULTS, "the columns of the sums");

static __device__ const float taper[SIZE] = {TAPER};

template <typename T> static __device__ double sum_in_order(const T* values, int count, int stride = 1) {
    double sum = 0.0;
#pragma unroll 4
    for (int i = 0; i < count; ++i) sum += (double)values[i * stride];
    return sum;
}

// Adds up values(k) of the pixels of each column from top to bottom, k of each thread, in float32 as on the CPU.
template <int N, typename Values>
static __device__ void sum_columns(float (&columns)[4][SIZE], int column, int segment, Values values) {
#pragma unroll 1
    for (int turn = 0; turn < NUM_SEGMENTS; ++turn) {
        if (turn == segment) {
            float sums[N], pixel[N];
            for (int q = 0; q < N; ++q) sums[q] = turn > 0 ? columns[q][column] : 0.0f;
#pragma unroll 1
            for (int k = 0; k < SEGMENT; ++k) {
                values(k, pixel);
                for (int q = 0; q < N; ++q) sums[q] += pixel[q];
            }
            for (int q = 0; q < N; ++q) columns[q][column] = sums[q];
        }
        __syncthreads();
    }
}

struct Gradient {
    float across, down, energy;
};

// Over 2 x 2 pixels, `upper` above `lower`.
static __device__ __forceinline__ Gradient gradient_of(const float* upper, const float* lower) {
    const float falling = lower[1] - upper[0];
    const float rising = upper[1] - lower[0];
    const float across = (falling + rising) * 0.5f;
    const float down = (rising - falling) * 0.5f;
    return {across, down, across * across + down * down};
}

// The number of edges along a row or column of pixels. Neighbouring threads read different banks: each row begins elsewhere.
static __device__ int count_along(const float* luminance, int line, bool is_row) {
    int count = 0;
#pragma unroll 1
    for (int i = 0; i < SIZE; ++i) {
        const int other = (i + line) % SIZE;
        if (line == SIZE - 1 || other == SIZE - 1) continue;
        const float* upper = luminance + (is_row ? line * SIZE + other : other * SIZE + line);
        const Gradient gradient = gradient_of(upper, upper + SIZE);
        const float along = is_row ? gradient.down : gradient.across, turned = is_row ? gradient.across : gradient.down;
        count += gradient.energy > EDGE_ENERGY && turned * turned < ALONG * along * along;
    }
    return count;
}

// What `summarize` adds up of a block of BLOCK x BLOCK pixels, from SUM_EDGES on.
static __device__ void sum_block(const float* luminance, int first_row, int first_column, double (&sums)[NUM_BLOCK_SUMS]) {
    float energies[BLOCK] = {}, reals[BLOCK] = {}, imaginaries[BLOCK] = {};
    int edges = 0;
#pragma unroll 1
    for (int row = first_row; row < min(first_row + BLOCK, SIZE - 1); ++row) {
        const float* upper = luminance + row * SIZE + first_column;
        const float* lower = upper + SIZE;
#pragma unroll
        for (int i = 0; i < BLOCK; ++i) {
            if (first_column + i == SIZE - 1) continue;
            const Gradient gradient = gradient_of(upper + i, lower + i);
            const float product = gradient.across * gradient.down;
            edges += gradient.energy > EDGE_ENERGY;
            energies[i] += gradient.energy;
            reals[i] += gradient.across * gradient.across - gradient.down * gradient.down;
            imaginaries[i] += product + product;
        }
    }
    const double energy = (energies[0] + energies[1]) + (energies[2] + energies[3]);
    const double real = (reals[0] + reals[1]) + (reals[2] + reals[3]);
    const double imaginary = (imaginaries[0] + imaginaries[1]) + (imaginaries[2] + imaginaries[3]);
    const double oriented = sqrt(real * real + imaginary * imaginary);
    const double amplitude = sqrt(energy);
    const double weight = amplitude / (energy + TINY);
    const double fourfold = weight / (oriented + TINY);
    sums[0] = edges;
    sums[1] = energy;
    sums[2] = oriented;
    sums[3] = amplitude;
    sums[4] = weight * real;
    sums[5] = weight * imaginary;
    sums[6] = fourfold * (real * real - imaginary * imaginary);
    sums[7] = fourfold * 2.0 * real * imaginary;
}

extern "C" __global__ void evaluate(EvoPoints points, const int* num_instructions, double* results) {
    __shared__ __align__(16) float picture[SIZE * SIZE];
    __shared__ union {
        float columns[4][SIZE];
        double blocks[NUM_BLOCK_SUMS][SIDE * SIDE];
        float bands[NUM_BANDS][SIZE];
    } scratch;
    __shared__ double lines[NUM_BLOCK_SUMS][LINES], regions[2][REGIONS * REGIONS];
    __shared__ int levels[NUM_WARPS][32], num_finite[NUM_WARPS], along[2 * SIZE];
    __shared__ float means[3];
    const int thread = threadIdx.x, lane = thread % 32, column = thread % SIZE, segment = thread / SIZE;
    const int first_pixel = segment * SEGMENT * SIZE + column;
    results += EVO_NUM_RESULTS * blockIdx.y;

    // Colours: luminance, and the opponent colours, red against green and yellow against blue.
    float a[SEGMENT], b[SEGMENT];
    int num_in_level = 0, num_finite_in_warp = 0;
#pragma unroll 1
    for (int k = 0; k < SEGMENT; ++k) {
        const unsigned int i = first_pixel + k * SIZE;
        float f, g;
        evo_program(blockIdx.y, points.t(i), points.x(i), points.y(i), f, g);
        const Rgb rgb = color(f, g);
        const float luminance = rgb.red * 0.299f + rgb.green * 0.587f + rgb.blue * 0.114f;
        picture[i] = luminance;
        a[k] = rgb.red - rgb.green;
        b[k] = (rgb.red + rgb.green) * 0.5f - rgb.blue;
        num_finite_in_warp += __popc(__ballot_sync(~0u, (f - f) + (g - g) == 0.0f));
        // Each lane counts the pixels of its warp whose level is the lane's number: all five bits are equal.
        const int level = (int)(luminance * 31.999968f);
        unsigned int is_in_level = ~0u;
#pragma unroll
        for (int bit = 1; bit < 32; bit *= 2) is_in_level &= __ballot_sync(~0u, level & bit) ^ (lane & bit ? 0u : ~0u);
        num_in_level += __popc(is_in_level);
    }
    levels[thread / 32][lane] = num_in_level;
    if (lane == 0) num_finite[thread / 32] = num_finite_in_warp;

    sum_columns<3>(scratch.columns, column, segment, [&](int k, float (&pixel)[3]) {
        pixel[0] = picture[first_pixel + k * SIZE];
        pixel[1] = a[k];
        pixel[2] = b[k];
    });
    if (thread < 3) {
        means[thread] = (float)(sum_in_order(scratch.columns[thread], SIZE) * (1.0 / (SIZE * SIZE)));
        results[thread == 0 ? SUM_MEAN : SUM_MEAN_A + thread - 1] = means[thread];
    }
    if (thread < 32) results[HISTOGRAM + thread] = sum_in_order(&levels[0][thread], NUM_WARPS, 32);
    if (thread == 0) results[NUM_FINITE] = sum_in_order(num_finite, NUM_WARPS);
    __syncthreads();

    // Differences from the means.
    const float mean = means[0], mean_a = means[1], mean_b = means[2];
    sum_columns<4>(scratch.columns, column, segment, [&](int k, float (&pixel)[4]) {
        const float y = picture[first_pixel + k * SIZE] - mean, red_green = a[k] - mean_a, yellow_blue = b[k] - mean_b;
        picture[first_pixel + k * SIZE] = y;
        pixel[0] = y * y;
        pixel[1] = red_green * red_green;
        pixel[2] = yellow_blue * yellow_blue;
        pixel[3] = red_green * yellow_blue;
    });
    if (thread < 4) results[thread == 0 ? SUM_YY : SUM_AA + thread - 1] = sum_in_order(scratch.columns[thread], SIZE);
    __syncthreads();

    // Gradients: sums over blocks, column by column, and over regions; edges along rows and columns.
    if (thread < 2 * SIZE) along[thread] = count_along(picture, thread % SIZE, thread < SIZE);
    if (thread < SIDE * SIDE) {
        double sums[NUM_BLOCK_SUMS];
        sum_block(picture, thread / SIDE * BLOCK, thread % SIDE * BLOCK, sums);
        for (int q = 0; q < NUM_BLOCK_SUMS; ++q) scratch.blocks[q][thread] = sums[q];
    }
    __syncthreads();
    if (thread < NUM_BLOCK_SUMS * SIDE)
        lines[thread / SIDE][thread % SIDE] = sum_in_order(&scratch.blocks[thread / SIDE][thread % SIDE], SIDE, SIDE);
    if (thread < REGIONS * REGIONS) {
        const double* block = scratch.blocks[1] + thread / REGIONS * REGION * SIDE + thread % REGIONS * REGION;
        double energy = 0.0;
        for (int i = 0; i < REGION; ++i)
            for (int j = 0; j < REGION; ++j) energy += block[i * SIDE + j];
        regions[0][thread] = sqrt(energy);
        regions[1][thread] = energy;
    }
#pragma unroll 1
    for (int k = 0; k < SEGMENT; ++k) picture[first_pixel + k * SIZE] *= taper[segment * SEGMENT + k] * taper[column];
    __syncthreads();
    if (thread < NUM_BLOCK_SUMS) results[SUM_EDGES + thread] = sum_in_order(lines[thread], SIDE);
    if (thread == 0) {
        int most_along = 0;
        for (int i = 0; i < 2 * SIZE; ++i) most_along = max(most_along, along[i]);
        results[SUM_SEAM] = most_along;
    }
    if (thread < 2) results[SUM_REGION_AMPLITUDE + thread] = sum_in_order(regions[thread], REGIONS * REGIONS);

    // The spectrum.
    transform(picture);
    power_of(picture);
    for (int i = thread; i < NUM_BANDS * SIZE; i += EVO_BLOCK_SIZE)
        scratch.bands[i / SIZE][i % SIZE] = band_in_column(picture, i / SIZE, i % SIZE);
    __syncthreads();
    if (thread < NUM_BANDS) results[BANDS + thread] = sum_in_order(scratch.bands[thread], SIZE);
}
