r"""A history: all calls to a server, as their callers saw them.

The caller records each call, outside the server: when it began, and when and how it ended. Times
are milliseconds of a clock that all recorders share and that never jumps. A call has an unknown
outcome if its end was not recorded, or its answer was lost.

A history keeps this of each operation, in JSON (ids in hex, contents as `printed` returns them; a
column may be empty, as in `NewItems`):

| operation | arguments | answer |
| --- | --- | --- |
| add | contents, keys, cap_keys, delays_ms, expires_ms, batch, producer (id, epoch, sequence) \
| ids, duplicates |
| poll | lease_ms, bound, partition (of a group, if it is for one) | lease, ids, contents, \
deliveries |
| ack_up_to (of a group) | partition, offset | offset |
| extend | leases, leases_ms | done |
| remove, release | ids, leases | done |
| complete | ids, leases, results | done |
| fail | ids, leases, delays_ms (-1: the queue's) | outcomes (refused, retried, died) |
| cancel | ids | done |
| reschedule | ids, delays_ms (0: now) | done |
| purge | state (one, or "any"), batch (cancels those of it alone), key (the item of it) | count |
| redrive | ids (none: all) | count |
| receipt, wait_batch | batch | added, done, dead, live, complete |
| read_results | reader | results ([offset, id, result] each) |
| ack_results | reader, offset | |
| drop_reader | reader | done |
| pause | for_ms (0: until resumed) | |
| resume | | |
| caps | concurrency_max, rate_items, rate_ms, cap_by_concurrency_max, \
cap_by_rate_items, cap_by_rate_ms (0: none); they hold until the next of these | |

Calls about topics have the queue `topics`, and name the topic themselves:

| operation | arguments | answer |
| --- | --- | --- |
| publish | publications: each with topic, contents, keys, dedup_ids, partition, producer, \
expected, closes, content_type, text_sequence, schema_version, \
one_partition | published: each with partitions, offsets, ids, sequences, duplicates, repeat |
| read | topic, partition, start, value, moves, group | first, end, next, messages: each with \
offset, contents, key, id, sequence, at_ms |
| delivered | topic, partition | messages, as of a read: a subscription gave them |
| trim | topic, partition, offset | count |
| fork | topic, name, partition, offset, cut_bytes, first | published, if it is new |
| create_topic | topic, first (a publication), schema | published, if it is new |
| set_schema | topic, document, expected (version and offset) | version, from_offset |
| schemas | topic | schemas: each with version and offset |
| delete_topic | topic | done |
| close | topic | |
| set_topic | topic | |
| add_source | topic, queue, on, where, partition_by, payload, after (the last sequence before) | \
done, up_to (the last sequence behind) |
| drop_source | topic, queue, on (none: all), after | count, up_to |
| ack | topic, group, partition, offset, subscription (if it is one's) | cursor |
| reset | topic, group, partition, offset | |
| create_group, resume_group | topic, group | |
| pause_group | topic, group, for_ms | |
| configure | of (a queue), item_bytes_max | |
| subscribe | group, subscription (its name) | |
| grant, unsubscribe | | |
| pushed | topic, partition, group, subscription | messages, as those of a read |
| together | topics, into (a queue), contents, ack | ids, published |

It also has events of the server and its callers: `restart` (answer: sequence, the last one that is
left, if it is known), `clock_step` (ms) and `hang_up`
(leases: those that were bound to the connection; without that column, all bound leases of the
client). Their outcome is ok once they are over.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from hashlib import blake2b
from itertools import count
from math import inf
from typing import Any

TOPICS = "topics"
"""The queue of calls about topics."""
ANY_STATE = "any"
"""Of a purge that may take an item in whatever state."""
SCHEDULES = "schedules"
"""The queue of calls about schedules."""

_SHOWN_BYTES_MAX = 24


class Outcome(Enum):
    OK = "ok"
    REFUSED = "refused"
    """The server answered that it did nothing."""
    UNKNOWN = "unknown"
    """The call may have happened, at any time after its begin."""


@dataclass(frozen=True, slots=True)
class Call:
    client: str
    operation: str
    began_ms: float
    ended_ms: float
    """Infinity if the outcome is unknown."""
    outcome: Outcome
    arguments: Mapping[str, Any] = field(default_factory=dict)
    answer: Mapping[str, Any] = field(default_factory=dict)
    queue: str = "default"

    @property
    def is_ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def may_have_happened(self) -> bool:
        return self.outcome is not Outcome.REFUSED

    def given(self, column: str) -> Sequence[Any]:
        """A column of the arguments; empty if there is none."""
        found: Sequence[Any] = self.arguments.get(column) or ()
        return found

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={value}" for name, value in self.arguments.items())
        answer = ", ".join(f"{name}={value}" for name, value in self.answer.items())
        end = f"{self.ended_ms:.3f}" if self.is_ok or self.ended_ms < inf else "?"
        times = f"{self.began_ms:.3f} to {end}"
        return f"{times} {self.client}: {self.operation}({arguments}) {self.outcome.value} {answer}"


@dataclass
class History:
    calls: list[Call] = field(default_factory=list)

    def of(self, queue: str) -> "History":
        """The calls of one queue, and events that concern all queues."""
        return History([c for c in self.calls if c.queue in {queue, ""}])

    def queues(self) -> list[str]:
        return sorted({call.queue for call in self.calls} - {""})


def merged(histories: Iterable[History]) -> History:
    """The histories of several recorders in one, sorted by time."""
    calls = [call for history in histories for call in history.calls]
    return History(sorted(calls, key=lambda call: (call.began_ms, call.ended_ms)))


def printed(contents: bytes) -> str:
    """Contents as a history keeps them: short ones unchanged, longer ones as a digest."""
    if len(contents) <= _SHOWN_BYTES_MAX and contents.isascii():
        return contents.decode()
    return f"blake2b:{blake2b(contents, digest_size=16).hexdigest()}"


# --- as lines of JSON -----------------------------------------------------------------------------

Line = dict[str, Any]


def begin_line(number: int, call: Call) -> Line:
    """The line for the begin of a call. It remains if the process dies before the call ends."""
    line = asdict(call) | {"number": number}
    for later in ("ended_ms", "outcome", "answer"):
        del line[later]
    return line


def end_line(number: int, call: Call) -> Line:
    ended_ms = call.ended_ms if call.ended_ms < inf else None
    return {
        "number": number,
        "ended_ms": ended_ms,
        "outcome": call.outcome.value,
        "answer": dict(call.answer),
    }


def from_lines(lines: Iterable[Line]) -> History:
    """The calls of one recorder. A call without an end has an unknown outcome."""
    begun: dict[int, Line] = {}
    for line in lines:
        begun.setdefault(line["number"], {}).update(line)
    return History([_call(line) for line in begun.values()])


def _call(line: Line) -> Call:
    ended_ms = line.get("ended_ms")
    return Call(
        line["client"],
        line["operation"],
        line["began_ms"],
        inf if ended_ms is None else ended_ms,
        Outcome(line.get("outcome", "unknown")),
        line["arguments"],
        line.get("answer", {}),
        line["queue"],
    )


def numbers() -> Iterator[int]:
    """Numbers for the calls of one recorder."""
    return count(1)
