"""The rules of schedules: every run once, in whatever order the server crashed and came back."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from queueber.model import NO_OPTIONS, ItemOptions, ScheduleInfo


@dataclass(frozen=True, slots=True)
class FoundRun:
    """An item that a schedule has added."""

    id: bytes
    schedule: str
    at_ms: int
    options: ItemOptions = NO_OPTIONS


def steady_runs(
    info: ScheduleInfo, runs: Sequence[FoundRun], every_ms: int, now_ms: int, *, late_ms: int = 0
) -> Iterator[str]:
    """Of a schedule that nobody has touched and that makes up for all that it missed: one item for
    each time since it was created, but for those of the last `late_ms`."""
    found = Counter(run.at_ms for run in runs if run.schedule == info.name)
    first_ms = info.created_at_ms - info.created_at_ms % every_ms + every_ms
    expected = Counter(range(first_ms, info.next_at_ms, every_ms))
    if missing := expected - found:
        yield f"schedule {info.name!r}: runs were not made: {sorted(missing)}"
    if surplus := found - expected:
        yield f"schedule {info.name!r}: runs that should not be: {dict(surplus)}"
    if info.runs != found.total():
        yield f"schedule {info.name!r}: counts {info.runs} runs, but made {found.total()}"
    if info.next_at_ms <= now_ms - every_ms - late_ms:
        yield f"schedule {info.name!r}: stuck at {info.next_at_ms}, and it is {now_ms}"


def touched_runs(
    name: str, runs: Sequence[FoundRun], asked_for: set[bytes], *, lost: int, removals: int
) -> Iterator[str]:
    """Of a schedule that somebody changed, paused, removed and ran: times that rise with the ids of
    their items, and every run that was acknowledged. `lost` calls may have added one more item
    each. A schedule that is created after it was removed is another one: if the clock was set back
    meanwhile, its times begin anew."""
    own = sorted((run for run in runs if run.schedule == name), key=lambda run: run.id)
    if missing := asked_for - {run.id for run in own}:
        yield f"schedule {name!r}: lost runs that were acknowledged: {sorted(missing)}"
    times = [run.at_ms for run in own if run.id not in asked_for]
    back = [(before, after) for before, after in pairwise(times) if after <= before]
    if len(back) > lost + removals:
        yield f"schedule {name!r}: times that do not rise: {back}"


def runs_with_options(given: Mapping[str, ItemOptions], runs: Sequence[FoundRun]) -> Iterator[str]:
    """`given` has what each schedule said from its creation on."""
    for run in runs:
        if run.options != given[run.schedule]:
            yield f"schedule {run.schedule!r}: an item that has {run.options} of its own"


def touched_state(name: str, known: Mapping[str, ScheduleInfo], may_be: set[str]) -> Iterator[str]:
    """What was acknowledged holds."""
    info = known.get(name)
    state = "absent" if info is None else "paused" if info.is_paused else "running"
    if state not in may_be:
        yield f"schedule {name!r}: is {state}, but must be {' or '.join(sorted(may_be))}"
