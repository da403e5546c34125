"""The function to compute: eight signed 4-bit integers to f16."""

import numpy as np


def s4x8_f16x2x4(q):
    """Takes an array of words and gives one for each output: nibbles k and k + 4 as the lower and upper half of output k."""
    nibbles = [(q >> 4 * k & 15).astype(np.int8) for k in range(8)]
    bits = [np.where(n > 7, n - 16, n).astype(np.float16).view(np.uint16).astype(np.uint32) for n in nibbles]
    return tuple(bits[k] | bits[k + 4] << 16 for k in range(4))


s4x8_f16x2x4.precondition = ""  # such as "q < 2**24": inputs of which results matter
