"""What users pass, turned into what calls take. Seconds become milliseconds here.

Every refusal names the field, what it was, and the rule or the limit.
"""

from collections.abc import Iterable, Sequence

from queueber.errors import InvalidArgument
from queueber.limits import (
    BATCH_NAME_BYTES_MAX,
    ERROR_BYTES_MAX,
    ID_BYTES,
    READER_NAME_BYTES_MAX,
    SECOND_MS,
)
from queueber.model import Column, ItemState

Contents = bytes | Iterable[bytes]
ItemIds = bytes | Iterable[bytes]
CompletedResults = bytes | Sequence[bytes]
Errors = str | Sequence[str]
State = ItemState | str
Columns = str | Column | Iterable[str | Column]

# --- plain values ---------------------------------------------------------------------------------


def to_ms(field: str, seconds: object, limit_ms: int | None = None) -> int:
    """Without a limit here, the server has one."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1e12:
        raise InvalidArgument(f"{field}: {seconds!r} is not a number of seconds, 0 or more")
    ms = round(seconds * SECOND_MS)
    if limit_ms is not None and ms > limit_ms:
        raise InvalidArgument(
            f"{field}: {seconds} s is too long; the limit is {limit_ms // SECOND_MS}"
        )
    return ms


def to_some_ms(field: str, seconds: object, limit_ms: int | None = None) -> int:
    """What rounds to nothing is still the shortest duration there is, but 0 is none."""
    if seconds == 0:
        raise InvalidArgument(f"{field}: 0 is too short; give at least one millisecond, 0.001")
    return max(to_ms(field, seconds, limit_ms), 1)


def to_lease_ms(seconds: float | None) -> int:
    """0 on the wire: the queue's own."""
    if seconds is None:
        return 0
    if seconds == 0:
        raise InvalidArgument("lease: 0 is no lease; give more, or None for the queue's own")
    return to_some_ms("lease", seconds)


def to_number(field: str, number: object, *, least: int = 0, limit: int = (1 << 63) - 1) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise InvalidArgument(f"{field}: {number!r} is not a number, {least} or more")
    if number < least:
        raise InvalidArgument(f"{field}: {number} is not a number, {least} or more")
    if number > limit:
        raise InvalidArgument(f"{field}: {number} is too many; the limit is {limit}")
    return number


def to_count(count: object) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count < 1 << 32:
        raise InvalidArgument(f"count: {count!r} is not a number of items, 1 or more")
    return count


def to_text(field: str, text: object, bytes_max: int, *, is_needed: bool = False) -> str:
    if not isinstance(text, str):
        raise InvalidArgument(f"{field}: {text!r} is not text; it must be str")
    if is_needed and not text:
        raise InvalidArgument(f"{field}: it is empty; give 1 to {bytes_max} bytes of text")
    # Most texts are short enough whatever they are made of, and need not be encoded to be measured.
    if not text.isascii() or len(text) > bytes_max:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise InvalidArgument(f"{field}: {text[:200]!r} cannot be encoded as UTF-8") from None
        if size > bytes_max:
            raise InvalidArgument(f"{field}: it has {size} bytes; the limit is {bytes_max}")
    return text


def to_ids(field: str, ids: bytes | Iterable[bytes]) -> list[bytes]:
    return [to_id(field, each) for each in ([ids] if isinstance(ids, bytes) else ids)]


def to_id(field: str, given: object) -> bytes:
    if not isinstance(given, bytes) or len(given) != ID_BYTES:
        raise InvalidArgument(f"{field}: {given!r} is not an id of {ID_BYTES} bytes")
    return given


def to_name(name: object) -> str:
    """What may be a queue's name as far as the wire is concerned; the server knows the rule."""
    if not isinstance(name, str) or not name.isascii():
        raise InvalidArgument(f"name: {name!r} is not a queue name")
    return name


def to_batch(batch: object) -> str:
    return to_text("batch", batch, BATCH_NAME_BYTES_MAX, is_needed=True)


def to_reader(reader: object) -> str:
    return to_text("reader", reader, READER_NAME_BYTES_MAX, is_needed=True)


def to_state(state: object) -> ItemState:
    if isinstance(state, ItemState):
        return state
    words = [each.value for each in ItemState]
    if isinstance(state, str) and (word := state.replace("_", " ")) in words:
        return ItemState(word)
    raise InvalidArgument(f"state: {state!r} is none of {', '.join(words)}")


def to_columns(without: Columns) -> frozenset[Column]:
    words = [each.value for each in Column]
    found = set()
    for each in [without] if isinstance(without, str | Column) else without:
        if not isinstance(each, Column) and each not in words:
            raise InvalidArgument(f"without: {each!r} is none of {', '.join(words)}")
        found.add(Column(each))
    return frozenset(found)


def to_cursor(field: str, cursor: object) -> bytes:
    if not isinstance(cursor, bytes):
        raise InvalidArgument(f"{field}: {cursor!r} is not the `next` of another page")
    return cursor


def to_contents(contents: object, field: str = "contents") -> list[bytes]:
    if isinstance(contents, bytes | bytearray | memoryview):
        return [bytes(contents)]
    if isinstance(contents, str):
        raise InvalidArgument(f"{field}: str is text; encode it to bytes first")
    if not isinstance(contents, Iterable):
        raise InvalidArgument(f"{field}: {contents!r} is neither bytes nor a list of them")
    listed = list(contents)
    for at, each in enumerate(listed):
        if not isinstance(each, bytes):
            if not isinstance(each, bytearray | memoryview):
                raise InvalidArgument(
                    f"{field}: item {at} is {type(each).__name__}; it must be bytes"
                )
            listed[at] = bytes(each)
    if not listed:
        raise InvalidArgument(f"{field}: there are none; add at least one item")
    return listed


def check_one_for_each(field: str, noun: str, given: int, count: int) -> None:
    if given != count:
        raise InvalidArgument(f"{field}: {given} {noun} for {count} items; give one for each")


# --- how items end --------------------------------------------------------------------------------


def to_results(results: CompletedResults, count: int) -> list[bytes]:
    listed = to_contents(results, "results")
    check_one_for_each("results", "results", len(listed), count)
    return listed


def to_errors(error: object, count: int) -> list[str]:
    """One for all of them, or one for each."""
    if isinstance(error, str):
        return [to_text("error", error, ERROR_BYTES_MAX)]
    if not isinstance(error, Iterable):
        raise InvalidArgument(f"error: {error!r} is neither text nor a list of it")
    errors = [to_text("error", each, ERROR_BYTES_MAX) for each in error]
    check_one_for_each("error", "errors", len(errors), count)
    return errors
