"""`queueber topics` and `queueber topic`: a room of small files, one for each kind of command."""

import click

from queueber.cli.topics.group_commands import (
    create_group,
    delete_group,
    groups,
    pause_group,
    reset,
    resume_group,
)
from queueber.cli.topics.lifecycle import close, configure, create, delete, describe, fork, trim
from queueber.cli.topics.publish import publish
from queueber.cli.topics.read import read
from queueber.cli.topics.sources import add_source, drop_source
from queueber.cli.topics.tail import tail


@click.group()
def topic() -> None:
    """Publish to a topic, read and follow it, and operate it.

    \b
    Examples:
      queueber topic publish orders 'order 17' 'order 18'
      queueber topic read orders --last 10
      queueber topic tail orders
      queueber topic groups orders

    A topic keeps messages after they were read, for as long as its settings say; several readers
    and groups read it, each at its own pace. 'queueber topics' lists them.
    """


for _command in (
    create, configure, publish, read, tail, describe, groups, create_group, delete_group,
    pause_group, resume_group, reset, add_source, drop_source, trim, close, fork, delete,
):  # fmt: skip
    topic.add_command(_command)
