"""Headers for C: one with types, and one with a text as C data.

Owns their text, which is C99 and C++11 without warnings. Knows nothing of files or command lines.
"""

import re
from collections.abc import Sequence

from evo.c_text import KEYWORDS, header
from evo.errors import UserError
from evo.native.ptx_inject import DataType

# The bindings that ptx_inject.h has; see PTX_TYPES_DESC there.
_BIND_KINDS = {"": "ID", "*(unsigned short*)&": "U16", "*(unsigned int*)&": "U32"}
_BYTES_PER_LINE = 32


def render_types_header(types: Sequence[DataType], file_name: str) -> str:
    """A header with the types for both forms of sites: macros `PTX_TYPE_INFO_<NAME>`, and a table for the host.

    Args:
        types: of `load_types`; macros use their names in upper case, as in `PTX_IN(MASK, x)`.
        file_name: for the include guard.
    """
    tokens = [data_type.name.upper() for data_type in types]
    purpose = [
        f"{file_name} - types of PTX Inject: {', '.join(data_type.name for data_type in types)}.",
        "",
        f"Macro form: {', '.join(f'PTX_IN({token}, x)' for token in tokens[:2])}, and so on; a type of this name that",
        "ptx_inject.h has is replaced. Comment form: ptx_inject_data_types goes to ptx_inject_process_cuda and",
        "ptx_inject_create_with_types.",
        "",
        "Written by `python -m evo.ptx_inject generate`; edit its input instead.",
    ]
    macros = [line for data_type in types for line in _macro_lines(data_type)]
    enumerators = [f"    PTX_INJECT_DATA_TYPE_{token}," for token in tokens]
    table = [
        f'    {{"{t.name}", "{t.register_type}", "{t.mov_postfix}", \'{t.register_char}\', "{t.register_cast_str}"}},'
        for t in types
    ]
    body = [
        '#include "ptx_inject.h"',
        "",
        "#if defined(__CUDACC__) || defined(__CUDA__)",
        *macros,
        "#endif",
        "",
        "#ifndef __CUDACC_RTC__",
        "/* Indices into ptx_inject_data_types. */",
        "typedef enum {",
        *enumerators,
        "    PTX_INJECT_DATA_TYPE_NUM_ENUMS",
        "} PtxInjectDataType;",
        "",
        "static const PtxInjectDataTypeInfo ptx_inject_data_types[PTX_INJECT_DATA_TYPE_NUM_ENUMS] = {",
        *table,
        "};",
        "#endif",
    ]
    return header(purpose, body, file_name)


def _macro_lines(data_type: DataType) -> list[str]:
    """The definition of PTX_TYPE_INFO_<TOKEN>, with its own binding if ptx_inject.h has none with this cast."""
    token = data_type.name.upper()
    lines = []
    bind = _BIND_KINDS.get(data_type.register_cast_str)
    if bind is None:
        bind = f"CAST_{token}"
        lines.append(f"#define PTX_INJECT__BIND_{bind}(expression) ({data_type.register_cast_str}(expression))")
    parts = f"{data_type.register_type}, {data_type.mov_postfix}, {data_type.register_char}, {bind}"
    return [*lines, f"#undef PTX_TYPE_INFO_{token}", f"#define PTX_TYPE_INFO_{token} PTX_TYPES_DESC({parts})"]


def render_embedded_text(text: bytes, name: str, file_name: str, source_name: str) -> str:
    """A header that holds a text as `static const char name[]`, with a NUL after it, and `name_size`, without the NUL.

    Numbers, not a string literal: C compilers need not take literals of more than 4,095 characters.

    Args:
        text: bytes without NUL, such as annotated PTX.
        name: of the array, an identifier.
        file_name: for the include guard.
        source_name: origin of the text, for the reader.

    Raises:
        UserError: the name is not an identifier in C and C++, or the text holds a NUL.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in KEYWORDS or "__" in name:
        raise UserError(
            f"--name {name!r} cannot name an array: use letters, digits and single _, begin with a letter, and avoid keywords"
        )
    if b"\0" in text:
        line = text[: text.index(0)].count(b"\n") + 1
        raise UserError(f"{source_name}:{line}: a NUL byte, which ends a C string")
    # A char beyond ASCII is negative on some machines; an octal literal is right on all.
    numbers = [str(byte) if byte < 128 else f"'\\{byte:o}'" for byte in [*text, 0]]
    lines = [",".join(numbers[i : i + _BYTES_PER_LINE]) + "," for i in range(0, len(numbers), _BYTES_PER_LINE)]
    purpose = [
        f"{file_name} - {source_name} as C data: {name}, which ends with a NUL, and its length {name}_size, without.",
        "",
        "Written by `python -m evo.ptx_inject embed`; edit its input instead.",
    ]
    body = [
        "#include <stddef.h>",
        "",
        f"static const size_t {name}_size = {len(text)};",
        f"static const char {name}[{len(text) + 1}] = {{",
        *lines,
        "};",
    ]
    return header(purpose, body, file_name)
