"""Kernel templates as compile requests carry them: the kernels that programs' stubs go into.

Owns the two kinds. The pointwise kernel is sent as its name, as every process can generate its text. A task's own
`kernel.cu` is sent as annotated PTX, so that no worker needs a CUDA compiler or a file. In both, program i of a request goes to
`site_i`.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from evo.kernel import pointwise
from evo.native.ptx_inject import AnnotatedPtx

# The entry of a task's own kernel.
ENTRY = "evaluate"

_PTX_PREFIX = b"ptx\0"


@dataclass(frozen=True)
class KernelTemplate:
    """A kernel that programs' stubs go into.

    content: is sent to workers, identifies the template and is part of every cubin's cache key. num_sites: sites of a module's
    only kernel; None: a module has any number of kernels of any size.
    """

    content: bytes
    num_sites: int | None = None


POINTWISE = KernelTemplate(pointwise.TEMPLATE.encode())


def task_template(ptx: bytes, num_sites: int) -> KernelTemplate:
    """The template of a task's own kernel.

    Args:
        ptx: a module for one target with the kernel ENTRY and the sites `site_0` up to `num_sites`, over the registers of
            `pointwise.site_variables`; each may occur many times.
    """
    return KernelTemplate(_PTX_PREFIX + zlib.compress(ptx, 9), num_sites)


def task_ptx(content: bytes) -> bytes:
    """The annotated PTX of a template of a task's own kernel. Raises ValueError: `content` is of no such template."""
    if not content.startswith(_PTX_PREFIX):
        raise ValueError(f"template {content[:32]!r} is unknown")
    return zlib.decompress(content[len(_PTX_PREFIX) :])


def fill_sites(inject: AnnotatedPtx, stubs: Sequence[str]) -> bytes:
    """The PTX with stub i at `site_i`, and nothing at further sites, which no thread reaches."""
    # A compiler may have reordered the sites.
    in_order = [""] * inject.num_injects
    for i, stub in enumerate(stubs):
        in_order[inject.info(f"site_{i}").index] = stub
    return inject.render(in_order)
