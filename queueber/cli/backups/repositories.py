"""The repository that a command names, and how a backup is shown."""

import contextlib
import sys
from collections.abc import Callable, Iterator

import click

from queueber.backup.manifest import Manifest
from queueber.backup.repository import Repository
from queueber.backup.storage import open_storage
from queueber.backup.take import Show
from queueber.cli.flags import F
from queueber.cli.output import counted, to_camel_case, to_time
from queueber.cli.progress import bytes_bar

json_flag = click.option("--json", "use_json", is_flag=True, help="Print JSON, one object a line.")
at_flag = click.option(
    "--at", "name", default="", metavar="NAME", help="Name of the backup. [default: the newest]"
)


def repository_argument(*, must_exist: bool = True) -> Callable[[F], F]:
    """The directory or bucket in which backups are kept."""

    def opened(_context: object, _argument: object, address: str) -> Repository:
        return Repository(open_storage(address, must_exist=must_exist))

    return click.argument("repository", callback=opened, metavar="REPOSITORY")


@contextlib.contextmanager
def progress(title: str) -> Iterator[Show]:
    """A bar, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with bytes_bar(title) as show:
        yield show


def to_size(count: int) -> str:
    """`512 B`, `1.2 MB`."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def summary(manifest: Manifest) -> dict[str, object]:
    """For JSON: all but the list of files."""
    names = (
        "name", "taken_at_ms", "server", "server_version", "format", "queues", "items", "topics",
        "bytes", "sent_bytes",
    )  # fmt: skip
    found = {to_camel_case(name): getattr(manifest, name) for name in names}
    return found | {"files": len(manifest.files)}


def contents(manifest: Manifest) -> str:
    """`2 queues, 1,000 items, 1 topic`."""
    counts = ((manifest.queues, "queue"), (manifest.items, "item"), (manifest.topics, "topic"))
    return ", ".join(counted(count, noun) for count, noun in counts)


def lines(manifest: Manifest) -> list[tuple[str, str]]:
    """What it contains, for people."""
    return [
        ("name", manifest.name),
        ("taken at", to_time(manifest.taken_at_ms)),
        ("server", f"{manifest.server}, version {manifest.server_version}"),
        ("format", str(manifest.format)),
        ("contents", contents(manifest)),
        ("size", f"{to_size(manifest.bytes)} in {counted(len(manifest.files), 'file')}"),
        ("sent", to_size(manifest.sent_bytes)),
    ]
