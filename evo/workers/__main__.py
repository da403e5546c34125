"""A worker process."""

import sys

from evo.workers.process import main

main(sys.argv[1:])
