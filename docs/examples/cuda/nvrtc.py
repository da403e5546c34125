"""CUDA to PTX with NVRTC, without nvcc. Other examples use it too. Needs no GPU and no driver.

python docs/examples/cuda/nvrtc.py INPUT.cu OUTPUT.ptx
"""

import sys
from importlib.metadata import distribution
from pathlib import Path

from cuda.bindings import nvrtc

CSRC = Path(__file__).parents[3] / "csrc"
CUDA_HEADERS = Path(distribution("nvidia-cuda-runtime").locate_file("nvidia/cu13/include"))


def compile_cuda(source, architecture="compute_80", include_paths=(CSRC, CUDA_HEADERS), options=()):
    """Compiles CUDA.

    Args:
        source: str, one kernel file.
        architecture: `compute_80` gives PTX, `sm_80` a cubin.
        include_paths: folders where headers are.
        options: more options of NVRTC, as str.

    Returns:
        bytes, PTX text or cubin.

    Raises:
        ValueError: NVRTC refused the source; the message contains its log.
    """
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, [], [])
    arguments = [f"--gpu-architecture={architecture}", *(f"--include-path={path}" for path in include_paths), *options]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(arguments), [argument.encode() for argument in arguments])
    if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        log = _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        nvrtc.nvrtcDestroyProgram(program)
        raise ValueError(f"NVRTC refused the source:\n{log.rstrip(bytes(1)).decode()}")
    if architecture.startswith("sm_"):
        compiled = _text(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
    else:
        compiled = _text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).rstrip(b"\0")
    nvrtc.nvrtcDestroyProgram(program)
    return compiled


def _text(program, size_of, read):
    _, num_bytes = size_of(program)
    text = bytearray(num_bytes)
    read(program, text)
    return bytes(text)


def main():
    """Compiles a file; errors are reported without a traceback."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} INPUT.cu OUTPUT.ptx")
    try:
        Path(sys.argv[2]).write_bytes(compile_cuda(Path(sys.argv[1]).read_text()))
    except (OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
