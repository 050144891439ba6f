"""The options of the data source, read once on the driver. Errors name the option."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from queueber import Client, Queue, connect, limits
from queueber.client.arguments.values import to_batch, to_reader, to_text
from queueber.client.transport.identity import Token, TokenFile
from queueber.config import DEFAULT_LISTEN
from queueber.errors import InvalidArgument, Unavailable
from queueber.tls import TlsOptions

TLS_FILES = ("tlsCa", "tlsCertificate", "tlsKey")
CONNECTION = ("token", "tokenFile", "tls", *TLS_FILES)
COMMON = ("address", "queue", "batch", *CONNECTION)
READ_ONLY = ("table", "status", "splits", "push_filters", "reader", "start", "max_rows")
STREAM_READ_ONLY = ("reader", "start", "max_rows")
WRITE_ONLY = ("method", "write_id", "stage_timeout", "transfer")
OF_SPARK = ("checkpointlocation", "queryname", "outputmode", "__partition_columns")
"""Options that Spark itself adds; they are not for this source."""

STATUSES = ("done", "dead")

_WRITE_ID_BYTES_MAX = min(
    limits.LOAD_NAME_BYTES_MAX, limits.PRODUCER_ID_BYTES_MAX - len(f"/{limits.PARTITIONS_MAX}")
)
"""It names a load or, with the number of a partition, the producers of a write."""

SPLITS_DEFAULT = 16
_TIMEOUT = limits.LOAD_TIMEOUT_MS // limits.SECOND_MS
_TIMEOUT_MAX = limits.LOAD_TIMEOUT_MS_MAX // limits.SECOND_MS

D = TypeVar("D", bound=str | int | None)


@dataclass(frozen=True, slots=True)
class CommonOptions:
    address: str
    queue: str
    batch: str | None
    tls: TlsOptions | None = None
    token: Token | None = field(default=None, repr=False)

    @contextlib.contextmanager
    def connected(self, *, must_exist: bool = True) -> Iterator[Queue]:
        """The queue, on a connection that is closed at the end; each task has its own."""
        with connected_client(self.address, self.tls, self.token) as client:
            yield client.queue(self.queue, must_exist=must_exist)


@contextlib.contextmanager
def connected_client(
    address: str, tls: TlsOptions | None = None, token: Token | None = None
) -> Iterator[Client]:
    try:
        client = connect(address, tls=tls, token=token)
    except Unavailable as error:
        raise Unavailable(
            f"option 'address': no server answers at {address}; start one, or give its "
            f"host:port ({error})"
        ) from None
    with client:
        yield client


@dataclass(frozen=True, slots=True)
class ReadOptions(CommonOptions):
    table: str = "results"
    statuses: tuple[str, ...] = STATUSES
    splits: int = SPLITS_DEFAULT
    """At most so many tasks read each kind of rows."""
    push_filters: bool = False
    reader: str | None = None
    start: str | None = None
    max_rows: int | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions(CommonOptions):
    method: str = "bulk"
    write_id: str | None = None
    stage_timeout: int = _TIMEOUT
    """Seconds."""
    may_share: bool = True
    """Whether tasks that see the server's disk may put their files there."""


def check_options(options: Mapping[str, str]) -> None:
    """Refuses unknown names, and what is wrong for every use of the source."""
    _common(options)


def _common(
    options: Mapping[str, str],
) -> tuple[dict[str, str], tuple[str, str, str | None, TlsOptions | None, Token | None]]:
    """What is given, and `CommonOptions`."""
    given = given_options(options, (*COMMON, *READ_ONLY, *WRITE_ONLY))
    if not given.get("queue"):
        raise InvalidArgument(
            "option 'queue' is missing; it names the queue to read or to write, as 'topic' does a "
            "topic"
        )
    batch = checked(given, "batch", to_batch)
    return given, (address_of(given), given["queue"], batch, tls_of(given), token_of(given))


