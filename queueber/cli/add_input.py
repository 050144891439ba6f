"""Where the items of `queueber add` come from: arguments, files, and standard input."""

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain, count
from pathlib import Path
from typing import cast

from queueber.cli.described import line_bytes_max, read_described
from queueber.cli.new_calls import (
    CommonOptions,
    NewCall,
    call_bytes_max,
    described_calls,
    plain_calls,
)
from queueber.cli.options import check_exclusive
from queueber.cli.split_stream import is_idle, split_stream
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.model import ServerInfo


@dataclass(frozen=True, slots=True)
class AddInput:
    contents: tuple[str, ...]
    files: tuple[Path, ...]
    lines: bool
    null: bool
    jsonl: bool
    is_steady: bool
    """Whether calls are filled up, however the input comes, so that they are the same each time."""

    def check(self, common: CommonOptions) -> None:
        check_exclusive(lines=self.lines, null=self.null, jsonl=self.jsonl)
        given = len(self.contents) + len(self.files)
        if not given and not self.has_stream:
            raise InvalidArgument(
                "there is nothing to add; give contents, --file, --lines, --null or --jsonl"
            )
        if common.key == "":
            raise InvalidArgument("--key is empty; leave it out to add the item whatever came")
        if common.key is not None and (given > 1 or self.has_stream):
            raise InvalidArgument(
                "--key is for a single item; with --jsonl each may have a key of its own"
            )

    @property
    def has_stream(self) -> bool:
        return self.lines or self.null or self.jsonl

    def is_idle(self) -> bool:
        return self.has_stream and is_idle(_stdin())

    def calls(self, server: ServerInfo, common: CommonOptions) -> Iterator[NewCall]:
        """Everything there is to add: arguments, then files, then the stream."""
        bytes_max = call_bytes_max(server.message_bytes_max)
        item_bytes_max = server.item_bytes_max
        files = (_read_file(file, item_bytes_max) for file in self.files)
        yield from plain_calls(chain(map(os.fsencode, self.contents), files), common, bytes_max)
        if self.jsonl:
            numbers = count(1)
            for together in self._stream(b"\n", line_bytes_max(item_bytes_max)):
                described = read_described(together, numbers)
                yield from described_calls(described, common, bytes_max)
        elif self.has_stream:
            for together in self._stream(b"\0" if self.null else b"\n", item_bytes_max):
                yield from plain_calls(together, common, bytes_max)

    def _stream(self, end: bytes, bytes_max: int) -> Iterator[Iterable[bytes]]:
        """What goes into calls together: what came together, or everything."""
        blocks = split_stream(_stdin(), end, bytes_max)
        return iter([chain.from_iterable(blocks)]) if self.is_steady else blocks


def _stdin() -> BufferedReader:
    return cast("BufferedReader", sys.stdin.buffer)


def _read_file(file: Path, bytes_max: int) -> bytes:
    with file.open("rb") as opened:
        contents = opened.read(bytes_max + 1)
    if len(contents) > bytes_max:
        raise ResourceExhausted(f"{file} has more than {bytes_max} bytes, the limit of an item")
    return contents
