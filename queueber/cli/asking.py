"""Asking before something is lost."""

import sys

import click

from queueber.errors import InvalidArgument

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def is_sure(question: str) -> bool:
    """What the person says. What comes through a pipe is no answer: it was meant for others."""
    if not sys.stdin.isatty():
        raise InvalidArgument("there is nobody to ask; give --yes if you are sure")
    return click.confirm(question, err=True)
