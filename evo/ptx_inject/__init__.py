"""PTX Inject: named sites in a CUDA kernel, where other PTX is injected after compilation.

    inject = PTXInject(ptx)                       PTX from nvcc or NVRTC of a kernel with sites
    x, z = inject["func"]["x"].register, inject["func"]["z"].register
    ptx = inject.render({"func": f"add.ftz.f32 %{z}, %{x}, %{x};"})

csrc/ptx_inject.h, which does the work, documents how CUDA marks sites: by `PTX_INJECT("func", PTX_IN(F32, x), ...)`, or by
comments, which `process_cuda` or the command `ptxinject` turns into inline assembly before compilation.

Owns the interface for Python; submodules have types in JSON and generated headers for C. Knows nothing of programs or of
compiling, and loads no CUDA library. `evo.compile` uses evo.native.ptx_inject, which deals in bytes and indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from evo.native.ptx_inject import DEFAULT_TYPES, AnnotatedPtx, AnnotationError, DataType, Inject, Variable, process_cuda

__all__ = ["DEFAULT_TYPES", "AnnotationError", "DataType", "PTXInject", "Sites", "Variable", "process_cuda"]


class Sites(Mapping[str, Variable]):
    """All sites of one name: a mapping from the names of their variables, in the order of the markers.

    Attributes:
        name: the name in the CUDA source.
        num_sites: the number of sites in the PTX; inlining and unrolling copy them.
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
    """Annotated PTX, parsed once: a mapping from the names of its sites, in order of appearance. Immutable and thread-safe.

    Args:
        ptx: from nvcc or NVRTC, of a CUDA source with or without sites; bytes are UTF-8.
        types: types of sites marked by comments, instead of `DEFAULT_TYPES`.

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
            stubs: for each name the PTX that its sites get, over the registers in `self[name]`. It may declare registers of its
                own inside braces.

        Raises:
            ValueError: a name is missing or unknown, or a stub holds a NUL.
            TypeError: `stubs` is not a mapping, or a stub is not a str.
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
