"""Turns annotations in comments into inline assembly with markers, like the command `ptxinject`.

    python comment_form.py INPUT.cu

Given ../cuda/comment_form.cu, it prints ../expected/comment_form.txt.
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
