"""Kernel templates as compile requests carry them: which kernel programs' stubs go into.

Owns the two kinds: the pointwise kernel, of which only the name travels, as every process can make its text; and the kernel of a
task's own `kernel.cu`, whose annotated PTX travels, so that no worker needs a CUDA compiler or a file. In both, program i of a
request goes to `site_i`.
"""

from __future__ import annotations

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

    content: what travels and tells templates apart; it is part of every cubin's cache key. num_sites: of the one kernel that a
    module then has, all programs of which it serves; None: a module has kernels as many and as large as are asked for.
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
    """The annotated PTX of a template of a task's own kernel.

    Raises:
        ValueError: this is the content of no such template.
    """
    if not content.startswith(_PTX_PREFIX):
        raise ValueError(f"template {content[:32]!r} is not known here")
    return zlib.decompress(content[len(_PTX_PREFIX) :])


def fill_sites(inject: AnnotatedPtx, stubs: Sequence[str]) -> bytes:
    """The PTX with stub i at `site_i`, and nothing at the sites behind, which no thread comes to.

    A compiler orders the sites of its own PTX as it likes.
    """
    in_order = [""] * inject.num_injects
    for i, stub in enumerate(stubs):
        in_order[inject.info(f"site_{i}").index] = stub
    return inject.render(in_order)
