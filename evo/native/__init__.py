"""The compiled extensions: one thin module per C header of csrc/.

Owns nothing but the hint below; knows nothing of tasks, search or files.
"""

from importlib.util import find_spec

if find_spec("evo.native.stack_ptx") is None:
    raise ImportError(
        "evo's compiled extensions are missing: this is the source folder and evo is not installed in this Python; "
        "run 'pip install .' (or 'pip install -e .' to develop) and start Python elsewhere or with the 'evo' command"
    )
