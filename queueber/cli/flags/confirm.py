"""The question before a command deletes something, and the flag that skips it."""

import sys

import click

from queueber.errors import InvalidArgument

yes_flag = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str) -> bool:
    """Ask on the terminal. Piped input is never an answer: it was meant for another program."""
    if not sys.stdin.isatty():
        raise InvalidArgument("there is no terminal to ask on; give --yes if you are sure")
    return click.confirm(question, err=True)
