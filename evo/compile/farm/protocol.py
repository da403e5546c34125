"""The farm's wire format: messages as frames, and what each side accepts from the other.

Owns the bounds on whatever a peer may send. Knows nothing of sockets, workers or time; docs/farm.md describes the format.

A message is a header and its data. The header is a frame, a msgpack array: the kind of the message and its fields. Data are cut
into frames, since a peer that is not authenticated can send one.
"""

import hashlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache, cached_property, lru_cache
from typing import Annotated, ClassVar, TypeAlias

import msgpack
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from evo.about import VERSION
from evo.compile.packing import MAX_PROGRAMS
from evo.compile.request import CompileRequest, toolchain
from evo.errors import FailureKind

PROTOCOL = 2
MAX_FRAME_BYTES = 256 << 10
ENCRYPTION_BYTES = 256  # that CURVE adds to a frame, at most
# A module of 4,096 programs takes about 5 MB, a task's own kernel a few.
MAX_MESSAGE_BYTES = 64 << 20
MAX_HEADER_BYTES = 16 << 10
MAX_TEXT = 1024  # characters of a name or a reason
MAX_LOG_BYTES = 64 << 10
MAX_SLOTS = 4096  # requests that a worker fulfils at once
MAX_UNPACKED_BYTES = 256 << 20  # of a language or a template, which are sent compressed
# Shared parts that a worker remembers: those that it was sent last.
MAX_SHARED = 8
# A peer is lost when it was silent for this many heartbeats. So its work is elsewhere before the third one.
HEARTBEATS_OF_LEASE = 2.5

# How a request ends, beside the kinds of failures: in a cubin, or because the run no longer wants it.
COMPILED = "compiled"
CANCELLED = "cancelled"
OUTCOMES = (COMPILED, CANCELLED, FailureKind.REJECTED, FailureKind.TIMED_OUT, FailureKind.DIED)

_ELF_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_ELF_TABLES, _ELF_COUNTS = struct.Struct("<2Q"), struct.Struct("<4H")  # at 32 and 54: of segments and sections


class ProtocolError(Exception):
    """A peer sent what this side does not accept."""


def versions() -> dict[str, str]:
    """What a run and its workers must have in common, so that they make the same cubins."""
    return {"evo": VERSION, **toolchain()}


def first_difference(worker: Mapping[str, str], run: Mapping[str, str]) -> str | None:
    """Why a worker with these versions cannot work for a run with those; None if it can."""
    for name in sorted({*worker, *run}):
        here, there = run.get(name, "none"), worker.get(name, "none")
        if here != there:
            return f"the worker has {name} {there} and the run has {here}: install one version of evo on both machines"
    return None


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line")
    return text


def _outcome(value: object) -> str:
    if value not in OUTCOMES:
        raise ValueError("unknown")
    return str(value)


# What fields may be. Nothing is converted but the lists of msgpack to tuples.
_STRICT = ConfigDict(strict=True)
_Whole = Annotated[int, Field(ge=0, lt=1 << 63)]
_Seconds = Annotated[float, Field(ge=0.0, le=1e6)]
_Text = Annotated[str, Field(max_length=MAX_TEXT)]
_Name = Annotated[_Text, AfterValidator(_one_line)]
_Outcome = Annotated[str, BeforeValidator(_outcome)]
_as_tuple = BeforeValidator(lambda value: tuple(value) if type(value) is list else value)
_Texts = Annotated[tuple[_Text, ...], Field(max_length=64), _as_tuple]


@dataclass(frozen=True, config=_STRICT)
class Hello:
    """Worker: offers itself. name: its machine's."""

    KIND: ClassVar = "hello"
    protocol: _Whole
    versions: Annotated[dict[_Text, _Text], Field(max_length=32)]
    slots: Annotated[int, Field(ge=1, le=MAX_SLOTS)]
    name: _Name


@dataclass(frozen=True, config=_STRICT)
class Welcome:
    """Run: takes the worker. It beats every `heartbeat_s`, and gives each request `compile_s`."""

    KIND: ClassVar = "welcome"
    heartbeat_s: Annotated[_Seconds, Field(gt=0.0)]
    compile_s: Annotated[_Seconds, Field(gt=0.0)]


