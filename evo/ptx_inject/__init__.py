"""PTX Inject: named places in a CUDA kernel where other PTX can be put after compilation.

    inject = PTXInject(ptx)                       PTX that nvcc or NVRTC made of a kernel with sites
    x, z = inject["func"]["x"].register, inject["func"]["z"].register
    ptx = inject.render({"func": f"add.ftz.f32 %{z}, %{x}, %{x};"})

How sites are marked in CUDA is told in csrc/ptx_inject.h, which does the work: `PTX_INJECT("func", PTX_IN(F32, x), ...)`, or
comments, which `process_cuda` or the command `ptxinject` turn into inline assembly before compilation.

Owns what a Python user sees of it; see the submodules for types in JSON and for headers that are written for C. Knows nothing of
programs or of compiling, and loads nothing of CUDA. `evo.compile` uses evo.native.ptx_inject, which speaks bytes and indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from evo.native.ptx_inject import DEFAULT_TYPES, AnnotatedPtx, AnnotationError, DataType, Inject, Variable, process_cuda

__all__ = ["DEFAULT_TYPES", "AnnotationError", "DataType", "PTXInject", "Sites", "Variable", "process_cuda"]


class Sites(Mapping[str, Variable]):
    """All sites of one name, and the variables that each of them has: a mapping from a variable's name, in marker order.

    Attributes:
        name: what the CUDA source calls them.
        num_sites: how many there are in the PTX; inlining and unrolling make many of one.
    """

    def __init__(self, inject: Inject):
        self.name = inject.name
        self.num_sites = inject.num_sites
        self._variables = {variable.name: variable for variable in inject.variables}

    def __getitem__(self, name: str) -> Variable:
        try:
            return self._variables[name]
        except KeyError:
            raise KeyError(f"site '{self.name}' has no variable {name!r}, only {_listed(self._variables)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        return f"Sites(name={self.name!r}, num_sites={self.num_sites}, variables={list(self._variables.values())})"


class PTXInject(Mapping[str, Sites]):
    """Annotated PTX, read once: a mapping from the names of its sites, in order of appearance. Immutable, usable from any thread.

    Args:
        ptx: what nvcc or NVRTC made of a CUDA source with sites; bytes are UTF-8. PTX without sites has none.
        types: the types of sites that were marked by comments, if they are not `DEFAULT_TYPES`.

    Raises:
        AnnotationError: the markers are wrong; a ValueError with line, column and reason.
        ValueError: a type is wrong.
    """

    def __init__(self, ptx: str | bytes, types: Sequence[DataType] | None = None):
        if isinstance(ptx, bytes):
            ptx = _decoded(ptx)
        self._native = AnnotatedPtx(ptx, types)
        self._sites = {inject.name: Sites(inject) for inject in self._native.injects}

    def __getitem__(self, name: str) -> Sites:
        try:
            return self._sites[name]
        except KeyError:
            raise KeyError(f"the PTX has no site {name!r}, only {_listed(self._sites)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._sites)

    def __len__(self) -> int:
        return len(self._sites)

    def __repr__(self) -> str:
        return f"PTXInject({ {name: sites.num_sites for name, sites in self._sites.items()} })"

    def render(self, stubs: Mapping[str, str]) -> str:
        """The PTX with a stub in every site.

        Args:
            stubs: for each name of `self` the PTX that its sites get, over the registers that `self[name]` tells. It may
                declare registers of its own inside of braces.

        Raises:
            ValueError: a name is missing, or is none of the PTX's; a stub holds a NUL.
            TypeError: `stubs` is no mapping, or a stub is no str.
        """
        if not isinstance(stubs, Mapping):
            raise TypeError(f"stubs: expected a mapping from names to stubs, not {type(stubs).__name__}")
        if missing := [name for name in self._sites if name not in stubs]:
            raise ValueError(f"stubs: none for {_listed(missing)}")
        if len(stubs) > len(self._sites):
            unknown = [name for name in stubs if name not in self._sites]
            raise ValueError(f"stubs: the PTX has no site {_listed(unknown)}, only {_listed(self._sites)}")
        for name, stub in stubs.items():
            if not isinstance(stub, str):
                raise TypeError(f"stubs: the one for '{name}' is {type(stub).__name__}, expected str")
        return self._native.render([stubs[name] for name in self._sites]).decode()


def _decoded(ptx: bytes) -> str:
    try:
        return ptx.decode()
    except UnicodeDecodeError as error:
        before = ptx[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        raise AnnotationError("PTX", line, column, "a byte that is not UTF-8") from None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
