# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Sums over square pictures, and colours of complex numbers: NumPy arrays in and out.

Owns the memory of a call. `evo.pictures` is the public face; csrc/detail/picture.h documents the sums.
"""

import numpy as np

from libc.stdint cimport uint8_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from evo.native.arrays cimport address


cdef extern from "detail/picture.h" nogil:
    ctypedef struct PictureColors:
        float saturation
        float lightness_scale

    ctypedef struct PicturePlan

    ctypedef struct PictureKernels:
        void (*color)(PictureColors, const float*, const float*, size_t, float*, float*, float*) noexcept nogil
        void (*sum)(
            const PicturePlan*, const PictureColors*, const float*, const float*, const float*, void*, double*
        ) noexcept nogil

    ctypedef struct PicturePlan:
        const PictureKernels* kernels
        size_t size
        size_t num_bands
        float* roots
        float* taper

    const int PICTURE_MIN_SIZE
    const int PICTURE_MAX_SIZE
    const int PICTURE_HISTOGRAM
    const int PICTURE_BANDS
    const int PICTURE_NUM_STATISTICS
    const char* const* picture_sum_names
    const char* const* picture_statistic_names

    const PictureKernels* picture_kernels(unsigned int)
    size_t picture_plan_size(size_t)
    const PicturePlan* picture_plan_init(size_t, const PictureKernels*, void*, size_t)
    size_t picture_work_size(const PicturePlan*)
    void picture_draw(const PictureKernels*, PictureColors, const float*, const float*, size_t, float*, uint8_t*)
    void picture_statistics(const PicturePlan*, const double*, double*)


# The first columns of sums; the histogram of luminance, the power of each band and the number of finite pixels follow.
SUMS: tuple[str, ...] = tuple(picture_sum_names[i].decode() for i in range(PICTURE_HISTOGRAM))
FIRST_BAND: int = PICTURE_BANDS
STATISTICS: tuple[str, ...] = tuple(picture_statistic_names[i].decode() for i in range(PICTURE_NUM_STATISTICS))
_STATISTICS_DTYPE = np.dtype([(name, np.float64) for name in STATISTICS])
NUM_LEVELS: int = sum(picture_kernels(level) != NULL for level in range(3))


cdef class Coloring:
    """Colours of complex numbers f + ig by domain colouring. Threads may share it.

    Hue, saturation and lightness are those of HSL (Joblove & Greenberg 1978): the angle is the hue, red for positive real numbers;
    saturation is constant; lightness grows with the logarithm of the magnitude, from black at zero through the purest colours to
    white. Infinite and undefined numbers are white.

    Args:
        saturation: of all colours, from 0 (grey) to 1.
        pure_magnitude: the magnitude m whose colour is purest: lightness 1/2. Everything from 2 m (m + 1) on is white.

    Raises:
        ValueError: an argument is out of range.
    """

    cdef PictureColors colors
    cdef const PictureKernels* kernels
    cdef tuple arguments

    def __cinit__(self, saturation: float = 0.65, pure_magnitude: float = 2.0):
        if not 0.0 <= saturation <= 1.0:
            raise ValueError(f"saturation is {saturation}, must be from 0 to 1")
        if not 0.0 < pure_magnitude < float("inf"):
            raise ValueError(f"pure_magnitude is {pure_magnitude}, must be above 0")
        self.colors.saturation = saturation
        self.colors.lightness_scale = 0.5 / np.log1p(2.0 * pure_magnitude)
        self.kernels = picture_kernels(NUM_LEVELS - 1)
        self.arguments = (saturation, pure_magnitude)

    def __reduce__(self) -> tuple[Any, ...]:
        return Coloring, self.arguments

    @property
    def saturation(self) -> float:
        """The constant saturation, in f32."""
        return self.colors.saturation

    @property
    def lightness_scale(self) -> float:
        """Lightness is log(1 + 2 |f + ig|) times this, at most 1; in f32."""
        return self.colors.lightness_scale

    def rgb(self, f: NDArray[np.float32], g: NDArray[np.float32]) -> NDArray[np.float32]:
        """Red, green and blue in [0, 1] of float32 arrays of one shape: `(3, *shape)` float32."""
        if f.shape != g.shape:
            raise ValueError(f"f has shape {f.shape}, g {g.shape}; they must be equal")
        f, g = np.ascontiguousarray(f, np.float32), np.ascontiguousarray(g, np.float32)
        rgb = np.empty((3, *f.shape), np.float32)
        cdef float* red = <float*>address(rgb)
        cdef const float* real = <const float*>address(f)
        cdef const float* imaginary = <const float*>address(g)
        cdef size_t count = f.size
        with nogil:
            self.kernels.color(self.colors, real, imaginary, count, red, red + count, red + 2 * count)
        return rgb

    def picture(self, f: NDArray[np.float32], g: NDArray[np.float32], int size) -> NDArray[np.uint8]:
        """The picture of `(4 * size * size,)` float32 each, 2 * size along a side: `(size, size, 3)`, each pixel the mean of four."""
        f, g = np.ascontiguousarray(f, np.float32), np.ascontiguousarray(g, np.float32)
        if not len(f) == len(g) == 4 * size * size:
            raise ValueError(f"expected {4 * size * size} numbers for a picture of {size}x{size}, got {len(f)} and {len(g)}")
        pixels = np.empty((size, size, 3), np.uint8)
        rows = np.empty(12 * size, np.float32)
        cdef float* work = <float*>address(rows)
        cdef uint8_t* out = <uint8_t*>address(pixels)
        cdef const float* real = <const float*>address(f)
        cdef const float* imaginary = <const float*>address(g)
        with nogil:
            picture_draw(self.kernels, self.colors, real, imaginary, size, work, out)
        return pixels


cdef class PictureStatistics:
    """Computes statistics of square pictures. Immutable, so threads may share it; sums release the GIL.

    A picture decides every bit of its sums and statistics, whatever the rest of its batch is.

    Args:
        size: pixels along a side, a power of two from 32 to 1024.
        level: of `range(NUM_LEVELS)`, the SIMD level; None: the best. All give the same sums.

    Raises:
        ValueError: there is no such size or level.
    """

    cdef const PicturePlan* plan
    cdef object memory
    cdef readonly int size  # pixels along a side
    cdef readonly int num_sums  # of a picture

    def __cinit__(self, size: int, level: int | None = None):
        num_bytes = 0 if not PICTURE_MIN_SIZE <= size <= PICTURE_MAX_SIZE else picture_plan_size(size)
        if not num_bytes:
            raise ValueError(f"size is {size}, must be a power of two from {PICTURE_MIN_SIZE} to {PICTURE_MAX_SIZE}")
        level = NUM_LEVELS - 1 if level is None else level
        if level not in range(NUM_LEVELS):
            raise ValueError(f"there is no SIMD level {level} here, the best is {NUM_LEVELS - 1}")
        self.memory = np.empty(num_bytes, np.uint8)
        self.plan = picture_plan_init(size, picture_kernels(level), address(self.memory), num_bytes)
        self.size = size
        self.num_sums = PICTURE_BANDS + self.plan.num_bands + 1

    def __reduce__(self) -> tuple[Any, ...]:
        return PictureStatistics, (self.size,)

    @property
    def roots(self) -> NDArray[np.float32]:
        """exp(-2 pi i k / size) for k below size / 2, real parts and then imaginary parts, `(2, size / 2)`."""
        return self._copy_of(self.plan.roots).reshape(2, -1)

    @property
    def taper(self) -> NDArray[np.float32]:
        """The window along a side, `(size,)`."""
        return self._copy_of(self.plan.taper)

    cdef _copy_of(self, const float* values):
        copy = np.empty(self.size, np.float32)
        memcpy(address(copy), values, copy.nbytes)
        return copy

    def sums(self, rgb: NDArray[np.float32]) -> NDArray[np.float64]:
        """Sums of pictures for `statistics`, `(batch_size, num_sums)`.

        Args:
            rgb: `(3, batch_size, size * size)` float32 with values in [0, 1], rows from the top.
        """
        return self._sums(rgb[0], rgb[1], rgb[2], None)

    def sums_of_complex(self, f: NDArray[np.float32], g: NDArray[np.float32], coloring: Coloring) -> NDArray[np.float64]:
        """As `sums`, of the pictures that a colouring makes of f + ig, `(batch_size, size * size)` float32 each."""
        return self._sums(f, g, g, coloring)

    cdef _sums(self, first, second, third, Coloring coloring):
        shape = (len(first), self.size * self.size)
        planes = []
        for plane in (first, second, third):
            if plane.shape != shape or plane.dtype != np.float32:
                raise ValueError(f"expected float32 of shape {shape}, got {plane.dtype} of {plane.shape}")
            planes.append(plane if plane.strides[1] == 4 else np.ascontiguousarray(plane))
        sums = np.empty((shape[0], self.num_sums))
        cdef const char* a = <const char*>address(planes[0])
        cdef const char* b = <const char*>address(planes[1])
        cdef const char* c = <const char*>address(planes[2])
        cdef Py_ssize_t a_stride = planes[0].strides[0], b_stride = planes[1].strides[0], c_stride = planes[2].strides[0]
        cdef Py_ssize_t i, num_pictures = shape[0]
        cdef double* out = <double*>address(sums)
        cdef const PictureKernels* kernels = self.plan.kernels
        cdef const PictureColors* colors = NULL if coloring is None else &coloring.colors
        cdef void* work = malloc(picture_work_size(self.plan))
        if work == NULL:
            raise MemoryError("no memory for a picture")
        with nogil:
            for i in range(num_pictures):
                kernels.sum(
                    self.plan, colors, <const float*>(a + i * a_stride), <const float*>(b + i * b_stride),
                    <const float*>(c + i * c_stride), work, out + i * self.num_sums
                )
        free(work)
        return sums

    def statistics(self, sums: NDArray[np.float64]) -> NDArray[np.void]:
        """Statistics of the pictures that have these sums: `(batch_size,)` with a float64 field for each of `STATISTICS`."""
        statistics = np.empty(len(sums), _STATISTICS_DTYPE)
        sums = np.ascontiguousarray(sums, np.float64)
        if sums.shape[1] != self.num_sums:
            raise ValueError(f"expected {self.num_sums} sums of each picture, got {sums.shape[1]}")
        cdef const double* rows = <const double*>address(sums)
        cdef double* out = <double*>address(statistics)
        cdef Py_ssize_t i, num_pictures = len(sums)
        with nogil:
            for i in range(num_pictures):
                picture_statistics(self.plan, rows + i * self.num_sums, out + i * PICTURE_NUM_STATISTICS)
        return statistics


cdef struct _Summing:
    const PicturePlan* plan
    const PictureColors* colors


cdef void _sum_up(const void* context, const void* outputs, void* work, double* sums_out) noexcept nogil:
    cdef const _Summing* summing = <const _Summing*>context
    cdef const PicturePlan* plan = summing.plan
    cdef const float* first = <const float*>outputs
    cdef const float* second = first + plan.size * plan.size
    plan.kernels.sum(plan, summing.colors, first, second, second if summing.colors else second + plan.size * plan.size, work, sums_out)


cdef class PictureSums:
    """Sums of the picture that a program's outputs are, for `evo.Task.cpu_sums`: red, green and blue, or f and g with a colouring.

    Immutable, so threads may share it.
    """

    cdef _Summing summing
    cdef tuple arguments

    def __cinit__(self, statistics: PictureStatistics, coloring: Coloring | None = None):
        self.arguments = (statistics, coloring)
        self.summing.plan = (<PictureStatistics?>statistics).plan
        self.summing.colors = NULL if coloring is None else &(<Coloring?>coloring).colors

    def __reduce__(self) -> tuple[Any, ...]:
        return PictureSums, self.arguments

    @property
    def num_sums(self) -> int:
        """Sums of a picture."""
        return self.arguments[0].num_sums

    def handle(self, outputs: NDArray[Any]) -> tuple[int, int, int]:
        """For the virtual machine: the address of what sums up, that of its context, valid while this object lives, and the bytes that
        it works in.

        Raises:
            ValueError: these outputs of a program, `(num_outputs, num_points)`, are not a picture.
        """
        shape = (3 if self.arguments[1] is None else 2, self.summing.plan.size ** 2)
        if outputs.shape != shape or outputs.dtype != np.float32:
            raise ValueError(f"expected outputs of type f32 and shape {shape}, got {outputs.dtype} of {outputs.shape}")
        return <uintptr_t>&_sum_up, <uintptr_t>&self.summing, picture_work_size(self.summing.plan)
