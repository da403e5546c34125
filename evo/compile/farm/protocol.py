"""The farm's wire format: messages as frames, and bounds on them. docs/farm.md lists the messages.

A message is a tuple: its kind, its fields, and its data. Kind and fields are a frame, a msgpack array. Data are cut into frames,
since strangers can send one before they are authenticated. Knows nothing of sockets, workers or time.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgpack

from evo.about import VERSION
from evo.compile.request import toolchain

PROTOCOL = 3
MAX_FRAME_BYTES = 256 << 10
# A module of 4,096 programs takes about 5 MB, a task's own kernel a few.
MAX_MESSAGE_BYTES = 64 << 20
MAX_HEADER_BYTES = 16 << 10
MAX_TEXT = 1024  # characters of a name or a reason
MAX_SLOTS = 4096  # requests that a worker fulfils at once
# A peer is lost when it was silent for this many heartbeats. So its work is elsewhere before the third one.
HEARTBEATS_OF_LEASE = 2.5

Message: TypeAlias = tuple[Any, ...]


class ProtocolError(Exception):
    """A peer sent a message that this side does not accept."""


def versions() -> dict[str, str]:
    """Versions that a run and its workers must have in common to make the same cubins."""
    return {"protocol": str(PROTOCOL), "evo": VERSION, **toolchain()}


def first_difference(worker: Mapping[str, str]) -> str | None:
    """Why a worker with these versions cannot work for this run; None if it can."""
    for name, version in versions().items():
        if worker.get(name) != version:
            worker_version = short_text(str(worker.get(name, "none")))
            return (
                f"the worker has {name} {worker_version} and the run has {version}: install one version of evo on both machines"
            )
    return None


def short_text(text: str) -> str:
    """A peer's text as part of one line."""
    return "".join(character if character.isprintable() else "?" for character in text[:MAX_TEXT])


def encode(message: Message) -> list[bytes]:
    """The frames of a message: its data come last. A full frame is continued by the next."""
    frames: list[bytes] = [msgpack.packb([part for part in message if not isinstance(part, bytes)])]
    for data in message:
        if isinstance(data, bytes):
            frames += [data[start : start + MAX_FRAME_BYTES] for start in range(0, len(data) + 1, MAX_FRAME_BYTES)]
    return frames


def decode(frames: Sequence[bytes]) -> Message:
    """The message of these frames. Raises ProtocolError: they exceed the bounds, or are not a message."""
    if not frames or len(frames[0]) > MAX_HEADER_BYTES or sum(map(len, frames)) > MAX_MESSAGE_BYTES:
        raise ProtocolError("wrong size of a message")
    try:
        header = msgpack.unpackb(frames[0])
    except (ValueError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise ProtocolError(f"a header is not msgpack: {error}") from error
    if type(header) is not list:
        raise ProtocolError("a header is not a list")
    data, begun = [], []
    for frame in frames[1:]:
        begun.append(frame)
        if len(frame) < MAX_FRAME_BYTES:  # data without their last frame are left out
            data.append(b"".join(begun))
            begun.clear()
    return (*header, *data)
