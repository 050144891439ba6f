"""`queueber backup`: take backups of a running server, and see what a repository has."""

import click
from click.exceptions import Exit

from queueber.backup.repository import Repository
from queueber.backup.restore import verify as verify_backup
from queueber.backup.take import take_backup
from queueber.cli.backups.repositories import (
    at_flag,
    contents,
    json_flag,
    lines,
    progress,
    repository_argument,
    summary,
    to_size,
)
from queueber.cli.backups.schedule import repeat
from queueber.cli.durations import duration
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import count_flag
from queueber.cli.output import counted, echo_json, echo_table, to_time
from queueber.cli.target import Target, server_flags

_TAKE = "take"


class _TakeByDefault(click.Group):
    """A group that runs its `take` command when no other is named."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [_TAKE, *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        click.Command.format_options(self.commands[_TAKE], ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group(cls=_TakeByDefault, subcommand_metavar="REPOSITORY | COMMAND [ARGS]...")
def backup() -> None:
    """Take and list backups of a running server.

    \b
    Examples:
      queueber backup /var/backups/queueber
      queueber backup s3://bucket/queueber --every 1h --keep 24
      queueber backup list /var/backups/queueber

    The repository is a directory, or a bucket with an address such as s3://bucket/folder. It may
    be on another machine than the server. The first backup copies everything; later ones send
    only what is new, and share the rest. Any of them may be deleted without harm to the others.

    A backup has everything that was acknowledged before it began. It is complete or not there at
    all: one that is interrupted leaves nothing that a restore would take, and the next one goes on
    with what was sent. Buckets need the extra 'backup' and the usual variables (AWS_ACCESS_KEY_ID
    and so on).
    """


@backup.command(_TAKE)
@repository_argument(must_exist=False)
@click.option(
    "--every",
    type=duration,
    metavar="TIME",
    help="Go on, and take another each time that this is over: 30min, 1h, 1d.",
)
@count_flag("--keep", default=None, help="Delete all but so many of the newest, after each backup.")
@server_flags
def take(target: Target, repository: Repository, every: float | None, keep: int | None) -> None:
    """Take a backup. This is what 'queueber backup REPOSITORY' does.

    \b
    Example:
      queueber backup take /var/backups/queueber --keep 7
    """

    def run_once() -> None:
        with target.connect() as client, progress("backing up") as show:
            taken = take_backup(client, repository, target.address, show)
        target.echo(
            summary(taken),
            f"{taken.name}  {contents(taken)}; {to_size(taken.bytes)}, of which "
            f"{to_size(taken.sent_bytes)} were sent",
        )
        if keep is not None:
            _prune(repository, keep, use_json=target.use_json)

    if every is None:
        run_once()
    else:
        repeat(run_once, every)


def _prune(repository: Repository, keep: int, *, use_json: bool) -> None:
    with repository.lock():
        deleted = repository.prune(keep)
    for name in deleted:
        echo_json({"deleted": name}) if use_json else click.echo(f"{name}  deleted")


@backup.command("list")
@repository_argument()
@json_flag
def list_backups(repository: Repository, use_json: bool) -> None:
    """List the backups of a repository, oldest first.

    \b
    Example:
      queueber backup list /var/backups/queueber
    """
    found = repository.all()
    if use_json:
        for manifest in found:
            echo_json(summary(manifest))
        return
    if not found:
        click.echo(f"{repository.address} has no backup")
        return
    rows = [
        (
            each.name,
            to_time(each.taken_at_ms),
            f"{each.queues:,}",
            f"{each.items:,}",
            f"{each.topics:,}",
            to_size(each.bytes),
            to_size(each.sent_bytes),
        )
        for each in found
    ]
    echo_table(("name", "taken at", "queues", "items", "topics", "size", "sent"), rows)


@backup.command()
@repository_argument()
@at_flag
@click.option("--files", "with_files", is_flag=True, help="Print every file with its checksum.")
@json_flag
def show(repository: Repository, name: str, with_files: bool, use_json: bool) -> None:
    """Show what a backup contains.

    \b
    Example:
      queueber backup show /var/backups/queueber --files
    """
    manifest = repository.chosen(name)
    if use_json:
        echo_json(summary(manifest) | ({"files": list(manifest.files)} if with_files else {}))
        return
    for word, text in lines(manifest):
        click.echo(f"{word:9} {text}")
    if with_files:
        for file in manifest.files:
            click.echo(f"{file.sha256}  {file.bytes:>12,}  {file.name}")


@backup.command()
@repository_argument()
@at_flag
@json_flag
def verify(repository: Repository, name: str, use_json: bool) -> None:
    """Compare all files of a backup with their checksums.

    \b
    Example:
      queueber backup verify s3://bucket/queueber --at 2026-11-17T21-44-28Z

    Ends with 1 if one is damaged or missing. 'queueber restore' does this, too, and then checks
    the whole store.
    """
    manifest = repository.chosen(name)
    with progress("checking") as show_progress:
        damage = verify_backup(repository, manifest, show_progress)
    if use_json:
        echo_json({"name": manifest.name, "isSound": not damage, "damage": damage})
    else:
        for line in damage:
            click.echo(line)
        verdict = counted(len(damage), "damaged file") if damage else "sound"
        click.echo(f"{manifest.name}  {verdict}; {to_size(manifest.bytes)} read")
    if damage:
        raise Exit(NEGATIVE)


@backup.command()
@repository_argument()
@count_flag("--keep", required=True, help="How many of the newest to keep.")
@json_flag
def prune(repository: Repository, keep: int, use_json: bool) -> None:
    """Delete all but the newest backups.

    \b
    Example:
      queueber backup prune /var/backups/queueber --keep 24

    Files that other backups share stay.
    """
    _prune(repository, keep, use_json=use_json)
