"""Acknowledgements of a shared group up to an offset, and windows of one partition."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

from faults.facts import Violation
from faults.final_state import FinalState
from faults.history import Call, History, Outcome

ACK_UP_TO = "ack_up_to"
_DEAD = "dead"


def place_of(item: str) -> tuple[int, int]:
    """Partition and offset of a message, by its reference as a history has it."""
    return int(item[:16], 16), int(item[16:], 16)


def place_id(partition: int, offset: int) -> str:
    """The reference of a message, as a history has ids."""
    return f"{partition:016x}{offset:016x}"


def as_cancel(call: Call) -> Call:
    """An acknowledgement up to an offset as a cancel of unknown outcome: which messages it settled
    is not told."""
    partition, end = call.arguments["partition"], call.arguments["offset"]
    ids = [place_id(partition, offset) for offset in range(end)]
    return replace(
        call, operation="cancel", outcome=Outcome.UNKNOWN, ended_ms=inf, arguments={"ids": ids},
        answer={},
    )  # fmt: skip


def settled(history: History, queues: Mapping[str, FinalState]) -> Iterator[Violation]:
    """What a group has acknowledged is not delivered again, is dead or gone in the end, and the
    offset does not go back. Nobody redrives dead letters or resets the group."""
    acks: dict[tuple[str, int], list[Call]] = defaultdict(list)
    for call in history.calls:
        if call.operation == ACK_UP_TO and call.is_ok:
            acks[call.queue, call.arguments["partition"]].append(call)
    polls = [call for call in history.calls if call.operation == "poll" and call.is_ok]
    for (group, partition), calls in acks.items():
        name = f"{group}/{partition}"
        for ack in calls:
            asked, told = ack.arguments["offset"], ack.answer["offset"]
            if told < asked:
                yield Violation("settled", name, f"is at {told}, before {asked}", (ack,))
        for poll in [each for each in polls if each.queue == group]:
            before = [ack for ack in calls if ack.ended_ms < poll.began_ms]
            last = max(before, key=lambda ack: ack.arguments["offset"], default=None)
            if last is None:
                continue
            for at, offset in map(place_of, poll.answer["ids"]):
                if at == partition and offset < last.arguments["offset"]:
                    text = f"{offset} was polled, and is acknowledged"
                    yield Violation("settled", name, text, (last, poll))
        yield from _gone_back(name, calls)
        final = queues[group].items if group in queues else {}
        end = max([ack.arguments["offset"] for ack in calls])
        for item, found in final.items():
            place = place_of(item)
            if place[0] == partition and place[1] < end and found.state != _DEAD:
                text = f"{place[1]} is {found.state} at the end, and was acknowledged"
                yield Violation("settled", name, text, tuple(calls[-1:]))


def _gone_back(name: str, calls: Sequence[Call]) -> Iterator[Violation]:
    for earlier in calls:
        for later in calls:
            is_lower = later.answer["offset"] < earlier.answer["offset"]
            if is_lower and earlier.ended_ms < later.began_ms:
                yield Violation("settled", name, "went back", (earlier, later))


def windows(history: History) -> Iterator[Violation]:
    """A poll of one partition gets messages of it, in the order of their offsets."""
    for call in history.calls:
        partition = call.arguments.get("partition")
        if call.operation != "poll" or partition is None or not call.is_ok:
            continue
        places = [place_of(item) for item in call.answer["ids"]]
        is_in_order = all(before < after for before, after in pairwise(places))
        if not is_in_order or {each[0] for each in places} - {partition}:
            yield Violation("window", call.queue, f"{places} of partition {partition}", (call,))
