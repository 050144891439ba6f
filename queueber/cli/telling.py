"""What became of each of several items: in words, in JSON, and as an exit code."""

from collections.abc import Sequence

from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.options import Target
from queueber.cli.output import echo_json, echo_lines

LEASE_ENDED = "the lease has ended, or never held it"


def tell_each(
    target: Target, ids: Sequence[bytes], told: Sequence[str], reason: str, *words: str
) -> None:
    """Print each id with its word, or ids by word, and end with 1 if one of them is a 'not'.

    `words` are all that there may be, the last one a 'not', for which there is the reason: every
    field of the JSON is there.
    """
    if target.use_json:
        by_word: dict[str, list[str]] = {word: [] for word in words}
        for item_id, word in zip(ids, told, strict=True):
            by_word[word].append(item_id.hex())
        echo_json({_field(word): listed for word, listed in by_word.items()})
    else:
        shown = {word: word for word in words} | {words[-1]: f"{words[-1]}: {reason}"}
        echo_lines(f"{i.hex()}  {shown[word]}" for i, word in zip(ids, told, strict=True))
    if words[-1] in told:
        raise Exit(NEGATIVE)


def tell_done(
    target: Target,
    ids: Sequence[bytes],
    done: Sequence[bool],
    word: str,
    reason: str = LEASE_ENDED,
) -> None:
    """The same for what is done or not done."""
    told = [word if each else f"not {word}" for each in done]
    tell_each(target, ids, told, reason, word, f"not {word}")


def _field(word: str) -> str:
    """`notRemoved` for `not removed`."""
    first, *rest = word.split()
    return first + "".join(each.capitalize() for each in rest)
