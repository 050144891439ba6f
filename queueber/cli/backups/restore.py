"""`queueber restore`: a data directory from a backup."""

from pathlib import Path

import click

from queueber.backup.repository import Repository
from queueber.backup.restore import restore as restore_files
from queueber.cli.backups.repositories import at_flag, contents, progress, repository_argument
from queueber.cli.commands.store import check_folder
from queueber.errors import StorageCorrupt


@click.command()
@repository_argument()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DATA_DIR")
@at_flag
def restore(repository: Repository, folder: Path, name: str) -> None:
    """Make a data directory from a backup.

    \b
    Example:
      queueber restore /var/backups/queueber /var/lib/queueber
      queueber restore s3://bucket/queueber ./data --at 2026-11-17T21-44-28Z

    DATA_DIR must be new or empty. Every file is compared with its checksum, and then the whole
    store is checked as 'queueber verify' does. If anything is wrong, DATA_DIR stays empty, and the
    command ends with 5.

    \b
    What a server that is started on it finds:
      - all that was acknowledged before the backup began
      - leases as they were: most will have expired, and their items are ready
      - nothing that happened later: items that were finished since will be worked on again
      - no load that was not committed: abort it, and run it again
    """
    from queueber.db.store.format import FORMAT

    manifest = repository.chosen(name)

    def check(made: Path) -> None:
        if manifest.format != FORMAT:
            return  # the server will say what to do, and does not open it before
        found = check_folder(made)
        if found.damage:
            told = f"{found.summary}; {found.damage[0]}"
            raise StorageCorrupt(f"the store in the backup is damaged: {told}")
        for remark in found.remarks:
            click.echo(remark)

    with progress("restoring") as show:
        restore_files(repository, manifest, folder, check=check, show=show)
    click.echo(f"{folder}  restored from {manifest.name}: {contents(manifest)}")
    if manifest.format != FORMAT:
        click.echo(f"the store has format {manifest.format}: run 'queueber upgrade' on it")
