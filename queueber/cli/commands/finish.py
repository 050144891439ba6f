"""`queueber remove`, `complete`, `fail` and `release`: how the items of a lease end.

All of them act on the items that are named, or on everything that the lease holds.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from queueber import Client, Queue
from queueber.cli.adding.batches import BATCH_ITEMS_MAX, batch_bytes_max, split_batches
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import check_exclusive, delay_seconds, lease_argument, some_ids_argument
from queueber.cli.output import counted, to_camel_case
from queueber.cli.target import Target, queue_flags
from queueber.errors import InvalidArgument
from queueber.model import Column, FailOutcome

Ids = Sequence[bytes]
_Act = Callable[[Client, Queue, Ids], Iterable[object]]
"""Finishes those items, and returns the outcome of each."""


@click.command()
@lease_argument
@some_ids_argument
@queue_flags
def remove(target: Target, lease: bytes, ids: Ids) -> None:
    """Remove items that are done.

    \b
    Examples:
      queueber remove 0199f1c2a7e27cc2a3f1bb6a5d3c9e01
      queueber remove "$lease" 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Without ids: all items that the lease holds. Prints the outcome for each item. Ends with 1 if
    one was not removed: the lease has ended or does not hold it, and another worker may have it.
    With --json: {"removed": ["..."], "notRemoved": []}.
    """
    act = _in_parts(lambda queue, part: queue.remove(part, lease=lease))
    _finish(target, lease, ids, act, {True: "removed", False: "not removed"})


@click.command()
@lease_argument
@some_ids_argument
@click.option(
    "--result", "results", multiple=True, metavar="TEXT", help="A result. May be repeated."
)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    help="The whole file is a result, '-' is standard input. May be repeated.",
)
@click.option("--lines", is_flag=True, help="Each line of standard input is a result.")
@queue_flags
def complete(
    target: Target,
    lease: bytes,
    ids: Ids,
    results: tuple[str, ...],
    files: tuple[Path, ...],
    lines: bool,
) -> None:
    """Remove items that are done, and keep their results.

    \b
    Examples:
      queueber complete "$lease" --result ok
      ./work | queueber complete "$lease" "$id" --file -
      ./work-on-all | queueber complete "$lease" "$id1" "$id2" --lines

    Give one --result or --file for all items, or one result for each id, in the same order. Without
    ids: the one result is for all items that the lease holds. 'queueber results' reads results.

    Prints the outcome for each item. Ends with 1 if one was not completed: the lease has ended or
    does not hold it, and another worker may have it. With --json: {"completed": ["..."],
    "notCompleted": []}.
    """
    check_exclusive(result=results, file=files, lines=lines)
    listed = _read_results(results, files, lines=lines)
    is_for_all = len(listed) == 1 and not lines
    if not is_for_all and (not ids or len(listed) != len(ids)):
        is_or_are = "is" if len(listed) == 1 else "are"
        raise InvalidArgument(
            f"there {is_or_are} {counted(len(listed), 'result')} for {counted(len(ids), 'id')}; "
            "give one for all, or one for each id ('remove' keeps no results)"
        )

    def act(client: Client, queue: Queue, some: Ids) -> Iterator[bool]:
        pairs = zip(some, listed * len(some) if is_for_all else listed, strict=True)
        bytes_max = batch_bytes_max(client.server().message_bytes_max)
        for part in split_batches(pairs, lambda pair: len(pair[1]), bytes_max):
            part_ids, part_results = [i for i, _ in part], [r for _, r in part]
            yield from queue.complete(part_ids, part_results, lease=lease)

    _finish(target, lease, ids, act, {True: "completed", False: "not completed"})


def _read_results(results: tuple[str, ...], files: tuple[Path, ...], *, lines: bool) -> list[bytes]:
    if lines:
        # Only a newline ends a line: results may contain other separators.
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
@some_ids_argument
@click.option("--error", default="", metavar="TEXT", help="What went wrong; 'peek' shows it.")
@click.option(
    "--delay", type=delay_seconds, help="How long before the retry. [default: the queue's backoff]"
)
@queue_flags
def fail(target: Target, lease: bytes, ids: Ids, error: str, delay: float | None) -> None:
    """Report failed items: they are retried, or die.

    \b
    Examples:
      queueber fail "$lease" --error 'no route to host'
      queueber fail "$lease" "$id" --delay 60

    Without ids: all items that the lease holds. Prints the outcome for each item: 'retried', or
    'died' if it has failed --attempts-max times (a setting of the queue) and is a dead letter now;
    see 'peek --state dead' and 'redrive'. Ends with 1 if one was not failed: the lease has ended or
    does not hold it. With --json: {"retried": ["..."], "died": [], "notFailed": []}.
    """
    act = _in_parts(lambda queue, part: queue.fail(part, error, lease=lease, delay=delay))
    _finish(target, lease, ids, act, _FAIL_WORDS)


_FAIL_WORDS = {
    FailOutcome.RETRIED: "retried",
    FailOutcome.DIED: "died",
    FailOutcome.REFUSED: "not failed",
}


@click.command()
@lease_argument
@some_ids_argument
@queue_flags
def release(target: Target, lease: bytes, ids: Ids) -> None:
    """Give items back, ready at once for others.

    \b
    Examples:
      queueber release 0199f1c2a7e27cc2a3f1bb6a5d3c9e01
      queueber release "$lease" 0199f1c29b007d0aa1c07a8f0f1d2e3b

    No failed attempt is counted. Without ids: all items that the lease holds. Prints the outcome
    for each item. Ends with 1 if one was not released: the lease has ended or does not hold it.
    With --json: {"released": ["..."], "notReleased": []}.
    """
    act = _in_parts(lambda queue, part: queue.release(part, lease=lease))
    _finish(target, lease, ids, act, {True: "released", False: "not released"})


def _in_parts(call: Callable[[Queue, Ids], Iterable[object]]) -> _Act:
    def act(_client: Client, queue: Queue, ids: Ids) -> Iterator[object]:
        for at in range(0, len(ids), BATCH_ITEMS_MAX):
            yield from call(queue, ids[at : at + BATCH_ITEMS_MAX])

    return act


def _finish(target: Target, lease: bytes, ids: Ids, act: _Act, words_of: Mapping[Any, str]) -> None:
    """Act on the ids, or on all that the lease holds, and print the outcomes in words."""
    words = list(words_of.values())
    with target.connect() as client:
        queue = client.queue(target.queue, must_exist=True)
        ids = ids or _held(queue, lease)
        outcomes = [words_of[each] for each in act(client, queue, ids)] if ids else []
    if ids:
        target.echo_outcomes(ids, outcomes, "the lease has ended, or never held it", words)
        return
    reason = "the lease has ended, or holds nothing of the queue"
    empty: dict[str, list[str]] = {to_camel_case(word): [] for word in words}
    target.echo(empty, f"{lease.hex()}  {words[-1]}: {reason}")
    raise Exit(NEGATIVE)


def _held(queue: Queue, lease: bytes) -> list[bytes]:
    """The ids of all items that the lease holds now. The server sends no contents."""
    with queue.open_snapshot() as snapshot:
        unneeded = (Column.CONTENTS, Column.KEYS, Column.BATCHES, Column.ATTRIBUTES)
        leased = snapshot.scan_all("leased", without=unneeded)
        return [item.id for item in leased if item.lease_id == lease]
