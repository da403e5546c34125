r"""The checkpoint format: one file of plain arrays with a JSON header and a checksum, without pickle.

Owns the bytes; knows nothing of folders or of what the arrays mean.

    8 bytes   magic "EVOCKPT\n"
    4 bytes   format version, uint32 little-endian
    4 bytes   length of the header, uint32 little-endian
    header    JSON, UTF-8: {"meta": ..., "arrays": [{"name", "dtype", "shape"}, ...]}
    arrays    one after the other, C order, little-endian
    32 bytes  SHA-256 of all that comes before
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"EVOCKPT\n"
FORMAT_VERSION = 2  # evo 0.1 wrote version 1
_DIGEST_BYTES = 32
_PREFIX_BYTES = len(MAGIC) + 8


class CheckpointError(ValueError):
    """The bytes are not an intact checkpoint of this format; the message says why."""


class OtherVersionError(CheckpointError):
    """A checkpoint of another version of the format."""


def encode_checkpoint(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    """The checkpoint that holds `meta` (plain JSON values) and `arrays`, part by part. Arrays are not copied."""
    plain = {name: _little_endian(array) for name, array in arrays.items()}
    header = json.dumps(
        {
            "meta": meta,
            "arrays": [{"name": n, "dtype": a.dtype.str, "shape": list(a.shape)} for n, a in plain.items()],
        },
        sort_keys=True,
    ).encode()
    prefix = MAGIC + FORMAT_VERSION.to_bytes(4, "little") + len(header).to_bytes(4, "little")
    parts: list[bytes | memoryview] = [prefix, header, *(array.reshape(-1).view(np.uint8).data for array in plain.values())]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
        yield part
    yield digest.digest()


def decode_checkpoint(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `encode_checkpoint` was given.

    Raises:
        CheckpointError: another kind of file, or damaged.
        OtherVersionError: another version of the format.
    """
    if len(data) < _PREFIX_BYTES + _DIGEST_BYTES:
        raise CheckpointError(f"cut short at {len(data)} bytes")
    if data[: len(MAGIC)] != MAGIC:
        raise CheckpointError("not an evo checkpoint: it does not start like one")
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "little")
    if version != FORMAT_VERSION:
        writer = "written by evo 0.1, " if version == 1 else ""
        raise OtherVersionError(f"{writer}checkpoint format {version}; this evo reads format {FORMAT_VERSION}")
    if hashlib.sha256(memoryview(data)[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
        raise CheckpointError("damaged: the checksum does not fit the content")
    header_end = _PREFIX_BYTES + int.from_bytes(data[_PREFIX_BYTES - 4 : _PREFIX_BYTES], "little")
    header = json.loads(data[_PREFIX_BYTES:header_end])
    arrays, offset = {}, header_end
    for entry in header["arrays"]:
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        arrays[entry["name"]] = np.frombuffer(data, dtype, count, offset).reshape(shape)
        offset += count * dtype.itemsize
    return header["meta"], arrays


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.hasobject:
        raise TypeError(f"a checkpoint holds plain arrays, not {array.dtype}")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
