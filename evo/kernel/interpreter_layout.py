"""Division of a block's points among threads, and of its shared memory among values, in the interpreter kernel.

Owns both for the inputs and outputs of a language. Knows nothing of the kernel's text.
"""

from dataclasses import dataclass

from evo.language.program import Language

WARP = 32
_MAX_BLOCK_SIZE = 256
# Four let a load or store of a vector move 16 bytes, the most that one instruction can, and share the work of decoding a step.
# Eight would halve that work again, but also the warps of a multiprocessor, and not the traffic of shared memory (docs/gpu.md).
_POINTS_PER_THREAD = 4
MAX_POINTS = _MAX_BLOCK_SIZE * _POINTS_PER_THREAD  # of a tile, as reduction.POINTS_PER_BLOCK

# Shared memory of a block: 12 vectors. Two such blocks, 16 warps, fit a multiprocessor of compute capability 8.6, 8.9 or 12.0,
# whose 100 KiB are the least since Turing; three fit 8.0, and four 9.0 and 10.0.
NUM_VECTORS = 12
# With many inputs and outputs a block may have twice as much, which is what all GPUs since compute capability 8.0 have for one.
MAX_VECTORS = 24
# Rows of outputs that a warp sums at once, each with an octet of threads.
NUM_OCTETS = 4
# Fewer slots would send programs to the compile lane for the sake of more warps.
_MIN_SLOTS = 7


@dataclass(frozen=True)
class Layout:
    """Threads of a tile, and vectors of a block's shared memory: inputs, then slots, then outputs.

    num_buffered: programs whose outputs are summed at once; 1 in a kernel that stores.
    """

    num_inputs: int
    num_outputs: int
    num_slots: int
    num_buffered: int
    block_size: int
    points_per_thread: int

    @property
    def first_output(self) -> int:
        """The vector of the first output."""
        return self.num_inputs + self.num_slots

    @property
    def num_vectors(self) -> int:
        """All records."""
        return self.first_output + self.num_outputs

    @property
    def points(self) -> int:
        """Points of a tile."""
        return self.block_size * self.points_per_thread

    @property
    def vector_bytes(self) -> int:
        """Bytes of a value at each point of a tile."""
        return 4 * self.points

    @property
    def shared_bytes(self) -> int:
        """Bytes of all vectors."""
        return self.num_vectors * self.vector_bytes

    def num_tiles(self, num_points: int) -> int:
        """Blocks along x."""
        return -(-num_points // self.points)


def layout_of(language: Language, sums: bool, num_points: int = MAX_POINTS) -> Layout | None:
    """Lay out threads and shared memory of a kernel for these inputs and outputs; None if they leave too few slots.

    Args:
        num_points: the most that it will sum.
    """
    num_inputs, num_outputs = len(language.inputs), len(language.outputs)
    num_vectors = max(NUM_VECTORS, num_inputs + num_outputs + _MIN_SLOTS)
    points_per_thread = 1 if num_points <= WARP else _POINTS_PER_THREAD
    num_warps = max(-(-num_points // (WARP * points_per_thread)), -(-num_outputs // NUM_OCTETS) if sums else 1)
    block_size = min(_MAX_BLOCK_SIZE, WARP << (num_warps - 1).bit_length())
    num_buffered = {1: 4, 2: 2}.get(num_outputs, 1) if sums else 1
    num_slots = num_vectors - num_inputs - num_outputs
    layout = Layout(num_inputs, num_outputs, num_slots, num_buffered, block_size, points_per_thread)
    return layout if num_vectors <= MAX_VECTORS else None
