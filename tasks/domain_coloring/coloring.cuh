// The colour of a complex number, as picture__color of evo's csrc/detail/picture_kernels.h has it: same operations, same order, so same
// bits.

struct Rgb {
    float red, green, blue;
};

static __device__ __forceinline__ float at_most_one(float value) { return value < 1.0f ? value : 1.0f; }

static __device__ __forceinline__ float at_least_zero(float value) { return value > 0.0f ? value : 0.0f; }

// In sixths of a turn, from 0 to 3.
static __device__ __forceinline__ float absolute_angle(float real, float imaginary, float magnitude) {
    const float tangent = at_most_one(fabsf(imaginary) / (fabsf(real) + magnitude + 1.17549435e-38f));
    const float r = tangent * tangent;
    float angle = (((0.0398112237f * r - 0.162636623f) * r + 0.344078898f) * r - 0.630835652f) * r + 1.90960407f;
    angle = 1.5f - angle * tangent;
    return 1.5f + (real < 0.0f ? angle : -angle);
}

// Of numbers from 1 on.
static __device__ __forceinline__ float logarithm(float value) {
    const int bits = __float_as_int(value), power = (bits - 0x3F3504F3) & ~0x007FFFFF;
    const float r = __int_as_float(bits - power) - 1.0f;
    float p = (-0.143197685f * r + 0.223300487f) * r - 0.254724771f;
    p = ((p * r + 0.332258761f) * r - 0.499850512f) * r + 1.00001276f;
    return p * r + (float)power * 8.26295829e-8f;
}

static __device__ __forceinline__ Rgb color(float real, float imaginary) {
    float square = real * real + imaginary * imaginary;
    square = square < 1e30f ? square : 1e30f; // from here on all is white; NaN too
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
