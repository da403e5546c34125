"""`python -m evo`: the command line. Knows nothing of its own."""

from evo.cli import main

main()
