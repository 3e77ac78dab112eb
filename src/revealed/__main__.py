"""`python -m revealed` is the command line."""

from revealed.cli import main

main()
