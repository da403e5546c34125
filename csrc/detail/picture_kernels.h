/*
 * picture_kernels.h - the loops of picture.h over pixels, at the SIMD level of the compiler's flags.
 *
 * Private to picture.h. A file that includes it defines one function, named by PICTURE_KERNELS. Inner loops run along a line of
 * pixels, and the compiler makes vectors of them; sums over a line are taken at its end, so the width of vectors changes no bit.
 */
#ifndef PICTURE_KERNELS_H
#define PICTURE_KERNELS_H

#include <math.h>
#include <string.h>

#include "arena.h"
#include "picture.h"

#if defined(__clang__)
#define PICTURE__VECTORS _Pragma("clang loop vectorize(assume_safety)") /* no iteration writes what another one reads */
#else
#define PICTURE__VECTORS _Pragma("GCC ivdep")
#endif
#define PICTURE__INLINE static inline __attribute__((always_inline, unused))

#define PICTURE__STRIP 64   /* pixels that are coloured together */
#define PICTURE__TOGETHER 4 /* rows that are read or transformed together */
#define PICTURE__EDGE_SLOPE                                                                                  \
    5.0 /* an edge: luminance changes faster than from black to white over a fifth of the picture's width */
#define PICTURE__ALONG 0.17157288f /* tan(pi / 8)^2: an edge lies along an axis if it turns from it by less than pi / 8 */

/* Pictures of size * size, then rows. spectrum: tapered luminance, then its transform along columns; two rows are real and imaginary
   parts of one. columns: sums of each column; lines: others by column. */
typedef struct PictureWork {
    float *luminance, *spectrum, *b, *row, *columns, *bands;
    int32_t* counts;
    double* blocks;
} PictureWork;

static PictureWork picture__lay_work(EvoArena* arena, size_t size) {
    const size_t side = size / PICTURE_BLOCK;
    PictureWork work;
    work.luminance = (float*)evo__take(arena, size * size + 1, sizeof(float));
    work.spectrum = (float*)evo__take(arena, size * size, sizeof(float));
    work.b = (float*)evo__take(arena, size * size, sizeof(float));
    work.row = (float*)evo__take(arena, 4 * PICTURE__TOGETHER * size, sizeof(float));
    work.columns = (float*)evo__take(arena, 4 * size, sizeof(float));
    work.bands = (float*)evo__take(arena, PICTURE_MAX_BANDS * size, sizeof(float));
    work.counts = (int32_t*)evo__take(arena, 2 * size, sizeof(int32_t));
    work.blocks = (double*)evo__take(arena, 3 * side * side + 7 * side, sizeof(double));
    return work;
}

const PictureKernels* picture__kernels_baseline(void);
const PictureKernels* picture__kernels_avx2(void);
const PictureKernels* picture__kernels_avx512(void);

#endif /* PICTURE_KERNELS_H */

