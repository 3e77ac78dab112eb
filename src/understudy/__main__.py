"""`python -m understudy` is the command line."""

from understudy.cli import main

main()