@dataclass(frozen=True, config=_STRICT)
class Refused:
    """Run: does not take the worker, or takes it no longer. This message is the same in all versions of the protocol."""

    KIND: ClassVar = "refused"
    reason: _Text


@dataclass(frozen=True, config=_STRICT)
class Who:
    """Run: does not know the sender, or took it for lost. The worker forgets its requests and says hello again."""

    KIND: ClassVar = "who"


@dataclass(frozen=True, config=_STRICT)
class Beat:
    """Worker: is alive. Run: answers with the same."""

    KIND: ClassVar = "beat"


@dataclass(frozen=True, config=_STRICT)
class Bye:
    """Worker or run: leaves. reason: what broke; empty if nothing did."""

    KIND: ClassVar = "bye"
    reason: _Text = ""


@dataclass(frozen=True, config=_STRICT)
class Shared:
    """Run: what many requests have in common. They refer to it by its digest."""

    KIND: ClassVar = "shared"
    BLOBS: ClassVar = ("language", "template")
    target: _Text
    sites_per_kernel: Annotated[int, Field(ge=1, le=MAX_PROGRAMS)]
    options: _Texts
    language: bytes
    template: bytes

    @cached_property
    def digest(self) -> bytes:
        """16 bytes, equal for equal parts."""
        header = msgpack.packb([self.target, self.sites_per_kernel, self.options])
        digest = hashlib.sha256()
        for part in (header, self.language, self.template):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.digest()[:16]

    def check_size(self) -> None:
        """Raises ProtocolError if language or template would unpack to too much."""
        for packed in (self.language, self.template.removeprefix(b"ptx\0")):
            unpacker = zlib.decompressobj()
            try:
                unpacker.decompress(packed, MAX_UNPACKED_BYTES)
            except zlib.error:
                continue  # the name of a built-in template; what is damaged fails when it is used
            _check(not unpacker.unconsumed_tail, f"more than {MAX_UNPACKED_BYTES >> 20} MiB")


@dataclass(frozen=True, config=_STRICT)
class Request:
    """Run: programs to compile. shared: a digest; words, lengths, hashes: as in `CompileRequest`."""

    KIND: ClassVar = "request"
    BLOBS: ClassVar = ("words", "lengths", "hashes")
    lease: _Whole
    shared: Annotated[bytes, Field(min_length=16, max_length=16)]
    words: bytes
    lengths: bytes
    hashes: bytes

    def __post_init__(self) -> None:
        count = len(self.lengths) // 4
        _check(0 < count <= MAX_PROGRAMS and len(self.lengths) == 4 * count, "lengths")
        _check(len(self.hashes) == 16 * count, "hashes")
        _check(len(self.words) == 8 * sum(struct.unpack(f"<{count}I", self.lengths)), "words")

    def of(self, shared: Shared) -> CompileRequest:
        """The request, with its shared parts."""
        return CompileRequest(
            self.words,
            self.lengths,
            self.hashes,
            shared.language,
            shared.target,
            shared.sites_per_kernel,
            shared.options,
            shared.template,
        )


@dataclass(frozen=True, config=_STRICT)
class Cancel:
    """Run: no longer wants a request. The worker answers it nonetheless."""

    KIND: ClassVar = "cancel"
    lease: _Whole


@dataclass(frozen=True, config=_STRICT)
class Answer:
    """Worker: how a request ended. content: a cubin, or a log in UTF-8. seal: of `seal`, over the request that it answers."""

    KIND: ClassVar = "answer"
    BLOBS: ClassVar = ("content",)
    lease: _Whole
    outcome: _Outcome
    compiler_s: _Seconds
    emission_s: _Seconds
    seal: bytes
    content: bytes

    def __post_init__(self) -> None:
        _check(self.outcome == COMPILED or len(self.content) <= MAX_LOG_BYTES, "log")


Message: TypeAlias = Hello | Welcome | Refused | Who | Beat | Bye | Shared | Request | Cancel | Answer

# By their kinds, what each side accepts.
FROM_WORKER: dict[str, type[Message]] = {kind.KIND: kind for kind in (Hello, Beat, Bye, Answer)}
FROM_RUN: dict[str, type[Message]] = {kind.KIND: kind for kind in (Welcome, Refused, Who, Beat, Bye, Shared, Request, Cancel)}


