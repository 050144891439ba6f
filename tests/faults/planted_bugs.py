"""Bugs that are planted on purpose: a simulation that finds none of them would be worth nothing."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

from queueber.db.families import Family
from queueber.db.store.contract import Batch
from queueber.engine.kernel.agenda import Agenda
from queueber.engine.kernel.state import Engine, QueueState, read_engine
from queueber.engine.kernel.transaction import Change
from queueber.engine.log.log import Log, append
from queueber.engine.queue.expire import expire
from queueber.engine.queue.leases import take_held
from queueber.engine.queue.ready_window import ReadyWindow
from queueber.engine.records.dedup_keys import Keys
from queueber.engine.records.producers import ProducerTurn
from queueber.service.commit_group import CommitGroup
from queueber.service.items import Items
from queueber.service.loop import Future
from queueber.service.polls import Polls
from queueber.service.shell import Shell

Patch = pytest.MonkeyPatch
Bug = Callable[[Patch], None]
T = TypeVar("T")


async def _at_once(_: Shell, answer: T) -> T:
    return answer


def answer_before_the_sync(patch: Patch) -> None:
    patch.setattr(Shell, "durable", _at_once)


def answer_completes_before_the_sync(patch: Patch) -> None:
    complete = Items.complete

    def completed(service: Items, *arguments: Any) -> Any:
        with pytest.MonkeyPatch.context() as meanwhile:
            meanwhile.setattr(Shell, "durable", _at_once)
            return complete(service, *arguments)

    patch.setattr(Items, "complete", completed)


def answer_after_a_sync_that_began_before_the_write(patch: Patch) -> None:
    finish = CommitGroup._finish

    def finish_all(commits: CommitGroup, group: list[Future], failure: Any) -> None:
        everybody = group + commits._waiting
        commits._waiting = []
        finish(commits, everybody, failure)

    patch.setattr(CommitGroup, "_finish", finish_all)


def go_on_after_a_failed_sync(patch: Patch) -> None:
    finish = CommitGroup._finish
    patch.setattr(CommitGroup, "_finish", lambda commits, group, _: finish(commits, group, None))


def leave_entries_of_places_behind(patch: Patch) -> None:
    patch.setattr(Change, "_displace", lambda *_: None)


def expire_leases_early(patch: Patch) -> None:
    def early(engine: Engine, queue: QueueState, now_ms: int, items_max: int) -> tuple[int, int]:
        return expire(engine, queue, now_ms + 10, items_max)

    patch.setattr("queueber.engine.queue.sweep.expire", early)


def lease_items_twice(patch: Patch) -> None:
    patch.setattr(ReadyWindow, "drop_first", lambda *_: None)


def accept_outcomes_of_expired_leases(patch: Patch) -> None:
    def held(
        engine: Engine, queue: QueueState, change: Change, ids: Any, leases: Any, _: int
    ) -> Any:
        return take_held(engine, queue, change, ids, leases, -1)

    patch.setattr("queueber.engine.queue.complete.take_held", held)


def extend_leases_in_the_answer_only(patch: Patch) -> None:
    def extend(engine: Engine, queue: QueueState, leases: Sequence[bytes], *_: Any) -> list[bool]:
        keys = [queue.prefix + lease for lease in leases]
        return [entry is not None for entry in engine.store.get_many(Family.LEASES, keys)]

    patch.setattr("queueber.service.items.extend", extend)


def forget_what_is_due_at_a_restart(patch: Patch) -> None:
    def read(*arguments: Any) -> Engine:
        engine = read_engine(*arguments)
        engine.agenda = Agenda()
        return engine

    patch.setattr("queueber.engine.open.read_engine", read)


def write_results_apart_from_what_they_are_of(patch: Patch) -> None:
    from queueber.engine.queue import complete as module

    complete = module.complete

    def completed(engine: Engine, *arguments: Any) -> list[bool]:
        def apart(_: Batch, log: Log, rows: Iterable[bytes], now_ms: int) -> Any:
            batch = engine.store.batch()
            head = append(batch, log, list(rows), now_ms)
            engine.store.write(batch)
            return head

        patch.setattr(module, "append", apart)
        return complete(engine, *arguments)

    patch.setattr("queueber.service.items.complete", completed)


def forget_keys(patch: Patch) -> None:
    patch.setattr(Keys, "store", lambda *_: None)


def store_repeats_of_producers_again(patch: Patch) -> None:
    check = ProducerTurn._check

    def as_new(turn: ProducerTurn, *arguments: Any) -> None:
        check(turn, *arguments)
        turn.repeated = None

    patch.setattr(ProducerTurn, "_check", as_new)


def pause_in_memory_only(patch: Patch) -> None:
    def pause(_: Engine, queue: QueueState, until_ms: int) -> None:
        queue.paused_until_ms = until_ms

    patch.setattr("queueber.engine.queue.pause._write", pause)


def leave_the_dead_out_of_receipts(patch: Patch) -> None:
    patch.setattr("queueber.engine.queue.attempts.count_ended", lambda *_: None)


def start_ids_anew(patch: Patch) -> None:
    patch.setattr("queueber.ids.IdSource.continue_after", lambda *_: None)


def wake_nobody_after_a_sweep(patch: Patch) -> None:
    patch.setattr(Polls, "swept", lambda *_: None)


def delete_results_that_one_reader_has_read(patch: Patch) -> None:
    patch.setattr("queueber.engine.log.trim._first_kept", lambda *_: None)


def lose_what_an_unheard_poll_gives_back(patch: Patch) -> None:
    take_back = Polls._take_back

    def taken_back(*arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as meanwhile:
            meanwhile.setattr(Change, "make_ready", lambda *_: None)
            take_back(*arguments)

    patch.setattr(Polls, "_take_back", taken_back)


def answer_nobody_whose_sync_was_shared_with_one_who_left(patch: Patch) -> None:
    finish = CommitGroup._finish

    def finish_if_all_wait(commits: CommitGroup, group: list[Future], failure: Any) -> None:
        finish(commits, [] if any(each.done() for each in group) else group, failure)

    patch.setattr(CommitGroup, "_finish", finish_if_all_wait)


BUGS: list[Bug] = [
    answer_before_the_sync,
    answer_completes_before_the_sync,
    answer_after_a_sync_that_began_before_the_write,
    go_on_after_a_failed_sync,
    leave_entries_of_places_behind,
    expire_leases_early,
    lease_items_twice,
    accept_outcomes_of_expired_leases,
    extend_leases_in_the_answer_only,
    forget_what_is_due_at_a_restart,
    write_results_apart_from_what_they_are_of,
    forget_keys,
    store_repeats_of_producers_again,
    pause_in_memory_only,
    leave_the_dead_out_of_receipts,
    start_ids_anew,
    wake_nobody_after_a_sweep,
    delete_results_that_one_reader_has_read,
    lose_what_an_unheard_poll_gives_back,
    answer_nobody_whose_sync_was_shared_with_one_who_left,
]
