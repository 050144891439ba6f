"""`queueber sql`: statements from a prompt, from arguments, from files or from a pipe."""

import sys
from pathlib import Path

import click

from queueber.cli.exits import USAGE, Failure
from queueber.cli.flags import check_exclusive
from queueber.cli.sql.answers import Printer
from queueber.cli.sql.session import Session
from queueber.cli.target import Target, server_flags
from queueber.errors import InvalidArgument
from queueber.limits import MIB

_FILE_BYTES_MAX = 4 * MIB


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE...]")
@click.option("-c", "commands", multiple=True, metavar="SQL", help="Run this. May be repeated.")
@click.option("--csv", "use_csv", is_flag=True, help="Print rows as comma-separated values.")
@server_flags
def sql(target: Target, files: tuple[Path, ...], commands: tuple[str, ...], use_csv: bool) -> None:
    """Run statements of SQL: a prompt, -c, or files.

    \b
    Examples:
      queueber sql
      queueber sql -c 'SHOW TOPICS'
      queueber sql -c "CONSUME FROM orders GROUP 'mail' FROM EARLIEST LIMIT 10" --json
      queueber sql setup.sql
      echo 'SELECT topic_id FROM system.topics' | queueber sql --csv

    A FILE named - is the standard input. The prompt completes words and names with Tab, and 'help'
    lists the statements. Without it, the first statement that fails ends the command; those before
    it have happened. With --json: one object for each row, or {"message": "..."}.
    """
    check_exclusive(json=target.use_json, csv=use_csv)
    texts = [*commands, *map(_read, files)]
    printer = Printer.of(use_json=target.use_json, use_csv=use_csv)
    if not texts and not sys.stdin.isatty():
        texts = [_read(Path("-"))]
    with target.connect() as client:
        session = Session(client, printer)
        if texts:
            for text in texts:
                session.run(text)
            return
        try:
            from queueber.cli.sql.prompt import Prompt
        except ModuleNotFoundError as error:
            raise Failure(
                f"{error.name} is not installed; install it with: pip install 'queueber[sql]'",
                USAGE,
            ) from None
        Prompt(session, target.address).run()


def _read(path: Path) -> str:
    with click.open_file(str(path), "rb") as opened:
        found: bytes = opened.read(_FILE_BYTES_MAX + 1)
    if len(found) > _FILE_BYTES_MAX:
        raise InvalidArgument(f"{path} has more than {_FILE_BYTES_MAX} bytes; split it")
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise InvalidArgument(f"{path} is not UTF-8") from None
