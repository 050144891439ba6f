"""`queueber repair`: copy what can be read of a damaged store into a new directory."""

import shutil
from pathlib import Path

import click
from click.exceptions import Exit

from queueber.cli.commands.verify import data_dir_flag, locked
from queueber.cli.exits import NEGATIVE, STORE, USAGE, Failure
from queueber.config import default_data_dir

_UNFINISHED = "repair-unfinished"


@click.command()
@data_dir_flag
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    required=True,
    help="The new data directory. It must be new or empty, and needs as much disk space as the old "
    "one, or twice as much if RocksDB's list of files is damaged.",
)
def repair(data_dir: Path | None, into: Path) -> None:
    """Copy what can be read of a damaged store into a new one.

    \b
    Example:
      queueber repair --data-dir /var/lib/queueber --into /var/lib/queueber-repaired

    It copies every entry that can be read, up to where the log is damaged, and then repairs each
    damaged queue until 'queueber verify' finds nothing wrong. Undamaged queues are copied
    unchanged. The old directory is not changed; keep it until you have checked the new one.

    \b
    What may be lost, and what else may happen to a damaged queue:
      - items, results, keys and receipts in damaged blocks are lost
      - everything in the log after a damaged record is lost, acknowledged or not
      - all leases end: their items are ready again, and may be worked on twice
      - an item whose state is lost becomes ready
      - lost items of a batch count as dead in its receipt
      - of the results, the newest without a gap are kept
      - loads that are not committed are dropped; repeat them
      - without RocksDB's list of files, items that were just deleted may come back

    Prints what happened. Ends with 0 if nothing was lost, with 1 if something was, and with 5 if
    nothing could be saved.
    """
    folder = data_dir if data_dir is not None else default_data_dir()
    if not folder.is_dir() or not any(folder.iterdir()):
        raise Failure(f"there is no store in {folder}; nothing was created", STORE)
    if into.exists() and any(into.iterdir() if into.is_dir() else [into]):
        raise Failure(f"--into: {into} is not empty; name a new directory", USAGE)
    with locked(folder):
        copied, losses = _repair(folder, into)
    for loss in losses:
        click.echo(loss)
    click.echo(f"{into} is sound: {copied:,} entries saved from {folder}")
    if losses:
        raise Exit(NEGATIVE)


def _repair(folder: Path, into: Path) -> tuple[int, list[str]]:
    """How many entries were saved, and what was not."""
    from queueber.db.recovery.opening import check_data_dir
    from queueber.db.recovery.salvage import Gap, Salvage
    from queueber.db.store.rocks import RocksStore
    from queueber.engine.integrity.rebuild_store import broken_queues, rebuild_store

    check_data_dir(folder)
    losses: list[str] = []

    def note_gap(gap: Gap) -> None:
        losses.append(f"cannot be read: {gap}")

    into.mkdir(parents=True, exist_ok=True)
    # Built in a folder of its own, so that nobody takes half a store for a whole one.
    unfinished = into / _UNFINISHED
    try:
        with Salvage(folder, unfinished / "work") as salvage:
            losses += salvage.remarks
            with RocksStore(unfinished / "data") as store:
                copied = salvage.copy_to(store, note_gap)
                losses += rebuild_store(store)
                left = broken_queues(store)
    except Exception as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        reason = str(error).partition("\n")[0]
        raise Failure(f"nothing of {folder} could be saved: {reason}", STORE) from error
    if left:
        named = ", ".join(sorted(left))
        raise Failure(f"{unfinished} is still damaged, in {named}; please report this bug", STORE)
    for file in (unfinished / "data").iterdir():
        file.rename(into / file.name)
    shutil.rmtree(unfinished)
    if (folder / "loads").is_dir():
        shutil.copytree(folder / "loads", into / "loads", dirs_exist_ok=True)
    return copied, losses
