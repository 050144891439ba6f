"""`python -m queueber` is the `queueber` command."""

from queueber.cli import main

main()
