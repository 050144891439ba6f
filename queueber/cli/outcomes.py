"""`queueber remove`, `complete`, `fail` and `release`: how the items of a lease end."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from queueber.cli.finding import existing_queue
from queueber.cli.new_calls import CALL_ITEMS_MAX, call_bytes_max, split_calls
from queueber.cli.options import (
    Target,
    check_exclusive,
    client_options,
    ids_argument,
    lease_argument,
    queue_option,
    seconds_up_to,
)
from queueber.cli.output import counted
from queueber.cli.telling import LEASE_ENDED, tell_done, tell_each
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX
from queueber.model import FailOutcome

T = TypeVar("T")


@click.command()
@lease_argument
@ids_argument
@queue_option
@client_options
def remove(target: Target, queue: str, lease: bytes, ids: tuple[bytes, ...]) -> None:
    """Remove items that are done, under the lease that holds them.

    \b
    Example:
      queueber remove 0199f1c2a7e27cc2a3f1bb6a5d3c9e01 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Prints what became of each. Ends with 1 when one was not removed: the lease has ended or does
    not hold it, and somebody else may have it. With --json: {"removed": ["..."], "notRemoved":
    []}.
    """
    with target.connect() as client:
        removing = existing_queue(client, queue)
        removed = _in_parts(ids, lambda part: removing.remove(part, lease=lease))
    tell_done(target, ids, removed, "removed")


@click.command()
@lease_argument
@ids_argument
@click.option("--result", "results", multiple=True, metavar="TEXT", help="May be repeated.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="The whole file is a result, '-' is standard input. May be repeated.",
)
@click.option("--lines", is_flag=True, help="Each line of standard input is a result.")
@queue_option
@client_options
def complete(
    target: Target,
    queue: str,
    lease: bytes,
    ids: tuple[bytes, ...],
    results: tuple[str, ...],
    files: tuple[Path, ...],
    lines: bool,
) -> None:
    """Remove items that are done, and keep their results.

    \b
    Examples:
      queueber complete "$lease" "$id" --result ok
      ./work | queueber complete "$lease" "$id" --file -

    'results' reads them. There is one result for each id in order; a --result or --file that is
    the only one is for all. Lines may be empty.

    Prints what became of each. Ends with 1 when one was not completed: the lease has ended or does
    not hold it, and somebody else may have it. With --json: {"completed": ["..."], "notCompleted":
    []}.
    """
    check_exclusive(result=results, file=files, lines=lines)
    listed = _read_results(results, files, lines=lines)
    if len(listed) == 1 and not lines:
        listed *= len(ids)
    if len(listed) != len(ids):
        raise InvalidArgument(
            f"there {'is' if len(listed) == 1 else 'are'} {counted(len(listed), 'result')} for "
            f"{counted(len(ids), 'id')}; give one for all, or one for each ('remove' keeps none)"
        )
    completed: list[bool] = []
    with target.connect() as client:
        completing, bytes_max = (
            existing_queue(client, queue),
            call_bytes_max(client.server().message_bytes_max),
        )
        pairs = zip(ids, listed, strict=True)
        for call in split_calls(pairs, lambda pair: len(pair[1]), bytes_max):
            completed += completing.complete(
                [i for i, _ in call], [r for _, r in call], lease=lease
            )
    tell_done(target, ids, completed, "completed")


def _read_results(results: tuple[str, ...], files: tuple[Path, ...], *, lines: bool) -> list[bytes]:
    if lines:
        # A line ends with a newline, and nothing else: a result may have other separators in it.
        ended = sys.stdin.buffer.read().split(b"\n")
        return ended if ended[-1] else ended[:-1]
    if files.count(Path("-")) > 1:
        raise InvalidArgument("standard input can be read once; give one --file -")
    if files:
        stdin = sys.stdin.buffer
        return [stdin.read() if file == Path("-") else file.read_bytes() for file in files]
    return [os.fsencode(result) for result in results]


@click.command()
@lease_argument
@ids_argument
@click.option("--error", default="", metavar="TEXT", help="What went wrong; it is kept.")
@click.option(
    "--delay",
    type=seconds_up_to(DELAY_MS_MAX),
    help="How long they stay hidden. [default: the queue's backoff]",
)
@queue_option
@client_options
def fail(
    target: Target,
    queue: str,
    lease: bytes,
    ids: tuple[bytes, ...],
    error: str,
    delay: float | None,
) -> None:
    """Say that items failed: they are retried, or dead letters.

    \b
    Example:
      queueber fail "$lease" "$id" --error 'no route to host'

    Prints what became of each: 'retried' comes back, 'died' has failed as often as the queue
    allows; see 'peek --state dead' and 'redrive'. Ends with 1 when one was not failed: the lease
    has ended or does not hold it. With --json: {"retried": ["..."], "died": [], "notFailed": []}.
    """
    with target.connect() as client:
        failing = existing_queue(client, queue)
        outcomes = _in_parts(ids, lambda part: failing.fail(part, error, lease=lease, delay=delay))
    told = [_FAIL_WORDS[each] for each in outcomes]
    tell_each(target, ids, told, LEASE_ENDED, *_FAIL_WORDS.values())


_FAIL_WORDS = {
    FailOutcome.RETRIED: "retried",
    FailOutcome.DIED: "died",
    FailOutcome.REFUSED: "not failed",
}


@click.command()
@lease_argument
@ids_argument
@queue_option
@client_options
def release(target: Target, queue: str, lease: bytes, ids: tuple[bytes, ...]) -> None:
    """Give items back untried: others may have them at once.

    \b
    Example:
      queueber release 0199f1c2a7e27cc2a3f1bb6a5d3c9e01 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Prints what became of each. Ends with 1 when one was not released: the lease has ended or does
    not hold it. With --json: {"released": ["..."], "notReleased": []}.
    """
    with target.connect() as client:
        releasing = existing_queue(client, queue)
        released = _in_parts(ids, lambda part: releasing.release(part, lease=lease))
    tell_done(target, ids, released, "released")


def _in_parts(ids: Sequence[bytes], ask: Callable[[Sequence[bytes]], list[T]]) -> list[T]:
    answers: list[T] = []
    for start in range(0, len(ids), CALL_ITEMS_MAX):
        answers += ask(ids[start : start + CALL_ITEMS_MAX])
    return answers
