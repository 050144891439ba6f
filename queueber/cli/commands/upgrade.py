"""`queueber upgrade`: bring the store of a stopped server to the newest format."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from queueber.cli.commands.store import data_dir_flag
from queueber.cli.progress import count_bar
from queueber.clock import SystemClock

_VIOLATIONS_MAX = 100


@click.command()
@data_dir_flag
def upgrade(folder: Path) -> None:
    """Bring the store of a stopped server to the newest format.

    \b
    Example:
      queueber upgrade --data-dir /var/lib/queueber

    A new version of Queueber may store things in another format. Then 'queueber serve' refuses a
    store of the format before, and this command makes a new store of it. It checks the new store
    as 'queueber verify' does, and only then puts it in the place of the old one.

    The old store is not changed. It is kept in the data directory, as format-4 or with another
    number: delete it when you no longer need it. To go back, serve that folder with the version
    that wrote it; what happened after the upgrade is not in it.

    \b
    Good to know:
      - it needs as much free disk space as the store takes
      - it may be killed at any time: run it again, and it finishes
      - loads that are not committed are dropped, and named: run them again
      - leases go on: their times pass while the server is stopped, as always

    Ends with 0 if the store has the format of this version, and with 5 if it cannot be upgraded.
    """
    # Other commands do not need RocksDB.
    from queueber.db.store.contract import Store
    from queueber.db.store.format import FORMAT
    from queueber.db.upgrade.stores import Work
    from queueber.db.upgrade.upgrading import upgrade as upgrade_store
    from queueber.engine.integrity.check_store import check_store

    def check(store: Store) -> list[str]:
        return [str(violation) for violation in check_store(store, _VIOLATIONS_MAX)]

    with _progress() as show:
        upgraded = upgrade_store(folder, Work(SystemClock().now_ms(), show), check)
    if upgraded is None:
        click.echo(f"{folder} has format {FORMAT} already: there is nothing to do")
        return
    for line in upgraded.report:
        click.echo(line)
    click.echo(f"the old store is kept in {upgraded.kept}: delete it when you no longer need it")


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """On a terminal, a bar that shows how many items are done."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    with count_bar("upgrading") as show:
        yield show