PICTURE__INLINE int32_t picture__bits_of(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

PICTURE__INLINE float picture__float_of(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Bits compare as numbers do where one is not negative. Unlike floats, integers have a minimum in every vector unit. */
PICTURE__INLINE float picture__least(float a, float b) {
    const int32_t x = picture__bits_of(a), y = picture__bits_of(b);
    return picture__float_of(x < y ? x : y);
}
PICTURE__INLINE float picture__at_most_one(float value) { return picture__least(value, 1.0f); }
PICTURE__INLINE float picture__at_least_zero(float value) {
    const int32_t bits = picture__bits_of(value);
    return picture__float_of(bits > 0 ? bits : 0);
}

/* Colours of some pixels. Loops are short, so that a processor works at several of their vectors at once: one loop of all this would
   wait for its own results. */
PICTURE__INLINE void picture__color_strip(
    PictureColors colors, const float* f, const float* g, size_t count, float* reds, float* greens, float* blues
) {
    const float twice_saturation = 2.0f * colors.saturation, scale = colors.lightness_scale;
    float magnitudes[PICTURE__STRIP], angles[PICTURE__STRIP], logarithms[PICTURE__STRIP];
    PICTURE__VECTORS
    for (size_t i = 0; i < count; i++) {
        const float square = f[i] * f[i] + g[i] * g[i];
        magnitudes[i] = sqrtf(square < 1e30f ? square : 1e30f); /* from here on all is white; NaN too */
    }
    /* |angle| in sixths of a turn, from 0 to 3; an arbitrary value in that range where f or g is not finite. The tangent of half
       the angle to the nearer half of the real axis lies in [0, 1], so no octants are needed. Minimax fit of (6 / pi) atan(r) =
       r P(r^2) on [0, 1]: error below 2.3e-5. */
    PICTURE__VECTORS
    for (size_t i = 0; i < count; i++) {
        const float ratio = fabsf(g[i]) / (fabsf(f[i]) + magnitudes[i] + 1.17549435e-38f);
        angles[i] = ratio < 1.0f ? ratio : 1.0f;
    }
    PICTURE__VECTORS
    for (size_t i = 0; i < count; i++) {
        const float tangent = angles[i], t = tangent * tangent;
        float angle = (((0.0398112237f * t - 0.162636623f) * t + 0.344078898f) * t - 0.630835652f) * t + 1.90960407f;
        angle = 1.5f - angle * tangent;
        angles[i] = 1.5f + (f[i] < 0.0f ? angle : -angle);
    }
    /* log(1 + 2 |f + ig|): of a power of two and of 1 + r from sqrt(1/2) to sqrt(2), by a minimax fit: error below 1.6e-6. */
    PICTURE__VECTORS
    for (size_t i = 0; i < count; i++) {
        const float grown = magnitudes[i] * 2.0f + 1.0f;
        const int32_t bits = picture__bits_of(grown), power = (bits - 0x3F3504F3) & ~0x007FFFFF;
        const float r = picture__float_of(bits - power) - 1.0f;
        float p = (-0.143197685f * r + 0.223300487f) * r - 0.254724771f;
        p = ((p * r + 0.332258761f) * r - 0.499850512f) * r + 1.00001276f;
        logarithms[i] = p * r + (float)power * 8.26295829e-8f; /* log(2) / 2^23 */
    }
    PICTURE__VECTORS
    for (size_t i = 0; i < count; i++) {
        const float sixths = angles[i], lightness = picture__at_most_one(logarithms[i] * scale);
        const float chroma = twice_saturation * picture__least(lightness, 1.0f - lightness);
        /* Each channel is a trapezoid over the hue. Green and blue mirror each other in the real axis. */
        const float red = picture__at_most_one(picture__at_least_zero(2.0f - sixths));
        const float near = picture__at_most_one(sixths), far = picture__at_least_zero(sixths - 2.0f);
        const float green = g[i] < 0.0f ? far : near, blue = g[i] < 0.0f ? near : far;
        reds[i] = (red - 0.5f) * chroma + lightness;
        greens[i] = (green - 0.5f) * chroma + lightness;
        blues[i] = (blue - 0.5f) * chroma + lightness;
    }
}

static __attribute__((noinline)) void picture__color(
    PictureColors colors, const float* f, const float* g, size_t count, float* reds, float* greens, float* blues
) {
    size_t i = 0;
    for (; i + PICTURE__STRIP <= count; i += PICTURE__STRIP) /* the compiler knows the length of its loops */
        picture__color_strip(colors, f + i, g + i, PICTURE__STRIP, reds + i, greens + i, blues + i);
    picture__color_strip(colors, f + i, g + i, count - i, reds + i, greens + i, blues + i);
}

/* Adds rows of pixels to the sums of columns and to the histogram of pairs, and keeps their luminance and opponent colours. */
PICTURE__INLINE void picture__take_rows(
    size_t size, const float* red, const float* green, const float* blue, float* luminance, float* a, float* b, float* columns,
    uint32_t (*pairs)[PICTURE_LEVELS * PICTURE_LEVELS]
) {
    uint32_t levels[PICTURE__TOGETHER / 2][PICTURE_MAX_SIZE];
    PICTURE__VECTORS
    for (size_t i = 0; i < size; i++) {
        float sum = columns[i], sum_a = columns[size + i], sum_b = columns[2 * size + i];
        uint32_t upper = 0;
        for (size_t row = 0; row < PICTURE__TOGETHER; row++) {
            const size_t at = row * size + i;
            const float y = red[at] * 0.299f + green[at] * 0.587f + blue[at] * 0.114f; /* ITU-R BT.601 */
            luminance[at] = y;
            a[at] = red[at] - green[at];
            b[at] = (red[at] + green[at]) * 0.5f - blue[at];
            sum += y;
            sum_a += a[at];
            sum_b += b[at];
            /* A hair less than the number of levels: 1.0 and rounded beyond is in the top one. */
            const uint32_t level = (uint32_t)(int32_t)(y * 31.999968f) & (PICTURE_LEVELS - 1);
            if (row % 2 == 0)
                upper = level * PICTURE_LEVELS;
            else
                levels[row / 2][i] = upper + level;
        }
        columns[i] = sum;
        columns[size + i] = sum_a;
        columns[2 * size + i] = sum_b;
    }
    for (size_t row = 0; row < PICTURE__TOGETHER / 2; row++) {
        for (size_t i = 0; i < size; i += 2) { /* two histograms, so that equal pairs do not wait for each other */
            pairs[0][levels[row][i]]++;
            pairs[1][levels[row][i + 1]]++;
        }
    }
}

/* The histogram, which counts both pixels of each pair. */
PICTURE__INLINE void picture__sum_pairs(uint32_t (*pairs)[PICTURE_LEVELS * PICTURE_LEVELS], double* histogram_out) {
    uint32_t seconds[PICTURE_LEVELS] = {0}, firsts[PICTURE_LEVELS];
    for (size_t first = 0; first < PICTURE_LEVELS; first++) {
        const uint32_t *one = pairs[0] + first * PICTURE_LEVELS, *other = pairs[1] + first * PICTURE_LEVELS;
        uint32_t sum = 0;
        PICTURE__VECTORS
        for (size_t i = 0; i < PICTURE_LEVELS; i++) {
            const uint32_t count = one[i] + other[i];
            seconds[i] += count;
            sum += count;
        }
        firsts[first] = sum;
    }
    for (size_t k = 0; k < PICTURE_LEVELS; k++) histogram_out[k] = (double)(firsts[k] + seconds[k]);
}

/* Sums over `count` columns of each of `num` lines, in order. */
PICTURE__INLINE void picture__sum_lines(const float* lines, size_t num, size_t count, double* sums_out) {
    for (size_t k = 0; k < num; k++) sums_out[k] = 0.0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < num; k++) sums_out[k] += (double)lines[k * count + i];
}

/* From luminance and opponent colours on, which become differences from the mean. */
PICTURE__INLINE void picture__sum_products(size_t size, const PicturePlan* plan, PictureWork* work, double* sums) {
    const float scale = (float)(1.0 / (double)(size * size));
    const float* taper = plan->taper;
    float* columns = work->columns;
    double totals[4];
    picture__sum_lines(columns, 3, size, totals);
    const float mean = (float)(totals[0] * (double)scale), mean_a = (float)(totals[1] * (double)scale);
    const float mean_b = (float)(totals[2] * (double)scale);
    memset(columns, 0, 4 * size * sizeof *columns);
    for (size_t row = 0; row < size; row++) {
        float* luminance = work->luminance + row * size;
        float* a = work->spectrum + row * size;
        const float* b = work->b + row * size;
        PICTURE__VECTORS
        for (size_t i = 0; i < size; i++) {
            const float y = luminance[i] - mean, red_green = a[i] - mean_a, yellow_blue = b[i] - mean_b;
            luminance[i] = y;
            a[i] = y * (taper[row] * taper[i]);
            columns[i] += y * y;
            columns[size + i] += red_green * red_green;
            columns[2 * size + i] += yellow_blue * yellow_blue;
            columns[3 * size + i] += red_green * yellow_blue;
        }
    }
    picture__sum_lines(columns, 4, size, totals);
    sums[PICTURE_SUM_mean] = (double)mean, sums[PICTURE_SUM_yy] = totals[0];
    sums[PICTURE_SUM_mean_a] = (double)mean_a, sums[PICTURE_SUM_mean_b] = (double)mean_b;
    sums[PICTURE_SUM_aa] = totals[1], sums[PICTURE_SUM_bb] = totals[2], sums[PICTURE_SUM_ab] = totals[3];
}

/* Sums of the gradients of a few rows in each column: energy, real and imaginary part; edges, and those along the column; and of each
   row those along it. */
PICTURE__INLINE void picture__add_gradients(
    size_t size, size_t num_rows, const float* first, float edge_energy, const int32_t* is_inside, float* gradients,
    int32_t* edges, int32_t* along
) {
    PICTURE__VECTORS
    for (size_t i = 0; i < size; i++) {
        float energies = 0.0f, reals = 0.0f, imaginaries = 0.0f;
        int32_t num_edges = 0, num_along = 0;
        for (size_t row = 0; row < num_rows; row++) {
            const float *upper = first + row * size + i, *lower = upper + size;
            const float falling = lower[1] - upper[0], rising = upper[1] - lower[0];
            const float across = (falling + rising) * 0.5f, down = (rising - falling) * 0.5f, product = across * down;
            const float energy = across * across + down * down;
            const int32_t is_edge = (energy > edge_energy) & is_inside[i];
            num_edges += is_edge;
            num_along += (down * down < PICTURE__ALONG * across * across) & is_edge;
            along[row] += (across * across < PICTURE__ALONG * down * down) & is_edge;
            energies += energy;
            reals += across * across - down * down;
            imaginaries += product + product;
        }
        edges[i] += num_edges;
        edges[size + i] += num_along;
        gradients[i] = energies;
        gradients[size + i] = reals;
        gradients[2 * size + i] = imaginaries;
    }
}

/* Squared gradients over 2 x 2 pixels, so the last row and column have none: energy, real and imaginary part. */
PICTURE__INLINE void picture__sum_gradients(size_t size, const PicturePlan* plan, PictureWork* work, double* sums) {
    const size_t side = size / PICTURE_BLOCK;
    const float edge_energy = (float)((PICTURE__EDGE_SLOPE / (double)size) * (PICTURE__EDGE_SLOPE / (double)size));
    const int32_t* is_inside = plan->is_inside;
    float* gradients = work->columns;
    int32_t *edges = work->counts, *edges_along = work->counts + size, along[PICTURE_BLOCK], most_along = 0;
    double *energies = work->blocks, *reals = energies + side * side;
    double *imaginaries = reals + side * side, *lines = imaginaries + side * side;
    memset(edges, 0, 2 * size * sizeof *edges);
    for (size_t block_row = 0; block_row < side; block_row++) {
        const size_t end = block_row + 1 < side ? (block_row + 1) * PICTURE_BLOCK : size - 1;
        const float* first = work->luminance + block_row * PICTURE_BLOCK * size;
        for (size_t k = 0; k < PICTURE_BLOCK; k++) along[k] = 0;
        if (end % PICTURE_BLOCK == 0)
            picture__add_gradients(size, PICTURE_BLOCK, first, edge_energy, is_inside, gradients, edges, along);
        else
            picture__add_gradients(size, PICTURE_BLOCK - 1, first, edge_energy, is_inside, gradients, edges, along);
        for (size_t k = 0; k < PICTURE_BLOCK; k++) most_along = along[k] > most_along ? along[k] : most_along;
        for (size_t k = 0; k < 3; k++) gradients[(k + 1) * size - 1] = 0.0f;
        for (size_t k = 0; k < 3; k++) {
            double* blocks = energies + k * side * side + block_row * side;
            PICTURE__VECTORS
            for (size_t i = 0; i < side; i++) {
                const float* four = gradients + k * size + i * PICTURE_BLOCK;
                blocks[i] = (double)((four[0] + four[1]) + (four[2] + four[3]));
            }
        }
    }
    memset(lines, 0, 7 * side * sizeof *lines);
    for (size_t block_row = 0; block_row < side; block_row++) {
        PICTURE__VECTORS
        for (size_t i = 0; i < side; i++) {
            const double energy = energies[block_row * side + i], real = reals[block_row * side + i];
            const double imaginary = imaginaries[block_row * side + i];
            const double oriented = sqrt(real * real + imaginary * imaginary), amplitude = sqrt(energy);
            const double weight = amplitude / (energy + 1e-12), fourfold = weight / (oriented + 1e-12);
            lines[i] += energy;
            lines[side + i] += oriented;
            lines[2 * side + i] += amplitude;
            /* Vectors at twice and four times the angle of a block's gradient, weighted by amplitude and coherence. */
            lines[3 * side + i] += weight * real;
            lines[4 * side + i] += weight * imaginary;
            lines[5 * side + i] += fourfold * (real * real - imaginary * imaginary);
            lines[6 * side + i] += fourfold * 2.0 * real * imaginary;
        }
    }
    for (size_t k = 0; k < 7; k++) sums[PICTURE_SUM_energy + k] = 0.0;
    for (size_t i = 0; i < side; i++)
        for (size_t k = 0; k < 7; k++) sums[PICTURE_SUM_energy + k] += lines[k * side + i];
    double spread = 0.0, spread_squares = 0.0;
    for (size_t row = 0; row < side; row += PICTURE_REGION) {
        for (size_t i = 0; i < side; i += PICTURE_REGION) {
            const double *first = energies + row * side + i, *second = first + side;
            const double energy = ((first[0] + first[1]) + second[0]) + second[1];
            spread += sqrt(energy);
            spread_squares += energy;
        }
    }
    int32_t num_edges = 0;
    for (size_t i = 0; i < size; i++) {
        num_edges += edges[i];
        most_along = edges_along[i] > most_along ? edges_along[i] : most_along;
    }
    sums[PICTURE_SUM_edges] = num_edges, sums[PICTURE_SUM_seam] = most_along;
    sums[PICTURE_SUM_region_amplitude] = spread, sums[PICTURE_SUM_region_energy] = spread_squares;
}

/* A Fourier transform of the columns in place. Real row 2 k and row 2 k + 1 are real and imaginary part of row k. Decimation in
   frequency by factors of two leaves the rows in bit-reversed order. From their transform Z follows the spectrum of the pixels: that
   of even rows is the part of Z that is Hermitian, that of odd rows the other one (Press et al., Numerical Recipes, section 12.3).
   Everything is doubled. The row of the Nyquist frequency is left out: it lies in no band. */
PICTURE__INLINE void picture__transform_columns(size_t size, const PicturePlan* plan, float* spectrum) {
    const size_t half = size / 2;
    for (size_t distance = half / 2; distance > 0; distance /= 2) {
        for (size_t block = 0; block < half; block += 2 * distance) {
            for (size_t low = 0; low < distance; low++) {
                const float x = plan->roots[low * (half / distance)], y = plan->roots[half + low * (half / distance)];
                float *first = spectrum + 2 * (block + low) * size, *second = first + 2 * distance * size;
                PICTURE__VECTORS
                for (size_t i = 0; i < size; i++) {
                    const float ax = first[i], ay = first[size + i], bx = second[i], by = second[size + i];
                    const float dx = ax - bx, dy = ay - by;
                    first[i] = ax + bx;
                    first[size + i] = ay + by;
                    second[i] = dx * x - dy * y;
                    second[size + i] = dx * y + dy * x;
                }
            }
        }
    }
    for (size_t k = 0; k <= half / 2; k++) {
        const size_t opposite = (half - k) % half;
        float* first = spectrum + 2 * (size_t)plan->reversed[k] * size;
        float* second = spectrum + 2 * (size_t)plan->reversed[opposite] * size;
        const float x = plan->roots[k], y = plan->roots[half + k];
        const float opposite_x = plan->roots[opposite], opposite_y = plan->roots[half + opposite];
        PICTURE__VECTORS
        for (size_t i = 0; i < size; i++) {
            const float ax = first[i], ay = first[size + i], bx = second[i], by = second[size + i];
            const float even_x = ax + bx, even_y = ay - by, odd_x = ay + by, odd_y = bx - ax;
            first[i] = even_x + (odd_x * x - odd_y * y);
            first[size + i] = even_y + (odd_x * y + odd_y * x);
            second[i] = even_x + (odd_x * opposite_x + odd_y * opposite_y);
            second[size + i] = (odd_x * opposite_y - odd_y * opposite_x) - even_y;
        }
    }
}

/* Transforms each row and adds up the power of each band, for each place of a row, then over the places in order. A stage reads numbers
   half a row apart and writes them side by side, so that all stages are alike (Pease 1968); the numbers are those of a transform in
   place. Some rows take a stage together, since a row waits for its own numbers. */
PICTURE__INLINE void picture__sum_bands(size_t size, const PicturePlan* plan, PictureWork* work, double* sums) {
    const size_t half = size / 2;
    float* bands = work->bands;
    memset(bands, 0, plan->num_bands * size * sizeof *bands);
    for (size_t first_row = 0; first_row < half; first_row += PICTURE__TOGETHER) {
        float *from = work->spectrum + 2 * first_row * size, *to = work->row, *next = to + 2 * PICTURE__TOGETHER * size;
        const float* roots = plan->row_roots;
        for (size_t rest = half; rest > 1; rest /= 2, roots += size) {
            const float *x = roots, *y = roots + half;
            for (size_t row = 0; row < PICTURE__TOGETHER; row++) {
                const float* first = from + 2 * row * size;
                float* out = to + 2 * row * size;
                PICTURE__VECTORS
                for (size_t i = 0; i < half; i++) {
                    const float ax = first[i], ay = first[size + i], bx = first[half + i], by = first[size + half + i];
                    const float dx = ax - bx, dy = ay - by;
                    out[2 * i] = ax + bx;
                    out[2 * i + 1] = dx * x[i] - dy * y[i];
                    out[size + 2 * i] = ay + by;
                    out[size + 2 * i + 1] = dx * y[i] + dy * x[i];
                }
            }
            from = to, to = next, next = from;
        }
        for (size_t row = first_row; row < first_row + PICTURE__TOGETHER; row++, from += 2 * size) {
            const float weight =
                plan->reversed[row] > 0 ? 0.5f : 0.25f; /* negative frequencies have the same power; all is doubled */
            PICTURE__VECTORS
            for (size_t i = 0; i < half; i++) {
                const float ax = from[i], ay = from[size + i], bx = from[half + i], by = from[size + half + i];
                const float sx = ax + bx, sy = ay + by, dx = ax - bx, dy = ay - by;
                to[i] = (sx * sx + sy * sy) * weight;
                to[half + i] = (dx * dx + dy * dy) * weight;
            }
            const int32_t* band_of = plan->band + row * size;
            for (int32_t band = plan->first_band[row]; band < (int32_t)plan->num_bands; band++) {
                float* line = bands + (size_t)band * size;
                PICTURE__VECTORS
                for (size_t i = 0; i < size; i++) line[i] += band_of[i] == band ? to[i] : 0.0f;
            }
        }
    }
    picture__sum_lines(bands, plan->num_bands, size, sums + PICTURE_BANDS);
}

PICTURE__INLINE void picture__sum_of(
    size_t size, const PicturePlan* plan, const PictureColors* colors, const float* first, const float* second,
    const float* third, void* memory, double* sums
) {
    EvoArena arena = evo__arena(memory, SIZE_MAX / 2);
    PictureWork work = picture__lay_work(&arena, size);
    uint32_t pairs[2][PICTURE_LEVELS * PICTURE_LEVELS];
    int32_t *finite = work.counts, num_finite = 0;
    memset(pairs, 0, sizeof pairs);
    memset(finite, 0, size * sizeof *finite);
    memset(work.columns, 0, 3 * size * sizeof *work.columns);
    for (size_t at = 0; at < size * size; at += PICTURE__TOGETHER * size) {
        const float *red = first + at, *green = second + at, *blue = third + at;
        if (colors != NULL) {
            const size_t count = PICTURE__TOGETHER * size;
            for (size_t k = 0; k < count; k += size) {
                PICTURE__VECTORS
                for (size_t i = 0; i < size; i++) finite[i] += (red[k + i] - red[k + i]) + (green[k + i] - green[k + i]) == 0.0f;
            }
            picture__color(*colors, red, green, count, work.row, work.row + count, work.row + 2 * count);
            red = work.row, green = red + count, blue = green + count;
        }
        picture__take_rows(size, red, green, blue, work.luminance + at, work.spectrum + at, work.b + at, work.columns, pairs);
    }
    picture__sum_pairs(pairs, sums + PICTURE_HISTOGRAM);
    for (size_t i = 0; i < size; i++) num_finite += finite[i];
    work.luminance[size * size] = 0.0f;
    picture__sum_products(size, plan, &work, sums);
    picture__sum_gradients(size, plan, &work, sums);
    picture__transform_columns(size, plan, work.spectrum);
    picture__sum_bands(size, plan, &work, sums);
    sums[PICTURE_BANDS + plan->num_bands] = colors != NULL ? (double)num_finite : (double)(size * size);
}

static void picture__sum(
    const PicturePlan* plan, const PictureColors* colors, const float* first, const float* second, const float* third, void* work,
    double* sums_out
) {
    if (plan->size == 64) /* the usual size: the compiler knows the length of its loops */
        picture__sum_of(64, plan, colors, first, second, third, work, sums_out);
    else
        picture__sum_of(plan->size, plan, colors, first, second, third, work, sums_out);
}

const PictureKernels* PICTURE_KERNELS(void) {
    static const PictureKernels kernels = {picture__color, picture__sum};
    return &kernels;
}
