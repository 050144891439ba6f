"""The rules of callbacks: each item once, when its batch is complete, and with a true receipt."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from queueber.model import Receipt


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller knows of its batch and of the callback that it asked for."""

    batch: str
    is_known: bool
    """Whether the call was answered; it may have had its effect all the same."""


def called_back(
    asked: Sequence[Asked], found: Sequence[Receipt], receipts: Mapping[str, Receipt]
) -> Iterator[str]:
    """`found` has what each item says, `receipts` what the queue says at the end. Nothing is added
    to a batch after its callback."""
    times = Counter(each.batch for each in found)
    for batch, count in times.items():
        if count > 1:
            yield f"callback of {batch!r}: {count} items were added"
    if strangers := set(times) - {each.batch for each in asked}:
        yield f"callbacks that nobody asked for: {sorted(strangers)}"
    for each in asked:
        receipt = receipts.get(each.batch)
        if not each.is_known or each.batch in times:
            continue
        if receipt is None:
            yield f"callback of {each.batch!r}: its batch was forgotten before it"
        elif receipt.complete:
            yield f"callback of {each.batch!r}: nothing was added, and it is {receipt}"
    for receipt in found:
        now = receipts.get(receipt.batch)
        if not receipt.complete or receipt.added != receipt.done + receipt.dead:
            yield f"callback of {receipt.batch!r}: not complete: {receipt}"
        if now is not None and (now.added, now.added_digest) != (
            receipt.added,
            receipt.added_digest,
        ):
            yield f"callback of {receipt.batch!r}: says {receipt}, but it is {now}"