def read_options(options: Mapping[str, str], *, is_streaming: bool = False) -> ReadOptions:
    given, common = _common(options)
    refuse(given, WRITE_ONLY, "is for writing only")
    if not is_streaming:
        refuse(given, STREAM_READ_ONLY, "is for streaming reads only")
    table = choice(given, "table", ("results", "items"), "results")
    status = choice(given, "status", STATUSES, None)
    if table == "items" and status:
        raise InvalidArgument("option 'status' is of the table 'results'; items have a 'state'")
    if is_streaming:
        if table != "results":
            raise InvalidArgument("option 'table': only 'results' can be read as a stream")
        if status == "dead":
            raise InvalidArgument(
                "option 'status': a stream brings what is done; dead letters may still come back, "
                "read them as a batch"
            )
    return ReadOptions(
        *common,
        table=table,
        statuses=(status,) if status else STATUSES,
        splits=number(given, "splits", SPLITS_DEFAULT, limits.SPLIT_PARTS_MAX),
        push_filters=choice(given, "push_filters", ("true", "false"), "false") == "true",
        reader=checked(given, "reader", to_reader),
        start=choice(given, "start", ("earliest", "latest"), None),
        max_rows=number(given, "max_rows", None, 1 << 53),
    )


def write_options(options: Mapping[str, str], *, is_streaming: bool = False) -> WriteOptions:
    given, common = _common(options)
    refuse(given, READ_ONLY, "is for reading only")
    if is_streaming:
        refuse(given, ("write_id",), "is for batch writes only; a stream names its own writes")
    return WriteOptions(
        *common,
        method=choice(given, "method", ("bulk", "rpc"), "bulk"),
        write_id=checked(given, "write_id", to_write_id),
        stage_timeout=number(given, "stage_timeout", _TIMEOUT, _TIMEOUT_MAX),
        may_share=choice(given, "transfer", ("auto", "stream"), "auto") == "auto",
    )


def to_write_id(text: object) -> str:
    return to_text("write_id", text, _WRITE_ID_BYTES_MAX, is_needed=True)


# --- for each kind of value, of queues and of topics ----------------------------------------------


def given_options(options: Mapping[str, str], known: tuple[str, ...]) -> dict[str, str]:
    """What is given, under names in lower case because Spark ignores case."""
    given = {name.lower(): text for name, text in options.items() if name.lower() not in OF_SPARK}
    if "mode" in given:
        raise InvalidArgument(
            "option 'mode': say how rows reach the server with the option 'method' (bulk or rpc); "
            'Spark\'s own mode is a call: .mode("append")'
        )
    names = [each.lower() for each in known]
    for name in given:
        if name not in names:
            raise InvalidArgument(
                f"option {name!r} is not one of this source; it has {', '.join(known)}"
            )
    return given


def address_of(given: Mapping[str, str]) -> str:
    address = given.get("address", DEFAULT_LISTEN)
    if ":" not in address:
        raise InvalidArgument(f"option 'address': {address!r} is not host:port")
    return address


def tls_of(given: Mapping[str, str]) -> TlsOptions | None:
    """The files are those of each machine that runs a task."""
    files = {name: given.get(f"tls{name}") for name in ("ca", "certificate", "key")}
    is_on = choice(given, "tls", ("true", "false"), "true" if any(files.values()) else "false")
    if is_on == "false":
        refuse(given, TLS_FILES, "needs the option 'tls' to be true")
        return None
    try:
        return TlsOptions(**files)
    except InvalidArgument as error:
        raise InvalidArgument(f"option 'tlsKey': {str(error).partition(': ')[2]}") from None


def token_of(given: Mapping[str, str]) -> Token | None:
    """The file is that of each machine that runs a task."""
    token, file = given.get("token"), given.get("tokenfile")
    if token and file:
        raise InvalidArgument("option 'tokenFile': there is 'token' too; give one of the two")
    return TokenFile(Path(file)) if file else token


def refuse(given: Mapping[str, str], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if name.lower() in given:
            raise InvalidArgument(f"option {name!r} {why}")


def choice(given: Mapping[str, str], name: str, words: tuple[str, ...], default: D) -> str | D:
    word = given.get(name.lower())
    if word is None:
        return default
    if word.lower() not in words:
        raise InvalidArgument(f"option {name!r}: {word!r} is none of {', '.join(words)}")
    return word.lower()


def number(given: Mapping[str, str], name: str, default: D, most: int) -> int | D:
    text = given.get(name.lower())
    if text is None:
        return default
    if not text.strip().isdecimal() or not 1 <= int(text) <= most:
        raise InvalidArgument(f"option {name!r}: {text!r} is not a number from 1 to {most}")
    return int(text)


def checked(given: Mapping[str, str], name: str, check: Callable[[object], str]) -> str | None:
    if name not in given:
        return None
    try:
        return check(given[name])
    except InvalidArgument as error:
        raise InvalidArgument(f"option {name!r}: {str(error).removeprefix(f'{name}: ')}") from None
