r"""The checkpoint format: one file of plain arrays with a JSON header and a checksum, without pickle.

Owns the bytes; knows nothing of folders or of what the arrays mean.

    8 bytes   magic "EVOCKPT\n"
    4 bytes   format version, uint32 little-endian
    4 bytes   length of the header, uint32 little-endian
    header    JSON, UTF-8: {"meta": ..., "arrays": [{"name", "dtype", "shape"}, ...]}
    arrays    one after the other, C order, little-endian; of one with "rows": "cut", such as programs, the lengths of its rows
              without the zeros at their ends, uint32, then the rows of these lengths
    32 bytes  SHA-256 of all that comes before
"""

import hashlib
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"EVOCKPT\n"
FORMAT_VERSION = 3
_DIGEST_BYTES = 32
_SHORT_ROW = 8  # words
PREFIX_BYTES = len(MAGIC) + 8


class CheckpointError(ValueError):
    """The bytes are not an intact checkpoint of this format; the message says why."""


class OtherVersionError(CheckpointError):
    """A checkpoint of another version of the format."""


def encode_checkpoint(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    """The checkpoint that holds `meta` (plain JSON values) and `arrays`, part by part. Arrays are not copied."""
    plain = {name: _little_endian(array) for name, array in arrays.items()}
    is_cut = {name: {"rows": "cut"} if _has_long_rows(array) else {} for name, array in plain.items()}
    header = json.dumps(
        {
            "meta": meta,
            "arrays": [{"name": n, "dtype": a.dtype.str, "shape": list(a.shape), **is_cut[n]} for n, a in plain.items()],
        },
        sort_keys=True,
    ).encode()
    prefix = MAGIC + FORMAT_VERSION.to_bytes(4, "little") + len(header).to_bytes(4, "little")
    digest = hashlib.sha256(prefix + header)
    yield prefix + header
    for name, array in plain.items():
        for part in _cut(array) if is_cut[name] else (array,):
            data = part.reshape(-1).view(np.uint8).data
            digest.update(data)
            yield data
    yield digest.digest()


def decode_checkpoint(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Decode the argument of `encode_checkpoint`.

    Raises:
        CheckpointError: another kind of file, or damaged.
        OtherVersionError: another version of the format.
    """
    check_version(data[:PREFIX_BYTES])
    if hashlib.sha256(memoryview(data)[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
        raise CheckpointError("damaged: the checksum does not fit the content")
    header_end = PREFIX_BYTES + int.from_bytes(data[PREFIX_BYTES - 4 : PREFIX_BYTES], "little")
    arrays, offset = {}, header_end

    def take(dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        nonlocal offset
        offset += count * dtype.itemsize
        return np.frombuffer(data, dtype, count, offset - count * dtype.itemsize)

    header = json.loads(data[PREFIX_BYTES:header_end])
    for entry in header["arrays"]:
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        if "rows" in entry:
            array = np.zeros(shape, dtype)
            mask = _is_kept(shape[1], take(np.dtype("<u4"), shape[0]))
            array[mask] = take(dtype, int(mask.sum()))
        else:
            array = take(dtype, math.prod(shape)).reshape(shape)
        arrays[entry["name"]] = array
    return header["meta"], arrays


def check_version(prefix: bytes) -> None:
    """Raises as `decode_checkpoint`, by the first `PREFIX_BYTES` alone."""
    if len(prefix) < PREFIX_BYTES:
        raise CheckpointError(f"cut short at {len(prefix)} bytes")
    if prefix[: len(MAGIC)] != MAGIC:
        raise CheckpointError("not an evo checkpoint: it does not start like one")
    version = int.from_bytes(prefix[len(MAGIC) : len(MAGIC) + 4], "little")
    if version != FORMAT_VERSION:
        raise OtherVersionError(f"checkpoint format {version}; this evo reads format {FORMAT_VERSION}")


def _has_long_rows(array: NDArray[Any]) -> bool:
    """Return whether its rows are cut: lengths would add more to short ones than they save."""
    return array.ndim == 2 and array.dtype == np.uint64 and array.shape[1] > _SHORT_ROW


def _cut(array: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[Any]]:
    is_used = array != 0
    lengths = np.where(is_used.any(axis=1), array.shape[1] - is_used[:, ::-1].argmax(axis=1), 0).astype("<u4")
    return lengths, array[_is_kept(array.shape[1], lengths)]


def _is_kept(width: int, lengths: NDArray[Any]) -> NDArray[np.bool_]:
    return np.arange(width) < lengths[:, None]


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.hasobject:
        raise TypeError(f"a checkpoint holds plain arrays, not {array.dtype}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
