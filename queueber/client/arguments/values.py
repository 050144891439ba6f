"""Arguments of users, checked and turned into what calls send.

Every refusal names the argument, what it was, and the rule or the limit.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Literal, Protocol, TypeVar

from queueber.errors import InvalidArgument
from queueber.limits import (
    BATCH_NAME_BYTES_MAX,
    ERROR_BYTES_MAX,
    ID_BYTES,
    LEASE_MS_MAX,
    LOAD_NAME_BYTES_MAX,
    PARTITIONS_MAX,
    QUEUE_NAME_CHARS_MAX,
    READER_NAME_BYTES_MAX,
    SECOND_MS,
)
from queueber.model import Column, ItemState, LoadRef, PartRef

T = TypeVar("T")


class HasId(Protocol):
    """An `Item`, an `ItemInfo`, a lease: whatever has an id."""

    @property
    def id(self) -> bytes: ...


Seconds = float | timedelta
Id = bytes | str | HasId
"""Bytes, hexadecimal text, or an object with an `id`."""
ItemIds = Id | Iterable[Id]
Contents = bytes | Iterable[bytes]
CompletedResults = bytes | Sequence[bytes]
Error = str | BaseException
Errors = Error | Sequence[Error]
State = ItemState | Literal["ready", "delayed", "leased", "dead"]
ColumnName = Column | Literal["results", "keys", "batches", "attributes", "contents"]
Columns = ColumnName | Iterable[ColumnName]

_DURATION_MS_MAX = 10**15
"""Of durations whose limit the server knows alone."""

# --- plain values ---------------------------------------------------------------------------------


def to_ms(
    field: str, given: object, limit_ms: int | None = None, *, whose: str = "the limit"
) -> int:
    seconds = given.total_seconds() if isinstance(given, timedelta) else given
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise InvalidArgument(
            f"{field}: {given!r} is not a number of seconds, 0 or more, nor a timedelta of that"
        )
    most_ms = _DURATION_MS_MAX if limit_ms is None else limit_ms
    if seconds > most_ms or round(seconds * SECOND_MS) > most_ms:  # infinity has no `round`
        shown = int(seconds) if seconds % 1 == 0 else seconds
        raise InvalidArgument(f"{field}: {shown} s is too long; {whose} is {most_ms // SECOND_MS}")
    return round(seconds * SECOND_MS)


def to_some_ms(field: str, given: object, limit_ms: int | None = None) -> int:
    """A duration that is not 0; one that rounds to 0 is taken as a millisecond."""
    ms = to_ms(field, given, limit_ms)
    if given in (0, timedelta()):
        raise InvalidArgument(f"{field}: 0 is too short; give at least one millisecond, 0.001")
    return max(ms, 1)


def to_lease_ms(given: object) -> int:
    """0 on the wire means the queue's setting."""
    if given is None:
        return 0
    if given in (0, timedelta()):
        raise InvalidArgument("lease: 0 is no lease; give more, or None for the queue's setting")
    return to_some_ms("lease", given, LEASE_MS_MAX)


def to_number(
    field: str,
    number: object,
    *,
    least: int = 0,
    limit: int = (1 << 63) - 1,
    what: str = "a number",
) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise InvalidArgument(f"{field}: {number!r} is not {what}, {least} or more")
    if number > limit:
        raise InvalidArgument(f"{field}: {number} is too many; the limit is {limit}")
    return number


def to_text(field: str, text: object, bytes_max: int, *, is_needed: bool = False) -> str:
    if not isinstance(text, str):
        raise InvalidArgument(f"{field}: {text!r} is not text; it must be str")
    if is_needed and not text:
        raise InvalidArgument(f"{field}: it is empty; give 1 to {bytes_max} bytes of text")
    # Short ASCII text needs no encoding to be measured.
    if not text.isascii() or len(text) > bytes_max:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise InvalidArgument(f"{field}: {text[:200]!r} cannot be encoded as UTF-8") from None
        if size > bytes_max:
            raise InvalidArgument(f"{field}: it has {size} bytes; the limit is {bytes_max}")
    return text


def to_ids(field: str, ids: ItemIds) -> list[bytes]:
    if isinstance(ids, bytes | str) or not isinstance(ids, Iterable):
        return [to_id(field, ids)]
    listed = list(ids)
    # Most are ids as they came, or the items of a lease: these are not looked at one by one.
    found: list[Any] = listed
    if {bytes, str}.isdisjoint(map(type, listed)):
        found = [getattr(each, "id", None) for each in listed]
    if set(map(type, found)) == {bytes} and set(map(len, found)) == {ID_BYTES}:
        return found
    return [to_id(field, each) for each in listed]


