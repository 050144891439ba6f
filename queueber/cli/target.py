"""The server and the queue that a command talks to, and how it prints what they answer."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click
from click.exceptions import Exit

from queueber import Client, Item, Queue, connect
from queueber.cli import output
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import check_exclusive, gathered, seconds
from queueber.cli.tls_flags import tls_flags, tls_options
from queueber.client.transport.identity import Token, TokenFile
from queueber.config import DEFAULT_LISTEN
from queueber.model import ItemInfo, Result
from queueber.tls import TlsOptions

Shown = TypeVar("Shown", Item, ItemInfo, Result)

_CONNECT_SECONDS = 2.0
"""Short, because a person waits; a server in the same network answers in milliseconds."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the flags of a command say: where to connect, which queue, how to print."""

    address: str
    connect_timeout: float
    use_json: bool
    queue: str = ""
    must_exist: bool = True
    raw: bool = False
    """Print contents only, unchanged."""
    token_file: Path | None = None
    tls: bool = False
    tls_ca: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        check_exclusive(raw=self.raw, json=self.use_json)

    @property
    def token(self) -> Token | None:
        """That of the file, or of the environment: an argument would be in the process list."""
        if self.token_file is not None:
            return TokenFile(self.token_file)
        return os.environ.get("QUEUEBER_TOKEN") or None

    def connect(self) -> Client:
        return connect(
            self.address,
            connect_timeout=self.connect_timeout,
            token=self.token,
            tls=self.tls_options,
        )

    @property
    def tls_options(self) -> TlsOptions | None:
        return tls_options(
            tls=self.tls,
            tls_ca=self.tls_ca,
            tls_certificate=self.tls_certificate,
            tls_key=self.tls_key,
        )

    @contextlib.contextmanager
    def open_queue(self) -> Iterator[Queue]:
        with self.connect() as client:
            yield client.queue(self.queue, must_exist=self.must_exist)

    @property
    def is_for_people(self) -> bool:
        return not self.raw and not self.use_json

    def echo(self, value: object, text: str) -> None:
        """Print the value as JSON, or the text."""
        output.echo_json(value) if self.use_json else click.echo(text)

    def echo_table(
        self, headings: Sequence[str], rows: Iterable[Sequence[str]], *values: object
    ) -> None:
        """Print a table; as JSON the values, which have the same in them."""
        if not self.use_json:
            output.echo_table(headings, rows)
            return
        for value in values:
            output.echo_json(value)

    def echo_items(
        self,
        items: Sequence[Shown],
        details: Callable[[Shown], Iterable[str]] = lambda _: (),
        below: Callable[[Shown], Iterable[str]] = lambda _: (),
        *,
        bytes_max: int | None = None,
    ) -> None:
        """Print items or results; `details` are words about one, for people, `below` more lines.

        Contents above `bytes_max` are cut, for people.
        """
        if self.raw:
            click.echo(b"".join(output.contents_of(item) + b"\n" for item in items), nl=False)
        elif self.use_json:
            for item in items:
                output.echo_json(output.item_to_json(item))
        else:
            lines: list[str] = []
            for item in items:
                lines += output.item_lines(item, *details(item), bytes_max=bytes_max)
                lines += below(item)
            output.echo_lines(lines)

    def echo_outcomes(
        self, ids: Sequence[bytes], outcomes: Sequence[str], reason: str, words: Sequence[str]
    ) -> None:
        """Print the outcome of each id; end with 1 if one is the last word, which is a 'not'.

        `words` are all possible outcomes, so that the JSON has a list for each. `reason` explains
        the 'not'.
        """
        *_, negative = words
        pairs = list(zip(ids, outcomes, strict=True))
        if self.use_json:
            by_word: dict[str, list[str]] = {word: [] for word in words}
            for item_id, word in pairs:
                by_word[word].append(item_id.hex())
            output.echo_json({output.to_camel_case(word): each for word, each in by_word.items()})
        else:
            shown = {word: word for word in words} | {negative: f"{negative}: {reason}"}
            output.echo_lines(f"{item_id.hex()}  {shown[word]}" for item_id, word in pairs)
        if negative in outcomes:
            raise Exit(NEGATIVE)

    def echo_done(self, name: str, word: str, reason: str, *, is_done: bool) -> None:
        """Print whether one thing was done, and if not, the reason; end with 1 then."""
        self.echo({word: is_done}, f"{name}  {word if is_done else f'not {word}: {reason}'}")
        if not is_done:
            raise Exit(NEGATIVE)

    def echo_count(self, word: str, count: int, reason: str) -> None:
        """`3 items purged`; `reason` says why there were not more, if there is something to say."""
        self.echo(
            {word: count}, f"{output.counted(count, 'item')} {word}{reason and f': {reason}'}"
        )


raw_flag = click.option(
    "--raw", is_flag=True, help="Print only the contents, a newline after each."
)
_queue_flag = click.option(
    "--queue", "-q", default="default", show_default=True, metavar="NAME", help="Name of the queue."
)
_must_exist_flag = click.option(
    "--must-exist", is_flag=True, help="Fail if the queue does not exist, instead of creating it."
)
_server_flags = (
    click.option(
        "--address",
        default=DEFAULT_LISTEN,
        envvar="QUEUEBER_ADDRESS",
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT",
        help="Address of the server.",
    ),
    click.option(
        "--connect-timeout",
        type=seconds,
        default=_CONNECT_SECONDS,
        show_default=True,
        help="How long to try to reach the server.",
    ),
    click.option(
        "--token-file",
        type=click.Path(path_type=Path),
        envvar="QUEUEBER_TOKEN_FILE",
        metavar="FILE",
        help="File with the token for a protected server; or set QUEUEBER_TOKEN to the token.",
    ),
    *tls_flags,
    click.option("--json", "use_json", is_flag=True, help="Print JSON, one object a line."),
)

server_flags = gathered("target", Target, *_server_flags)
queue_flags = gathered("target", Target, _queue_flag, *_server_flags)
"""The queue must exist."""
new_queue_flags = gathered("target", Target, _queue_flag, _must_exist_flag, *_server_flags)
"""The queue is created, unless `--must-exist` is given."""
