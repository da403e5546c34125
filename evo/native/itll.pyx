# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""Models that learn while a search runs: NumPy arrays in and out.

Owns the memory of a model and of its predictions. Knows nothing of programs and searches. csrc/itll.h documents the models.
"""

import numpy as np

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from evo.native.arrays cimport address


cdef extern from "itll.h" nogil:
    ctypedef enum ItllResult:
        ITLL_SUCCESS
        ITLL_ERROR_INVALID_STATE

    ctypedef enum ItllLevel:
        ITLL_LEVEL_NUM_ENUMS

    ctypedef enum ItllModelKind:
        ITLL_MODEL_RIDGE
        ITLL_MODEL_PCA

    ctypedef struct ItllOptions:
        ItllModelKind kind
        uint32_t num_features
        uint32_t num_targets
        uint32_t window
        uint32_t num_units
        float length_scale
        float noise
        uint64_t seed

    ctypedef struct ItllModel:
        pass

    const int ITLL_STATE_VERSION
    const int ITLL_MAX_PCA_FEATURES

    const char* itll_result_to_string(ItllResult)
    const char* itll_level_to_string(ItllLevel)
    bint itll_level_is_available(ItllLevel)
    ItllLevel itll_best_level()
    ItllOptions itll_default_options(ItllModelKind, uint32_t, uint32_t)
    ItllResult itll_model_size(const ItllOptions*, size_t*)
    ItllResult itll_model_init(const ItllOptions*, ItllLevel, void*, size_t, ItllModel**)
    const ItllOptions* itll_model_options(const ItllModel*)
    size_t itll_model_num_rows(const ItllModel*)
    ItllResult itll_reset(ItllModel*)
    ItllResult itll_update(ItllModel*, const float*, const float*, size_t)
    ItllResult itll_workspace_size(const ItllModel*, size_t*)
    ItllResult itll_predict(const ItllModel*, const float*, size_t, float*, float*, void*, size_t)
    ItllResult itll_state_size(const ItllModel*, size_t*)
    ItllResult itll_save(const ItllModel*, void*, size_t)
    ItllResult itll_state_options(const void*, size_t, ItllOptions*)
    ItllResult itll_load(ItllModel*, const void*, size_t)


# Changes whenever a state means something else, or the same rows give other bits.
STATE_VERSION: int = ITLL_STATE_VERSION
MAX_PCA_FEATURES: int = ITLL_MAX_PCA_FEATURES

_KINDS = {"ridge": ITLL_MODEL_RIDGE, "pca": ITLL_MODEL_PCA}  # in the order of their codes
KINDS: tuple[str, ...] = tuple(_KINDS)
_LEVELS = [itll_level_to_string(<ItllLevel>code).decode() for code in range(ITLL_LEVEL_NUM_ENUMS)]


def levels() -> list[str]:
    """Names of the SIMD levels that this build and this CPU have, the slowest first. Results do not depend on them."""
    return [level for code, level in enumerate(_LEVELS) if itll_level_is_available(<ItllLevel><int>code)]


cdef class Model:
    """A model that learns from rows as they come. csrc/itll.h says what each kind does and what its options mean.

    Predictions release the GIL, and threads may predict together; updates release it too, but nobody else may use the model then.

    Args:
        kind: one of `KINDS`.
        num_features: columns of a row.
        num_targets: columns that are predicted; of `pca`, components.
        level: name of a SIMD level of `levels()`, or None for the fastest. Results do not depend on it.
        options: `window`, `num_units`, `length_scale`, `noise`, `seed`.

    Raises:
        ValueError: an option is unknown or out of range, or there is no such level.
    """

    cdef ItllModel* model
    cdef void* memory
    cdef readonly object kind  #: str
    cdef readonly object level  #: str

    def __cinit__(self, kind: str, num_features: int, num_targets: int = 1, *, level: str | None = None, **options):
        cdef size_t num_bytes = 0
        if kind not in _KINDS:
            raise ValueError(f"no model '{kind}', one of: {', '.join(KINDS)}")
        cdef ItllOptions c_options = _options(kind, {"num_features": num_features, "num_targets": num_targets, **options})
        if itll_model_size(&c_options, &num_bytes) != ITLL_SUCCESS:
            given = ", ".join(f"{name} {value}" for name, value in _options_of(&c_options).items())
            raise ValueError(f"{kind}: an option is out of the range that csrc/itll.h states: {given}")
        cdef ItllLevel code = itll_best_level()
        if level is not None:
            if level not in levels():
                raise ValueError(f"SIMD level '{level}' is not available here, one of: {', '.join(levels())}")
            code = <ItllLevel><int>_LEVELS.index(level)
        self.kind = kind
        self.level = _LEVELS[code]
        self.memory = malloc(num_bytes)
        if self.memory == NULL:
            raise MemoryError(f"no memory for a model of {num_bytes} bytes")
        _check(itll_model_init(&c_options, code, self.memory, num_bytes, &self.model))

    def __dealloc__(self):
        free(self.memory)

    @staticmethod
    def from_state(state: bytes | NDArray[np.uint8], level: str | None = None) -> Model:
        """The model that a state was saved from.

        Raises:
            ValueError: the bytes are not a state, or one of another version.
        """
        cdef ItllOptions options
        state = _bytes(state)
        if itll_state_options(address(state), len(state), &options) != ITLL_SUCCESS:
            raise ValueError(f"the bytes are not a state of a model in version {STATE_VERSION}")
        model = Model(KINDS[<int>options.kind], level=level, **_options_of(&options))
        model.load(state)
        return model

    @property
    def options(self) -> dict[str, Any]:
        """Its options by name."""
        return _options_of(itll_model_options(self.model))

    @property
    def num_rows(self) -> int:
        """Rows that it knows: those of its window; of `pca`, those of the newest update."""
        return itll_model_num_rows(self.model)

    def reset(self) -> None:
        """Forgets everything."""
        _check(itll_reset(self.model))

    def update(self, rows: ArrayLike, targets: ArrayLike | None = None) -> None:
        """Learns from rows, the oldest first; `pca` from these alone. A row with a target that is not finite is skipped.

        Args:
            rows: `(num_rows, num_features)`, taken as float32.
            targets: `(num_rows, num_targets)` or, for one target, `(num_rows,)`. None for `pca`.

        Raises:
            ValueError: an array has another shape.
        """
        cdef const float* c_rows
        cdef const float* c_targets = NULL
        cdef size_t num_rows
        cdef ItllResult result
        rows = self._rows(rows)
        if self.kind == "pca":
            if targets is not None:
                raise ValueError("targets: pca learns from rows alone; expected None")
        else:
            wanted = itll_model_options(self.model).num_targets
            targets = np.ascontiguousarray(targets, np.float32)
            if targets.ndim == 1 and wanted == 1:
                targets = targets[:, None]
            if targets.shape != (len(rows), wanted):
                raise ValueError(f"targets: expected shape ({len(rows)}, {wanted}), got {targets.shape}")
            c_targets = <const float*>address(targets)
        c_rows = <const float*>address(rows)
        num_rows = len(rows)
        with nogil:
            result = itll_update(self.model, c_rows, c_targets, num_rows)
        _check(result)

    def predict(self, rows: ArrayLike, return_std: bool = False) -> Any:
        """Predicted targets, `(num_rows, num_targets)` float32; of `pca`, coordinates.

        Args:
            rows: `(num_rows, num_features)`, taken as float32.
            return_std: also return the standard deviation of what a target will be around its prediction, in the same shape.

        Raises:
            ValueError: the array has another shape, or the model has no uncertainty.
        """
        cdef size_t num_rows, workspace_bytes = 0
        cdef ItllResult result
        cdef float* deviations = NULL
        rows = self._rows(rows)
        if return_std and self.kind == "pca":
            raise ValueError("return_std: pca has no uncertainty; expected False")
        shape = (len(rows), itll_model_options(self.model).num_targets)
        means = np.empty(shape, np.float32)
        std = np.empty(shape, np.float32) if return_std else None
        if return_std:
            deviations = <float*>address(std)
        cdef const float* c_rows = <const float*>address(rows)
        cdef float* c_means = <float*>address(means)
        num_rows = len(rows)
        _check(itll_workspace_size(self.model, &workspace_bytes))
        cdef void* workspace = malloc(workspace_bytes)
        if workspace == NULL:
            raise MemoryError("no memory to predict")
        with nogil:
            result = itll_predict(self.model, c_rows, num_rows, c_means, deviations, workspace, workspace_bytes)
            free(workspace)
        _check(result)
        return (means, std) if return_std else means

    def save(self) -> NDArray[np.uint8]:
        """Everything that it has learned, `(num_bytes,)` uint8: a model that loads it goes on as if it had never been saved."""
        cdef size_t num_bytes = 0
        _check(itll_state_size(self.model, &num_bytes))
        state = np.empty(num_bytes, np.uint8)
        _check(itll_save(self.model, address(state), num_bytes))
        return state

    def load(self, state: bytes | NDArray[np.uint8]) -> None:
        """Learns what a state says, and forgets the rest.

        Args:
            state: bytes or uint8, of a model with these options. Any SIMD level, any machine.

        Raises:
            ValueError: the bytes are not a state, or one of another version or of other options; the model has forgotten everything.
        """
        cdef ItllResult result
        state = _bytes(state)
        result = itll_load(self.model, address(state), len(state))
        if result == ITLL_ERROR_INVALID_STATE:
            raise ValueError(f"the bytes are not a state of a model in version {STATE_VERSION}")
        if result != ITLL_SUCCESS:
            raise ValueError(f"the state is of a model with other options; expected {self.kind}: {self.options}")

    def __reduce__(self):
        return Model.from_state, (self.save().tobytes(),)

    def _rows(self, rows):
        rows = np.ascontiguousarray(rows, np.float32)
        wanted = itll_model_options(self.model).num_features
        if rows.ndim != 2 or rows.shape[1] != wanted:
            raise ValueError(f"rows: expected shape (num_rows, {wanted}), got {rows.shape}")
        return rows


cdef ItllOptions _options(kind, dict given) except *:
    """The default options with those that are given."""
    cdef ItllOptions options = itll_default_options(_KINDS[kind], 1, 1)
    cdef dict known = _options_of(&options)
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"no option '{name}', one of: {', '.join(known)}")
        most = 2**64 if name == "seed" else 2**32
        if isinstance(known[name], int) and not (isinstance(value, (int, np.integer)) and 0 <= value < most):
            raise ValueError(f"{name}: expected a whole number from 0 to {most - 1}, got {value!r}")
    return {**known, **given, "kind": _KINDS[kind]}


cdef dict _options_of(const ItllOptions* options):
    cdef dict found = options[0]
    del found["kind"]
    return found


def _bytes(state):
    return np.ascontiguousarray(np.frombuffer(state, np.uint8))


cdef int _check(ItllResult result) except -1:
    if result != ITLL_SUCCESS:
        raise ValueError(f"ITLL refused its input: {itll_result_to_string(result).decode()}")
    return 0
