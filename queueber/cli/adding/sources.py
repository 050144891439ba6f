"""Where `queueber add` takes items from: arguments, files, and standard input."""

import os
import select
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain, count
from pathlib import Path
from typing import cast

from queueber.cli.adding.batches import (
    ItemDefaults,
    NewBatch,
    batch_bytes_max,
    jsonl_batches,
    plain_batches,
)
from queueber.cli.adding.jsonl_items import line_bytes_max, read_jsonl
from queueber.cli.flags import check_exclusive
from queueber.client.arguments.moments import to_delay
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import KIB
from queueber.model import ServerInfo

_READ_BYTES = 256 * KIB


@dataclass(frozen=True, slots=True)
class Sources:
    contents: tuple[str, ...]
    files: tuple[Path, ...]
    lines: bool
    null: bool
    jsonl: bool

    def check(self, defaults: ItemDefaults) -> None:
        check_exclusive(lines=self.lines, null=self.null, jsonl=self.jsonl)
        given = len(self.contents) + len(self.files)
        if not given and not self.has_stream:
            raise InvalidArgument(
                "there is nothing to add; give contents, --file, --lines, --null or --jsonl"
            )
        check_exclusive(at=defaults.at, delay=defaults.delay)
        if defaults.at is not None:
            to_delay(defaults.at, "--at")
        if defaults.key == "":
            raise InvalidArgument("--key is empty; leave it out to add the item without a key")
        if defaults.key is not None and (given > 1 or self.has_stream):
            raise InvalidArgument(
                "--key is for a single item; with --jsonl each item may have its own key"
            )

    @property
    def has_stream(self) -> bool:
        return self.lines or self.null or self.jsonl

    def is_idle(self) -> bool:
        """Whether a read of standard input would block. A read of a file never blocks."""
        return self.has_stream and not select.select([sys.stdin.buffer], [], [], 0)[0]

    def batches(
        self, server: ServerInfo, defaults: ItemDefaults, *, fills: bool
    ) -> Iterator[NewBatch]:
        """All items: arguments first, then files, then standard input.

        Items of standard input share a batch if they come in one read; with `fills`, whenever they
        come, so that the same input always forms the same batches.
        """
        bytes_max = batch_bytes_max(server.message_bytes_max)
        item_bytes_max = server.item_bytes_max
        files = (_read_file(file, item_bytes_max) for file in self.files)
        given = chain(map(os.fsencode, self.contents), files)
        yield from plain_batches(given, defaults, bytes_max)
        if self.jsonl:
            numbers = count(1)
            for lines in _stream(b"\n", line_bytes_max(item_bytes_max), fills=fills):
                yield from jsonl_batches(read_jsonl(lines, numbers), defaults, bytes_max)
        elif self.has_stream:
            for items in _stream(b"\0" if self.null else b"\n", item_bytes_max, fills=fills):
                yield from plain_batches(items, defaults, bytes_max)


def _stream(end: bytes, bytes_max: int, *, fills: bool) -> Iterator[Iterable[bytes]]:
    blocks = split_stream(cast("BufferedReader", sys.stdin.buffer), end, bytes_max)
    return iter([chain.from_iterable(blocks)]) if fills else blocks


def split_stream(stream: BufferedReader, end: bytes, item_bytes_max: int) -> Iterator[list[bytes]]:
    """Yield the items of each block that was read, without empty ones. `end` separates items.

    Raises `ResourceExhausted` for an item above the server's limit, so that a stream without
    separators does not fill the memory.
    """
    parts: list[bytes] = []
    parts_bytes = 0
    # `read1` returns what has arrived, so that lines typed by a person are sent at once.
    while block := stream.read1(_READ_BYTES):
        first, *others = block.split(end)
        parts.append(first)
        parts_bytes += len(first)
        if parts_bytes > item_bytes_max:
            raise ResourceExhausted(
                f"an item of standard input has more than {item_bytes_max} bytes, the limit"
            )
        if others:
            ended = [b"".join(parts), *others[:-1]]
            parts, parts_bytes = [others[-1]], len(others[-1])
            yield [item for item in ended if item]
    if last := b"".join(parts):
        yield [last]


def _read_file(file: Path, bytes_max: int) -> bytes:
    with file.open("rb") as opened:
        contents = opened.read(bytes_max + 1)
    if len(contents) > bytes_max:
        raise ResourceExhausted(f"{file} has more than {bytes_max} bytes, the limit of an item")
    return contents
