/*
 * picture.h - what square pictures look like, in sums over their pixels, and the colours of complex numbers (domain colouring).
 *
 * Private to evo.native.picture; evo/pictures.py is the public face, and says what each statistic means and where it comes from.
 * Pictures are size * size f32, rows from the top; red, green and blue from 0 to 1.
 *
 * Bits. A picture decides every bit of its sums, at every SIMD level: there is no libm but its square root, no fma, and sums have a
 * fixed order. Sums are taken for each column in f32, then over the columns in f64. The statistics take logarithms and angles from
 * libm. kernel.cu of the task domain_coloring does the same operations in the same order.
 *
 * Files. picture.c has plans and statistics; picture_kernels.h has the loops over pixels, at the level of the compiler's flags. It is
 * compiled as part of picture.c and, under PICTURE_X86_LEVELS, of picture_avx2.c and picture_avx512.c with the flags that they state.
 *
 * Memory and threads. Nothing is allocated, and there is no global state. Any number of threads may use a plan, each with work memory
 * of its own. Memory may have any alignment and contents. No pointer may be NULL.
 */

#ifndef PICTURE_H
#define PICTURE_H

#include <stddef.h>
#include <stdint.h>

#define PICTURE_MIN_SIZE 32u
#define PICTURE_MAX_SIZE 1024u
#define PICTURE_BLOCK 4u   /* pixels: side of the blocks in which a gradient's orientation is taken */
#define PICTURE_REGION 2u  /* blocks: side of the regions over which structure is spread */
#define PICTURE_LEVELS 32u /* of luminance, in the histogram */
#define PICTURE_MAX_BANDS 17u

/* Means of luminance y and of the opponent colours a = red - green and b = (red + green) / 2 - blue, sums of products of their
   differences from the mean, the number of edges, sums over blocks, sums over regions, and the number of edges along the row or
   column that has most. After these come the histogram of luminance, the power of each band of frequencies, and the number of
   pixels that are finite. */
/* clang-format off */
#define PICTURE_SUMS(X)                                                                             \
    X(mean) X(yy) X(mean_a) X(mean_b) X(aa) X(bb) X(ab) X(edges) X(energy) X(oriented) X(amplitude) \
    X(twice_real) X(twice_imaginary) X(fourfold_real) X(fourfold_imaginary) X(region_amplitude) X(region_energy) X(seam)

#define PICTURE_STATISTICS(X)                                                                       \
    X(brightness) X(contrast) X(entropy) X(spectral_deviation) X(coherence) X(anisotropy)           \
    X(squareness) X(spread) X(seam) X(hue_variety) X(colourfulness) X(detail) X(hue) X(orientation) X(finite)
/* clang-format on */

#define PICTURE__SUM(name) PICTURE_SUM_##name,
#define PICTURE__STATISTIC(name) PICTURE_STATISTIC_##name,
enum { PICTURE_SUMS(PICTURE__SUM) PICTURE_HISTOGRAM, PICTURE_BANDS = PICTURE_HISTOGRAM + PICTURE_LEVELS };
enum { PICTURE_STATISTICS(PICTURE__STATISTIC) PICTURE_NUM_STATISTICS };

/* saturation: from 0 to 1. lightness_scale: lightness is log(1 + 2 |f + ig|) times this, at most 1. */
typedef struct PictureColors {
    float saturation, lightness_scale;
} PictureColors;

struct PicturePlan;

/* color: colours of any number of complex numbers f + ig, in HSL: the angle is the hue, 0 for positive reals; those that are not
   finite are white. sum: the sums of the picture of red, green and blue; with colors, of that which `color` makes of f, g and
   anything. */
typedef struct PictureKernels {
    void (*color)(PictureColors colors, const float* f, const float* g, size_t count, float* red, float* green, float* blue);
    void (*sum)(
        const struct PicturePlan* plan, const PictureColors* colors, const float* first, const float* second, const float* third,
        void* work, double* sums_out
    );
} PictureKernels;

/* half: size / 2. Complex tables have their real parts first. Places of frequencies are those where the transform leaves them.
   taper: of a Hann window, so that the picture's border adds no power. roots: exp(-2 pi i k / size), k below half. row_roots:
   those of each stage along rows. band: of each of half * size frequencies; -1: none. first_band: of each row. reversed: where
   row k of the spectrum is. is_inside: 1 but for the last column. whitening: power of a band -> power density x f^2. */
typedef struct PicturePlan {
    const PictureKernels* kernels;
    size_t size, num_bands;
    float *taper, *roots, *row_roots;
    int32_t *band, *first_band, *reversed, *is_inside;
    double whitening[PICTURE_MAX_BANDS];
} PicturePlan;

/* Of PICTURE_SUMS and PICTURE_STATISTICS. */
extern const char* const picture_sum_names[PICTURE_HISTOGRAM];
extern const char* const picture_statistic_names[PICTURE_NUM_STATISTICS];

/* The kernels of a SIMD level: 0 those of the compiler's flags, 1 AVX2, 2 AVX-512; NULL if this build or CPU lacks it. */
const PictureKernels* picture_kernels(unsigned int level);

/* Bytes of a plan; 0 if the size is no power of two from PICTURE_MIN_SIZE to PICTURE_MAX_SIZE. */
size_t picture_plan_size(size_t size);

/* A plan for pictures of a valid size, in memory of at least these bytes. */
const PicturePlan* picture_plan_init(size_t size, const PictureKernels* kernels, void* memory, size_t memory_bytes);

/* Bytes that a thread needs for sums. */
size_t picture_work_size(const PicturePlan* plan);

/* Red, green and blue, from 0 to 255, of size * size pixels, each the mean colour of two by two of the complex numbers. rows: 12 * size
   floats to work with. */
void picture_draw(
    const PictureKernels* kernels, PictureColors colors, const float* f, const float* g, size_t size, float* rows,
    uint8_t* pixels_out
);

/* PICTURE_NUM_STATISTICS statistics of the picture that has these sums. */
void picture_statistics(const PicturePlan* plan, const double* sums, double* statistics_out);

#endif /* PICTURE_H */
