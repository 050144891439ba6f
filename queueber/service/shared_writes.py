"""Shared writes: calls that wait for the same sync are written in few transactions.

While a sync is under way, what is written meanwhile cannot be answered: it needs the next sync. So
calls gather until then, and those of one kind on one queue become one operation on their joined
columns. Each caller still has its own answer, and a call that fails fails alone: what the engine
refuses together is run again call by call.

The calls of one session on a queue happen in the order in which they came: a call of another kind
has the gathered ones written first. Calls of different sessions have no order before they are
answered.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, Protocol

from queueber.model import Added, IdRuns, NewItems
from queueber.model.joined import join_column
from queueber.service.loop import Future
from queueber.service.session import Session

SHARED_ITEMS_MAX = 16
"""A call with more items is written at once: its own transaction costs little an item, and the sync
under way leaves time for it."""
GATHERED_ITEMS_MAX = 4096
"""So many items gather at most before they are written."""

_RUN_ITEMS_MIN = 8
"""If calls have fewer items on average, making their ids costs less than splitting runs."""

Columns = tuple[Any, ...]


@dataclass(slots=True, eq=False)
class Call:
    columns: Columns
    count: int
    future: Future = None
    """Gets the answer once it is durable."""
    answer: Any = None
    """Set when the call is written."""


Write = Callable[[Any, list[Call]], None]
"""Writes calls of one kind together, and sees to their answers."""


class Held(Protocol):
    """What a session's calls are about: a queue, or all topics."""

    @property
    def state(self) -> Hashable: ...
    @property
    def session(self) -> Session: ...
    def check_alive(self) -> None: ...


@dataclass(slots=True)
class _Group:
    """Calls of one kind on one queue."""

    write: Write
    calls: list[Call] = field(default_factory=list)
    sessions: set[Session] = field(default_factory=set)
    items: int = 0


class SharedWrites:
    """The calls that are gathered for the next sync."""

    def __init__(self) -> None:
        self._groups: dict[Hashable, dict[object, _Group]] = {}

    def gather(self, queue: Held, kind: object, write: Write, call: Call) -> None:
        state, session = queue.state, queue.session
        groups = self._groups.get(state)
        if groups and any(
            session in group.sessions for each, group in groups.items() if each is not kind
        ):
            self.write(state)
            groups = None
        if groups is None:
            groups = self._groups.setdefault(state, {})
        group = groups.get(kind)
        if group is None:
            group = groups[kind] = _Group(write)
        group.calls.append(call)
        group.sessions.add(session)
        group.items += call.count
        if call.count > SHARED_ITEMS_MAX or group.items > GATHERED_ITEMS_MAX:
            self.write(state)

    def write_before(self, state: Hashable, session: Session) -> None:
        """Write what was gathered if calls of the session are among it."""
        if any(session in group.sessions for group in self._groups.get(state, {}).values()):
            self.write(state)

    def write(self, state: Hashable) -> None:
        """Write what was gathered on one queue."""
        while groups := self._groups.get(state):
            group = groups.pop(next(iter(groups)))
            group.write(state, group.calls)
        self._groups.pop(state, None)

    def write_all(self) -> None:
        while self._groups:
            self.write(next(iter(self._groups)))


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A kind of call whose columns can be joined."""

    event: str
    """What the log calls it."""
    op: Callable[..., Any]
    """The engine's operation, called with a transaction and the columns."""
    join: Callable[[Sequence[Columns]], Columns]
    split: Callable[[Any, Sequence[int]], Sequence[Any]]
    """The answer to each call, given the joined answer and how many items each call had."""
    brings_results: bool = False
    """Whether readers of results are to be woken."""


def lists(event: str, op: Callable[..., Any], *, brings_results: bool = False) -> Verb:
    """A verb whose columns are lists with one element an item, and whose answer is one, too."""
    return Verb(event, op, _join_lists, _split_list, brings_results)


def _join_lists(calls: Sequence[Columns]) -> Columns:
    return tuple(join_column(column) for column in zip(*calls, strict=True))


def _split_list(answer: Sequence[Any], counts: Sequence[int]) -> list[Any]:
    return [answer[start:end] for start, end in pairwise(accumulate(counts, initial=0))]


def adds(op: Callable[..., Any]) -> Verb:
    """Adds of items that have contents and nothing else."""
    return Verb("added", op, _join_adds, _split_added)


def is_plain_add(items: NewItems) -> bool:
    return not (
        items.delays_ms
        or items.priorities
        or items.keys
        or items.attributes
        or items.batch
        or items.producer
        or items.origin
        or items.after
        or items.after_batch
        or items.options
    )


def _join_adds(calls: Sequence[Columns]) -> Columns:
    return (NewItems(join_column([items.contents for (items,) in calls])),)


def _split_added(answer: Added, counts: Sequence[int]) -> list[Added]:
    return [Added(ids) for ids in split_ids(answer.ids, counts)]


def split_ids(ids: Sequence[bytes], counts: Sequence[int]) -> Iterable[Sequence[bytes]]:
    if isinstance(ids, IdRuns) and len(ids) >= _RUN_ITEMS_MIN * len(counts):
        return ids.split(counts)
    return _split_list(list(ids), counts)