def to_id(field: str, given: object) -> bytes:
    found = given if isinstance(given, bytes | str) else getattr(given, "id", None)
    if isinstance(found, str):
        try:
            found = bytes.fromhex(found)
        except ValueError:
            found = None
    if not isinstance(found, bytes) or len(found) != ID_BYTES:
        raise InvalidArgument(
            f"{field}: {given!r} is not an id of {ID_BYTES} bytes, nor {2 * ID_BYTES} hexadecimal "
            "digits, nor an item"
        )
    return found


def to_name(name: object) -> str:
    """Text that can be sent; the server checks the rest of the rule."""
    if not isinstance(name, str) or not name.isascii():
        raise InvalidArgument(
            f"name: {name!r} is not a queue name; use 1 to {QUEUE_NAME_CHARS_MAX} letters, digits, "
            "dots, dashes and underscores, all ASCII"
        )
    return name


def to_batch(batch: object, field: str = "batch") -> str:
    return to_text(field, batch, BATCH_NAME_BYTES_MAX, is_needed=True)


def to_reader(reader: object) -> str:
    return to_text("reader", reader, READER_NAME_BYTES_MAX, is_needed=True)


def to_state(state: object) -> ItemState:
    if isinstance(state, ItemState):
        return state
    words = [each.value for each in ItemState]
    if state in words:
        return ItemState(state)
    raise InvalidArgument(f"state: {state!r} is none of {', '.join(words)}")


def to_columns(without: Columns) -> dict[str, bool]:
    """The columns to leave out, as the fields of a message."""
    words = [each.value for each in Column]
    if not isinstance(without, Iterable):
        raise InvalidArgument(f"without: {without!r} is neither a column nor a list of them")
    listed = [without] if isinstance(without, str | Column) else list(without)
    for each in listed:
        if not isinstance(each, Column) and each not in words:
            raise InvalidArgument(f"without: {each!r} is none of {', '.join(words)}")
    return {Column(each).value: True for each in listed}


def to_cursor(field: str, cursor: object) -> bytes:
    if not isinstance(cursor, bytes):
        raise InvalidArgument(f"{field}: {cursor!r} is not the `next` of another page")
    return cursor


def to_byte_strings(field: str, contents: object) -> list[bytes]:
    if isinstance(contents, bytes | bytearray | memoryview):
        return [bytes(contents)]
    if isinstance(contents, str):
        raise InvalidArgument(f"{field}: str is text; encode it to bytes first")
    if not isinstance(contents, Iterable):
        raise InvalidArgument(f"{field}: {contents!r} is neither bytes nor a list of them")
    listed = list(contents)
    if set(map(type, listed)) == {bytes}:
        return listed
    for at, each in enumerate(listed):
        if not isinstance(each, bytes):
            if not isinstance(each, bytearray | memoryview):
                raise InvalidArgument(
                    f"{field}: item {at} is {type(each).__name__}; it must be bytes"
                )
            listed[at] = bytes(each)
    return listed


def one_for_each(field: str, noun: str, given: list[T], count: int) -> list[T]:
    """What is given, once it is checked that these are as many as there are items."""
    if len(given) != count:
        items = "1 item" if count == 1 else f"{count} items"
        raise InvalidArgument(f"{field}: {len(given)} {noun} for {items}; give one for each")
    return given


# --- how items end --------------------------------------------------------------------------------


def to_results(results: CompletedResults, count: int) -> list[bytes]:
    return one_for_each("results", "results", to_byte_strings("results", results), count)


def to_errors(error: object, count: int) -> list[str]:
    """One for all items, or one for each; an error that is too long is cut."""
    if isinstance(error, str | BaseException):
        return [_to_error(error)]
    if not isinstance(error, Iterable):
        raise InvalidArgument(f"error: {error!r} is neither text, an exception, nor a list of them")
    return one_for_each("error", "errors", [_to_error(each) for each in error], count)


def _to_error(error: object) -> str:
    if isinstance(error, BaseException):
        error = f"{type(error).__name__}: {error}".removesuffix(": ")
    if not isinstance(error, str):
        raise InvalidArgument(f"error: {error!r} is neither text nor an exception")
    # Text that UTF-8 cannot hold comes out of exceptions, too, and must not lose the failure.
    data = error.encode(errors="backslashreplace")
    return data[:ERROR_BYTES_MAX].decode(errors="ignore")


# --- loads ----------------------------------------------------------------------------------------


def to_load_ref(name: object, epoch: object) -> LoadRef:
    return LoadRef(
        to_text("load", name, LOAD_NAME_BYTES_MAX, is_needed=True), to_number("epoch", epoch)
    )


def to_part_ref(part: object) -> PartRef:
    if not isinstance(part, PartRef):
        raise InvalidArgument(f"part: {part!r} is not a PartRef")
    to_number("partition", part.partition, limit=PARTITIONS_MAX - 1)
    to_text("attempt", part.attempt, LOAD_NAME_BYTES_MAX, is_needed=True)
    return part
