"""Short ways to the entries that tests expect in an index."""

from queueber.db.records.attempts import Failed, History, encode_attempts
from queueber.db.records.keys import DUE_BYTES, Due
from queueber.db.records.runs import MarkFields, Run, encode_mark, make_run
from queueber.ids import ItemId
from queueber.model import AttemptEnd

LOWEST_DUE = Due(bytes(DUE_BYTES))
PLAIN_MARK = encode_mark(MarkFields())


def plain_run(last: bytes, size: int, *, count: int = 1, at: int = 0, span: int = 0) -> Run:
    """A run of items with nothing special about them; without a span it ends its block."""
    return make_run(ItemId(last), count, at, span or at + count, size, PLAIN_MARK)


def history_of(
    times_ms: list[int], error: str, end: AttemptEnd | None = AttemptEnd.FAILED
) -> bytes:
    """The record of an item that failed at these times; of the last failure the error is known."""
    return encode_attempts(History(times_ms, [Failed(end, error)]))
