// The colour of a complex number, as `color` of kernels.py has it: same operations, same order, so same bits.

struct Rgb {
    float red, green, blue;
};

static __device__ __forceinline__ float at_most_one(float value) { return value < 1.0f ? value : 1.0f; }

static __device__ __forceinline__ float at_least_zero(float value) { return value > 0.0f ? value : 0.0f; }

// In sixths of a turn, from 0 to 3.
static __device__ __forceinline__ float absolute_angle(float real, float imaginary, float magnitude) {
    const float tangent = at_most_one(fabsf(imaginary) / (fabsf(real) + magnitude + SMALLEST));
    const float r = tangent * tangent;
    float angle = (((ATAN_4 * r + ATAN_3) * r + ATAN_2) * r + ATAN_1) * r + ATAN_0;
    angle = THREE_HALVES - angle * tangent;
    return THREE_HALVES + (real < 0.0f ? angle : -angle);
}

// Of numbers from 1 on.
static __device__ __forceinline__ float logarithm(float value) {
    const int bits = __float_as_int(value);
    float exponent = __int_as_float(((bits & EXPONENT) >> 23) | BITS_OF_2_TO_23) - BIASED_2_TO_23;
    const float mantissa = __int_as_float((bits & MANTISSA) | EXPONENT_OF_1);
    const bool is_high = mantissa > ROOT_OF_2;
    exponent = is_high ? exponent + 1.0f : exponent;
    const float r = (is_high ? mantissa * 0.5f : mantissa) - 1.0f;
    float p = LOG_8 * r + LOG_7;
    p = ((((((p * r + LOG_6) * r + LOG_5) * r + LOG_4) * r + LOG_3) * r + LOG_2) * r + LOG_1) * r;
    return (p + LOG_0) * r * r * r - 0.5f * r * r + r + exponent * LOG_OF_2;
}

static __device__ __forceinline__ Rgb color(float real, float imaginary) {
    float square = real * real + imaginary * imaginary;
    square = square < WHITE ? square : WHITE;  // NaN too
    const float magnitude = sqrtf(square);
    const float sixths = absolute_angle(real, imaginary, magnitude);
    const float lightness = at_most_one(logarithm(magnitude * 2.0f + 1.0f) * LIGHTNESS_SCALE);
    const float red = at_most_one(at_least_zero(2.0f - sixths));
    const float near = at_most_one(sixths);
    const float far = at_least_zero(sixths - 2.0f);
    const float green = imaginary < 0.0f ? far : near;
    const float blue = imaginary < 0.0f ? near : far;
    const float other = 1.0f - lightness;
    const float chroma = 2.0f * SATURATION * (lightness < other ? lightness : other);
    return {(red - 0.5f) * chroma + lightness, (green - 0.5f) * chroma + lightness, (blue - 0.5f) * chroma + lightness};
}
