"""PTX Inject: named sites in a CUDA kernel, where other PTX is injected after compilation.

    inject = PTXInject(ptx)                       PTX from nvcc or NVRTC of a kernel with sites
    x, z = inject["func"]["x"].register, inject["func"]["z"].register
    ptx = inject.render({"func": f"add.ftz.f32 %{z}, %{x}, %{x};"})

csrc/ptx_inject.h, which does the work, documents how CUDA marks sites: by `PTX_INJECT("func", PTX_IN(F32, x), ...)`, or by
comments, which `process_cuda` or the command `ptxinject` turns into inline assembly before compilation.

Owns the interface for Python; submodules have types in JSON and generated headers for C. Knows nothing of programs or of
compiling, and loads no CUDA library. `evo.compile` uses evo.native.ptx_inject, which deals in bytes and indices.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Self

from evo.native.ptx_inject import DEFAULT_TYPES, AnnotatedPtx, AnnotationError, DataType, Inject, Variable, process_cuda

__all__ = ["DEFAULT_TYPES", "AnnotationError", "DataType", "PTXInject", "Sites", "Variable", "process_cuda"]

_MAX_LISTED = 20  # names in a message


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

    As in mm-ptx-py, `render_ptx` is `render`, and it may stand in a `with` statement, which does nothing at its end.

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
        self._source = (ptx, None if types is None else tuple(types))  # to pickle it
        self._native = AnnotatedPtx(ptx, types)

    def __reduce__(self) -> tuple[Any, ...]:
        return PTXInject, self._source

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def injects(self) -> tuple[Sites, ...]:
        """The sites of each name, in order of appearance."""
        return tuple(self.values())

    def __getitem__(self, name: str) -> Sites:
        try:
            return Sites(self._native.info(name))
        except KeyError:
            raise KeyError(f"the PTX has no site {name!r}, only {_listed(self)}") from None

    def __contains__(self, name: object) -> bool:
        try:
            self._native.info(name)
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._native.names())

    def __len__(self) -> int:
        return self._native.num_injects

    def __repr__(self) -> str:
        return f"PTXInject({ {name: sites.num_sites for name, sites in self.items()} })"

    def describe(self) -> dict[str, Any]:
        """The sites as JSON data, for programs that make stubs elsewhere: all but the PTX itself.

        A worker that has it and the JSON of an instruction set can compile programs over the registers of the sites:
        `{"abi_version": 1, "sites": [{"name", "num_sites", "variables": [...]}]}`, in order of appearance, where a variable has
        the fields of `Variable`. `[Variable(**fields) for fields in site["variables"]]` makes them again.
        """
        sites = [
            {"name": name, "num_sites": sites.num_sites, "variables": [variable._asdict() for variable in sites.values()]}
            for name, sites in self.items()
        ]
        return {"abi_version": 1, "sites": sites}

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
        names = self._native.names()
        if missing := [name for name in names if name not in stubs]:
            raise ValueError(f"stubs: none for {_listed(missing)}")
        if len(stubs) > len(names):
            known = set(names)
            raise ValueError(
                f"stubs: the PTX has no site {_listed(name for name in stubs if name not in known)}, only {_listed(names)}"
            )
        for name, stub in stubs.items():
            if not isinstance(stub, str):
                raise TypeError(f"stubs: the one for '{name}' is {type(stub).__name__}, expected str")
        return self._native.render([stubs[name] for name in names]).decode()

    render_ptx = render


def _decoded(ptx: bytes) -> str:
    try:
        return ptx.decode()
    except UnicodeDecodeError as error:
        before = ptx[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        raise AnnotationError("PTX", line, column, "a byte that is not UTF-8") from None


def _listed(names: Iterable[str]) -> str:
    quoted = [f"'{name}'" for name in islice(names, _MAX_LISTED + 1)]
    return ", ".join(quoted[:_MAX_LISTED] + ["..."] * (len(quoted) > _MAX_LISTED)) or "none"