def encode(message: Message) -> list[bytes]:
    """The frames of a message. A full one is continued by the next."""
    names, blobs = _names(message.KIND)
    frames = [msgpack.packb([message.KIND, *(getattr(message, name) for name in names)])]
    for name in blobs:
        blob: bytes = getattr(message, name)
        frames += [blob[start : start + MAX_FRAME_BYTES] for start in range(0, len(blob) + 1, MAX_FRAME_BYTES)]
    return frames


def decode(frames: Sequence[bytes], accepted: Mapping[str, type[Message]]) -> Message:
    """The message of these frames. Raises ProtocolError: nothing that is accepted, or a hello of another version."""
    _check(len(frames) > 0 and len(frames[0]) <= MAX_HEADER_BYTES, "header")
    _check(sum(map(len, frames)) <= MAX_MESSAGE_BYTES, "size of a message")
    try:
        values = msgpack.unpackb(frames[0])
    except (ValueError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise ProtocolError(f"a header is not msgpack: {error}") from error
    _check(type(values) is list and len(values) > 0 and type(values[0]) is str and values[0] in accepted, "kind")
    kind = accepted[values[0]]
    if kind is Hello and len(values) > 1 and type(values[1]) is int and values[1] != PROTOCOL:
        raise ProtocolError(
            f"the worker speaks protocol {values[1]} and the run {PROTOCOL}: install one version of evo on both machines"
        )
    names, blobs = _names(kind.KIND)
    _check(len(values) - 1 == len(names), f"number of fields of '{values[0]}'")
    data = _joined(frames[1:])
    _check(len(data) == len(blobs), f"number of frames of '{values[0]}'")
    try:
        return kind(*values[1:], *data)
    except ValidationError as error:
        raise ProtocolError(f"wrong {'.'.join(map(str, error.errors()[0]['loc']))}") from error


def shared_of(request: CompileRequest) -> Shared:
    """What a request has in common with others."""
    return _shared(request.target, request.sites_per_kernel, request.options, request.language, request.template)


def seal(shared: bytes, hashes: bytes, content: bytes) -> bytes:
    """Ties an answer's content to the request that it is for. A worker that mixes up or damages its answers does not match it."""
    digest = hashlib.sha256(shared)
    digest.update(hashes)
    digest.update(content)
    return digest.digest()


def cubin_problem(cubin: bytes, kernels: Sequence[str]) -> str | None:
    """Why this cannot be a whole cubin with these kernels; None if it may be."""
    if len(cubin) < 64 or not cubin.startswith(_ELF_MAGIC):
        return "not an ELF file"
    (segments, sections), sizes = _ELF_TABLES.unpack_from(cubin, 32), _ELF_COUNTS.unpack_from(cubin, 54)
    if max(segments + sizes[0] * sizes[1], sections + sizes[2] * sizes[3]) > len(cubin):
        return "truncated"
    missing = [name for name in kernels if f"\0.text.{name}\0".encode() not in cubin]
    return f"without the kernel {missing[0]}" if missing else None


def printable(text: str) -> str:
    """A peer's text as part of one line."""
    return "".join(character if character.isprintable() else "?" for character in text)


@cache
def _names(kind_name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields in the header of a kind of message, and those that are frames of their own."""
    kind = (FROM_WORKER | FROM_RUN)[kind_name]
    blobs: tuple[str, ...] = getattr(kind, "BLOBS", ())
    return tuple(field.name for field in fields(kind) if field.name not in blobs), blobs


def _joined(frames: Sequence[bytes]) -> list[bytes]:
    """What was cut into frames. What lacks its last frame is left out."""
    data, begun = [], []
    for frame in frames:
        begun.append(frame)
        if len(frame) < MAX_FRAME_BYTES:
            data.append(b"".join(begun) if len(begun) > 1 else frame)
            begun = []
    return data


_shared = lru_cache(maxsize=MAX_SHARED)(Shared)  # a template may be large; its digest is taken once


def _check(is_right: bool, what: str) -> None:
    if not is_right:
        raise ProtocolError(f"wrong {what}")
