"""Readers of results: none reads again what it acknowledged, and unread results stay."""

from collections.abc import Iterator
from math import inf

from faults.facts import Facts, Violation
from faults.history import Call


def unread(facts: Facts) -> Iterator[Violation]:
    """A result is deleted only once all known readers have acknowledged it."""
    if facts.final.are_results_limited:
        return
    first_offset = facts.final.first_offset
    acks = facts.by_operation["ack_results"]
    if first_offset > max((ack.arguments["offset"] for ack in acks), default=0):
        text = f"those before {first_offset} are gone, and nobody had read them"
        yield Violation("unread", "all", text)
    for reader in sorted({ack.arguments["reader"] for ack in acks}):
        own = [ack for ack in acks if ack.arguments["reader"] == reader]
        known = [ack for ack in own if ack.is_ok and not _may_be_dropped(facts, ack, inf)]
        if not known:
            continue
        first = min(known, key=lambda ack: ack.ended_ms)
        done_before = max(ack.arguments["offset"] for ack in own)
        # Other readers may have acknowledged results before this reader was known.
        for read in facts.by_operation["read_results"]:
            offsets = [offset for offset, _, _ in read.answer.get("results", ())]
            if read.began_ms < first.ended_ms:
                continue
            if gone := [each for each in offsets if done_before <= each < first_offset]:
                text = f"{gone} are gone, and {reader!r} had not acknowledged them"
                yield Violation("unread", reader, text, (first, read))


def went_back(facts: Facts) -> Iterator[Violation]:
    """A reader continues where it has acknowledged."""
    for ack in facts.by_operation["ack_results"]:
        if not ack.is_ok:
            continue
        for read in facts.by_operation["read_results"]:
            is_own = read.arguments.get("reader") == ack.arguments["reader"]
            if not is_own or read.began_ms < ack.ended_ms:
                continue
            offsets = [offset for offset, _, _ in read.answer.get("results", ())]
            is_back = min(offsets, default=inf) < ack.arguments["offset"]
            if is_back and not _may_be_dropped(facts, ack, read.ended_ms):
                text = f"was given {offsets}, and had acknowledged more"
                yield Violation("reader went back", ack.arguments["reader"], text, (ack, read))


def _may_be_dropped(facts: Facts, ack: Call, until_ms: float) -> bool:
    """Whether the reader may have been dropped after an acknowledgement."""
    return any(
        drop.ended_ms >= ack.began_ms and drop.began_ms <= until_ms
        for drop in facts.by_operation["drop_reader"]
        if drop.arguments["reader"] == ack.arguments["reader"]
    )
