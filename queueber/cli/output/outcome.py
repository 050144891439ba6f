"""What became of items: in words or in JSON, and as an exit code."""

from collections.abc import Sequence

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.flags.target import Target
from queueber.cli.output.json_lines import echo_json, to_camel_case
from queueber.cli.output.text import counted, echo_lines


def echo_outcomes(
    target: Target, ids: Sequence[bytes], outcomes: Sequence[str], reason: str, words: Sequence[str]
) -> None:
    """Print the outcome of each id; end with 1 if one of them is the last word, which is a 'not'.

    `words` are all possible outcomes, so that the JSON has a list for each. `reason` explains the
    'not'.
    """
    *_, negative = words
    if target.use_json:
        by_word: dict[str, list[str]] = {word: [] for word in words}
        for item_id, word in zip(ids, outcomes, strict=True):
            by_word[word].append(item_id.hex())
        echo_json({to_camel_case(word): listed for word, listed in by_word.items()})
    else:
        shown = {word: word for word in words} | {negative: f"{negative}: {reason}"}
        echo_lines(f"{i.hex()}  {shown[word]}" for i, word in zip(ids, outcomes, strict=True))
    if negative in outcomes:
        raise Exit(NEGATIVE)


def echo_done(target: Target, name: str, word: str, reason: str, *, is_done: bool) -> None:
    """Print whether one thing was done, and if not, the reason; end with 1 then."""
    if target.use_json:
        echo_json({word: is_done})
    else:
        click.echo(f"{name}  {word if is_done else f'not {word}: {reason}'}")
    if not is_done:
        raise Exit(NEGATIVE)


def echo_count(target: Target, word: str, count: int, reason: str) -> None:
    """`3 items purged`; `reason` says why there were not more, if there is something to say."""
    if target.use_json:
        echo_json({word: count})
    else:
        click.echo(f"{counted(count, 'item')} {word}{reason and f': {reason}'}")
