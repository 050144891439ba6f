"""Receipts: their counts add up, match the acknowledged calls, and do not go back."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from math import inf

from faults.facts import Facts, Violation
from faults.final_state import FoundReceipt
from faults.history import Call
from queueber.limits import BATCH_KEEP_MS

Reading = tuple[str, FoundReceipt, Call | None]
"""The receipts of a batch, from calls and the final state."""


def sums(facts: Facts) -> Iterator[Violation]:
    """Added items are done, dead or live, and a complete batch has no live item."""
    for batch, found, call in _readings(facts):
        calls = () if call is None else (call,)
        if found.added != found.done + found.dead + found.live:
            yield Violation("sums", batch, f"{found} does not add up", calls)
        if found.complete and found.live:
            yield Violation("sums", batch, f"{found} is complete with live items", calls)
    for batch, found in facts.final.receipts.items():
        live = sum(
            item.batch == batch and item.state != "dead" for item in facts.final.items.values()
        )
        if live != found.live:
            yield Violation("sums", batch, f"{found}, but {live} are there")


def bounds(facts: Facts) -> Iterator[Violation]:
    """A receipt counts everything acknowledged before it, and no more than was tried."""
    items: dict[str, list[str]] = {}
    for item, origin in facts.origins.items():
        items.setdefault(origin.batch, []).append(item)
    for batch, found, call in _readings(facts):
        of_batch = items.get(batch, [])
        calls = () if call is None else (call,)
        before_ms = inf if call is None else call.began_ms
        after_ms = inf if call is None else call.ended_ms
        # A batch that was forgotten begins anew: what was counted before does not count.
        is_new = bool(_forgets(facts, batch, until_ms=after_ms))
        added = sum(facts.origins[item].call.ended_ms < before_ms for item in of_batch)
        added = 0 if is_new else added
        tried = sum(facts.origins[item].began_ms <= after_ms for item in of_batch)
        tried += sum(
            len(add.given("contents"))
            for add in facts.unanswered
            if add.arguments.get("batch") == batch and add.began_ms <= after_ms
        )
        if not added <= found.added <= tried:
            text = f"{found}, but {added} to {tried} were added"
            yield Violation("receipt", batch, text, calls)
        done = sum(_is_done(facts, item, before_ms) for item in of_batch)
        if found.done < done and not is_new:
            yield Violation("receipt", batch, f"{found}, but {done} were done", calls)
    yield from _forgotten(facts)


def _forgotten(facts: Facts) -> Iterator[Violation]:
    """The queue knows a batch from its first add until days after its end."""
    if facts.server_ms_max() > BATCH_KEEP_MS / 2:
        return
    told = [(origin.batch, origin.call) for origin in facts.origins.values()]
    told += [(batch, call) for batch, _, call in _readings(facts) if call is not None]
    first: dict[str, Call] = {}
    for batch, call in told:
        first.setdefault(batch, call)
    for batch in facts.final.unknown_batches:
        if batch in first and not _forgets(facts, batch):
            text = "was there, and nothing is known of it at the end"
            yield Violation("receipt", batch, text, (first[batch],))


def _forgets(
    facts: Facts, batch: str, *, since_ms: float = -inf, until_ms: float = inf
) -> list[Call]:
    """The calls that may have forgotten the batch in that time."""
    return [
        call
        for call in facts.by_operation["forget_batch"]
        if call.arguments["batch"] == batch
        and call.answer.get("forgotten", True)
        and call.ended_ms >= since_ms
        and call.began_ms <= until_ms
    ]


def forgotten_too_early(facts: Facts) -> Iterator[Violation]:
    """A batch is forgotten only when none of its items is live."""
    if facts.by_operation["redrive"]:
        return  # an item that was dead may be polled again, in no batch
    for call in facts.by_operation["forget_batch"]:
        if not call.answer.get("forgotten"):
            continue
        for item, origin in facts.origins.items():
            if origin.batch != call.arguments["batch"] or origin.call.ended_ms >= call.began_ms:
                continue
            later = [hold.poll for hold in facts.holds[item] if hold.poll.began_ms > call.ended_ms]
            if later:
                text = f"was live when its batch {origin.batch!r} was forgotten"
                yield Violation("forgotten too early", item, text, (call, later[0]))


def _is_done(facts: Facts, item: str, before_ms: float) -> bool:
    return any(
        named.is_done and named.call.ended_ms < before_ms
        for operation in ("remove", "complete")
        for named in facts.named[operation].get(item, ())
    )


def went_back(facts: Facts) -> Iterator[Violation]:
    """Added and done only grow; dead also does, unless a redrive may have happened."""
    by_batch: dict[str, list[tuple[FoundReceipt, Call | None]]] = {}
    for batch, found, call in _readings(facts):
        by_batch.setdefault(batch, []).append((found, call))
    for batch, readings in by_batch.items():
        for (one, first), (other, second) in combinations(readings, 2):
            if first is None or (second is not None and first.ended_ms >= second.began_ms):
                continue
            calls = (first,) if second is None else (first, second)
            until_ms = inf if second is None else second.ended_ms
            if _forgets(facts, batch, since_ms=first.began_ms, until_ms=until_ms):
                continue
            if other.added < one.added or other.done < one.done:
                yield Violation("receipt went back", batch, f"from {one} to {other}", calls)
            if other.dead < one.dead and not _may_be_redriven(facts, first, second):
                text = f"from {one} to {other}, and nothing was redriven"
                yield Violation("receipt went back", batch, text, calls)


def _may_be_redriven(facts: Facts, first: Call, second: Call | None) -> bool:
    until_ms = inf if second is None else second.ended_ms
    return any(
        redrive.ended_ms >= first.began_ms and redrive.began_ms <= until_ms
        for redrive in facts.by_operation["redrive"]
    )


def _readings(facts: Facts) -> Iterable[Reading]:
    calls = [*facts.by_operation["receipt"], *facts.by_operation["wait_batch"]]
    for call in sorted(calls, key=lambda each: each.began_ms):
        if call.is_ok:
            yield call.arguments["batch"], FoundReceipt(**call.answer), call
    for batch, found in facts.final.receipts.items():
        yield batch, found, None
