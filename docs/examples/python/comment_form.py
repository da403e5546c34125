"""Annotations in comments to inline assembly with markers, as the command `ptxinject` does it.

    python comment_form.py INPUT.cu

For ../cuda/comment_form.cu, prints ../expected/comment_form.txt.
"""

import sys
from pathlib import Path

from evo.ptx_inject import AnnotationError, process_cuda

if len(sys.argv) != 2:
    sys.exit(f"usage: {sys.argv[0]} INPUT.cu")
source = Path(sys.argv[1])
try:
    print(process_cuda(source.read_text()), end="")
except AnnotationError as error:
    sys.exit(f"{source}:{error.line}:{error.column}: {error.reason}")
