"""Films and stills of a program, at any size.

Owns file formats: MP4, WebM and WebP by PyAV, which is optional and brings its encoders along, GIF and PNG. Knows nothing of how
a frame is drawn.
"""

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from PIL import GifImagePlugin, Image

from evo.errors import UserError, os_errors_as
from evo.report.plot.frames import Frame
from evo.report.plot.palette import Palette
from evo.storage.files import PARTIAL_SUFFIX

INSTALL = "pip install 'evo-ptx[film]'"
STILL = ".png"
NUM_SAMPLED = 8  # frames of a loop from which a GIF's palette is taken


class _Format(NamedTuple):
    """container and codec: FFmpeg's names. options: of the codec. container_options: of the container."""

    container: str
    codec: str
    pixels: str
    options: dict[str, str]
    container_options: dict[str, str]


# Quality: constant rate factors at which gradients show no steps.
FORMATS = {
    ".mp4": _Format("mp4", "libx264", "yuv420p", {"crf": "16", "preset": "medium"}, {}),
    ".webm": _Format("webm", "libvpx-vp9", "yuv420p", {"crf": "24", "b": "0", "row-mt": "1", "cpu-used": "4"}, {}),
    ".webp": _Format("webp", "libwebp_anim", "bgra", {"quality": "85", "compression_level": "3"}, {"loop": "0"}),  # 0: forever
}
GIF = ".gif"


def check_output(path: Path, width: int, height: int) -> None:
    """Says before anything is drawn whether a film or still can be written there.

    Raises:
        UserError: the suffix is unknown, the folder is missing, its sides do not suit the format, or PyAV is missing.
    """
    suffix = path.suffix.lower()
    if suffix not in (STILL, GIF, *FORMATS):
        raise UserError(f"unknown kind of file '{suffix}', one of: {', '.join([*FORMATS, GIF, STILL])}", path)
    if not path.absolute().parent.is_dir():
        raise UserError(f"no such folder: {path.parent}", path)
    if path.exists() and not path.is_file():
        raise UserError("exists and is not a file", path)
    if suffix in (STILL, GIF):
        return
    if width % 2 or height % 2:
        raise UserError(f"{width}x{height}: {suffix} films need even sides, such as {width + width % 2}x{height + height % 2}")
    _av()


def write_still(path: Path, frame: Frame) -> None:
    """Writes a PNG. Raises UserError if it cannot be written."""
    with _replacing(path) as partial:
        Image.fromarray(frame).save(partial, format="png")


def write_film(
    path: Path, frames: Iterable[Frame], sampled: Iterable[Frame], fps: int, on_frame: Callable[[], Any] = lambda: None
) -> None:
    """Writes a film of frames of one size. One frame is in memory at a time, beside those of the encoder.

    Args:
        sampled: frames that have the film's colours, for formats with a palette.
        on_frame: called after each frame.

    Raises:
        UserError: the file cannot be written, or the encoder fails.
    """
    if path.suffix.lower() == GIF:
        with _replacing(path) as partial:
            _write_gif(partial, frames, Palette([*sampled]), fps, on_frame)
        return
    av = _av()
    made = FORMATS[path.suffix.lower()]
    encode = _RgbFrames(av, made.pixels)
    with _replacing(path) as partial:
        try:
            with av.open(str(partial), "w", format=made.container, options=made.container_options) as container:
                stream = None
                for frame in frames:
                    if stream is None:
                        stream = container.add_stream(made.codec, rate=fps, options=made.options)
                        stream.height, stream.width = frame.shape[:2]
                        stream.pix_fmt = made.pixels
                        encode.describe(stream)
                    for packet in stream.encode(encode(frame)):
                        container.mux(packet)
                    on_frame()
                if stream:
                    for packet in stream.encode():
                        container.mux(packet)
        except av.FFmpegError as error:
            raise UserError(f"the encoder {made.codec} failed: {error.strerror or error}", path) from error


class _RgbFrames:
    """Frames for codecs of video. Their colours are those of HD video, BT.709, which the file says."""

    def __init__(self, av: Any, pixels: str):
        self._av, self._pixels = av, pixels

    def describe(self, stream: Any) -> None:
        context = stream.codec_context
        context.color_primaries = context.color_trc = context.colorspace = 1  # BT.709 in ITU-T H.273
        context.color_range = 1  # 16 to 235

    def __call__(self, frame: Frame) -> Any:
        video_frame = self._av.VideoFrame.from_ndarray(frame, format="rgb24")
        return video_frame.reformat(format=self._pixels, dst_colorspace="ITU709", dst_color_range="MPEG")


def _write_gif(path: Path, frames: Iterable[Frame], palette: Palette, fps: int, on_frame: Callable[[], Any]) -> None:
    """Frame by frame: Pillow's `save_all` holds all of them in memory."""
    with path.open("wb") as file:
        for number, frame in enumerate(frames):
            picture = palette(frame)
            if number == 0:
                file.writelines(GifImagePlugin.getheader(picture.copy(), info={"loop": 0})[0])
            file.writelines(GifImagePlugin.getdata(picture, duration=1000 // fps))
            on_frame()
        file.write(b";")


def _av() -> Any:
    try:
        import av
    except ImportError as error:
        raise UserError(f"such films need PyAV: {INSTALL} ({error}); {GIF} and {STILL} do not") from error
    return av


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A path to write to, whose file takes the place of `path` at the end, or is deleted on failure."""
    partial = path.with_name(f".{path.stem}.{secrets.token_hex(8)}{PARTIAL_SUFFIX}")
    try:
        with os_errors_as(f"{path}: cannot write"):
            yield partial
            os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
