"""Bugs that are planted on purpose: a simulation that finds none of them would be worth nothing."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from queueber.db.families import Family
from queueber.db.records import cutting
from queueber.db.records.blocks import Block, Leftover
from queueber.db.records.cutting import Sizes
from queueber.db.records.keys import NEVER_MS
from queueber.db.records.queues import Counters, decode_counters
from queueber.db.records.runs import Run
from queueber.engine.caps.cap_keys import CapKeys, KeyRecord
from queueber.engine.caps.queue_caps import QueueCaps
from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log import Log, append
from queueber.engine.queue.blocks import Blocks
from queueber.engine.queue.dead_letters import DeadLetters
from queueber.engine.queue.expire import expire
from queueber.engine.queue.leases import Leases
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.queue.ready_index import ReadyIndex, ReadyWindow
from queueber.engine.queue.recent_blocks import RecentBlocks
from queueber.engine.queue.reschedule import reschedule
from queueber.engine.queue.sweep import DUTIES
from queueber.engine.queue.unclaimed import Claims
from queueber.engine.records.batches import Batches, Side
from queueber.engine.records.dedup_keys import KeyLookup
from queueber.engine.records.producers import ProducerCall
from queueber.ids import shifted
from queueber.service import items
from queueber.service.commit_group import CommitGroup, Waiting
from queueber.service.loop import Future
from queueber.service.polls import Polls
from queueber.service.shared_writes import Call, Verb
from queueber.service.shell import Shell

Patch = pytest.MonkeyPatch
Bug = Callable[[Patch], None]
T = TypeVar("T")


async def _at_once(_: Shell, answer: T) -> T:
    return answer


def _set_at_once(_: Shell, future: Future, answer: object, items: int = 1) -> None:
    if not future.done():
        future.set_result(answer)


def answer_before_the_sync(patch: Patch) -> None:
    patch.setattr(Shell, "durable", _at_once)
    patch.setattr(Shell, "_set_durably", _set_at_once)


def answer_completes_before_the_sync(patch: Patch) -> None:
    write_calls = Shell._write_calls

    def written(shell: Shell, verb: Verb, *arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as meanwhile:
            if verb.event == "completed":
                meanwhile.setattr(Shell, "_set_durably", _set_at_once)
            write_calls(shell, verb, *arguments)

    patch.setattr(Shell, "_write_calls", written)


def mix_up_the_answers_of_adds_that_share_a_write(patch: Patch) -> None:
    def mixed_up(answer: Any, counts: Sequence[int]) -> list[Any]:
        return list(reversed(items._ADD.split(answer, counts)))

    patch.setattr(items, "_ADD", replace(items._ADD, split=mixed_up))


def run_calls_that_shared_a_write_once_more(patch: Patch) -> None:
    write_together = Shell._write_together

    def written(shell: Shell, queue: QueueState, verb: Verb, calls: list[Call]) -> None:
        write_together(shell, queue, verb, calls)
        if len(calls) > 1:
            shell.run(queue, verb.op, *calls[0].columns)

    patch.setattr(Shell, "_write_together", written)


def give_shared_polls_the_items_of_the_first(patch: Patch) -> None:
    take = Polls._take

    def taken(polls: Polls, queue: QueueState, asked: Sequence[Any]) -> Any:
        answers = take(polls, queue, asked)
        return [answers[0] for _ in answers]

    patch.setattr(Polls, "_take", taken)


def answer_after_a_sync_that_began_before_the_write(patch: Patch) -> None:
    finish = CommitGroup._finish

    def finish_all(commits: CommitGroup, group: list[Waiting], failure: Any) -> None:
        everybody = group + commits._waiting
        commits._waiting = []
        finish(commits, everybody, failure)

    patch.setattr(CommitGroup, "_finish", finish_all)


def go_on_after_a_failed_sync(patch: Patch) -> None:
    finish = CommitGroup._finish
    patch.setattr(CommitGroup, "_finish", lambda commits, group, _: finish(commits, group, None))


def leave_entries_of_places_behind(patch: Patch) -> None:
    patch.setattr("queueber.engine.queue.ready_index.drop_places", lambda *_: None)


def expire_leases_early(patch: Patch) -> None:
    def early(tx: QueueTx, items_max: int) -> Done:
        tx.now_ms += 10
        return expire(tx, items_max)

    def due_ms(queue: QueueState, _: int) -> int:
        return queue.counters.lease_due_ms - 10

    duties = [
        replace(duty, due_ms=due_ms, run=early) if duty.name == "expire" else duty
        for duty in DUTIES
    ]
    patch.setattr("queueber.engine.queue.sweep.DUTIES", duties)


def drop_dead_letters_early(patch: Patch) -> None:
    take = DeadLetters.take_old

    def taken(own: DeadLetters, tx: QueueTx, age_ms: int, limit: int) -> list[Run]:
        return take(own, tx, age_ms // 100, limit)

    def due_ms(own: DeadLetters, age_ms: int, now_ms: int) -> int:
        return own._oldest_ms + age_ms // 100

    patch.setattr(DeadLetters, "take_old", taken)
    patch.setattr(DeadLetters, "due_ms", due_ms)


def lease_items_twice(patch: Patch) -> None:
    patch.setattr(ReadyWindow, "drop_first", lambda *_: None)


def accept_outcomes_of_expired_leases(patch: Patch) -> None:
    take = Leases.take

    def held(own: Leases, tx: Any, ids: Any, leases: Any, now_ms: int | None = None) -> Any:
        return take(own, tx, ids, leases, now_ms=-1)

    patch.setattr(Leases, "take", held)


def extend_leases_in_the_answer_only(patch: Patch) -> None:
    def extend(tx: QueueTx, leases: Sequence[bytes], *_: Any) -> list[bool]:
        return [bool(held) for _, held in tx.queue.leases.read(leases)]

    patch.setattr("queueber.service.lease_holders.extend", extend)


def forget_what_is_due_at_a_restart(patch: Patch) -> None:
    patch.setattr("queueber.engine.open.first_due_ms", lambda *_: NEVER_MS)


def write_results_apart_from_what_they_are_of(patch: Patch) -> None:
    def apart(tx: QueueTx, log: Log, rows: Sequence[bytes]) -> Any:
        own = Transaction(tx._kernel, tx.now_ms, None)
        head = append(own, log, rows)
        own.commit()
        return head

    patch.setattr("queueber.engine.queue.complete.append", apart)


def forget_keys(patch: Patch) -> None:
    patch.setattr(KeyLookup, "store", lambda *_: None)


def store_repeats_of_producers_again(patch: Patch) -> None:
    check = ProducerCall._check

    def as_new(turn: ProducerCall, *arguments: Any) -> None:
        check(turn, *arguments)
        turn.repeated = None

    patch.setattr(ProducerCall, "_check", as_new)


def pause_in_memory_only(patch: Patch) -> None:
    def write_record(queue: QueueState, tx: QueueTx, settings: Any, until_ms: int) -> None:
        tx.after_write(queue._take_record, settings, until_ms)

    patch.setattr(QueueState, "write_record", write_record)


def leave_the_dead_out_of_receipts(patch: Patch) -> None:
    count_ended = Batches.count_ended

    def count_done(batches: Batches, tx: Any, ended: Any, side: Side) -> None:
        if side is Side.DONE:
            count_ended(batches, tx, ended, side)

    patch.setattr(Batches, "count_ended", count_done)


def forget_batches_that_are_to_be_forgotten_again(patch: Patch) -> None:
    """The entry that says when to forget the batch stays."""

    def forget_now(batches: Batches, tx: Any, number: int, _: Any) -> None:
        batches._drop(tx, number)

    patch.setattr(Batches, "_forget_now", forget_now)


def start_ids_anew(patch: Patch) -> None:
    patch.setattr("queueber.ids.IdSource.continue_after", lambda *_: None)


def give_rescheduled_items_at_once(patch: Patch) -> None:
    patch.setattr(items, "reschedule", lambda tx, ids, _: reschedule(tx, ids, 0))


def wake_nobody_after_a_sweep(patch: Patch) -> None:
    patch.setattr(Polls, "swept", lambda *_: None)


def delete_results_that_one_reader_has_read(patch: Patch) -> None:
    patch.setattr("queueber.engine.log._first_kept", lambda *_: None)


def lose_what_an_unheard_poll_gives_back(patch: Patch) -> None:
    take_back = Polls._take_back

    def taken_back(*arguments: Any) -> None:
        with pytest.MonkeyPatch.context() as meanwhile:
            meanwhile.setattr(ReadyIndex, "put", lambda *_: None)
            take_back(*arguments)

    patch.setattr(Polls, "_take_back", taken_back)


def answer_nobody_whose_sync_was_shared_with_one_who_left(patch: Patch) -> None:
    finish = CommitGroup._finish

    def finish_if_all_wait(commits: CommitGroup, group: list[Waiting], failure: Any) -> None:
        finish(commits, [] if any(each.done() for each, _ in group) else group, failure)

    patch.setattr(CommitGroup, "_finish", finish_if_all_wait)


# --- runs and blocks ------------------------------------------------------------------------------


def leave_the_first_item_in_what_is_left_of_a_cut_run(patch: Patch) -> None:
    def too_late(run: Run, count: int, sizes: Sizes) -> tuple[Run, Run]:
        front, rest = cutting.cut(run, count, sizes)
        return front, rest._replace(count=rest.count + 1, at=rest.at - 1)

    patch.setattr("queueber.engine.queue.fronts.cut", too_late)


def lose_what_is_left_of_a_cut_run(patch: Patch) -> None:
    take_first = ReadyIndex.take_first

    def taken(own: ReadyIndex, tx: Any, level: int, entries: Any, rest: Any = None) -> None:
        take_first(own, tx, level, entries)

    patch.setattr(ReadyIndex, "take_first", taken)


def lose_the_end_of_a_run_that_some_items_leave(patch: Patch) -> None:
    def picked(run: Run, positions: Sequence[int], sizes: Sizes) -> tuple[list[Run], list[Run]]:
        taken, left = cutting.pick(run, positions, sizes)
        return taken, [each for each in left if each.last < taken[-1].last]

    patch.setattr("queueber.engine.queue.leases.pick", picked)
    patch.setattr("queueber.engine.queue.cancel.pick", picked)


def take_the_neighbour_of_an_item(patch: Patch) -> None:
    def picked(run: Run, positions: Sequence[int], sizes: Sizes) -> tuple[list[Run], list[Run]]:
        moved = [min(at + 1, run.count - 1) for at in positions]
        return cutting.pick(run, sorted(set(moved)), sizes)

    patch.setattr("queueber.engine.queue.leases.pick", picked)


def join_runs_whatever_their_marks(patch: Patch) -> None:
    patch.setattr(
        "queueber.db.records.cutting._are_neighbours",
        lambda a, b: a.at + a.count == b.at and a.block == b.block,
    )


def join_runs_of_different_blocks(patch: Patch) -> None:
    patch.setattr(
        "queueber.db.records.cutting._are_neighbours",
        lambda a, b: a.mark == b.mark and shifted(a.last, b.count) == b.last,
    )


def count_all_bytes_of_a_run_for_a_part_of_it(patch: Patch) -> None:
    patch.setattr(Block, "size", lambda block, *_: len(block.value))


def drop_a_block_with_the_first_item_that_ends(patch: Patch) -> None:
    def whole(blocks: Blocks, tx: Any, ended: Sequence[Run]) -> None:
        for run in ended:
            tx.batch.delete(Family.ITEMS, tx.prefix + run.block)

    patch.setattr(Blocks, "drop", whole)


def never_drop_a_block_of_which_items_ended_one_by_one(patch: Patch) -> None:
    write = Blocks._write_leftover

    def kept(blocks: Blocks, tx: Any, block: Any, left: Leftover, *, had_one: bool) -> None:
        if left.bits:
            write(blocks, tx, block, left, had_one=had_one)

    patch.setattr(Blocks, "_write_leftover", kept)


def leave_the_wrong_items_when_a_block_is_rewritten(patch: Patch) -> None:
    rewritten = Block.rewritten

    def moved(block: Block, positions: Sequence[int]) -> bytes:
        others = [at for at in block.positions if at not in positions]
        return rewritten(block, sorted([*positions[1:], others[0]]))

    patch.setattr(Block, "rewritten", moved)


def give_the_contents_of_the_item_before(patch: Patch) -> None:
    packed = Block.packed

    def earlier(block: Block, at: int, count: int) -> tuple[bytes, bytes]:
        is_there = at - 1 in block.positions
        return packed(block, at - 1 if is_there else at, count)

    patch.setattr(Block, "packed", earlier)


def keep_a_cached_block_of_another_queue(patch: Patch) -> None:
    """The cache knows a block by a part of its id."""
    keep, get = RecentBlocks.keep, RecentBlocks.get

    def kept(recent: RecentBlocks, user: Any, blocks: Any) -> bool:
        return keep(recent, user, [(block[:15], *others) for block, *others in blocks])

    patch.setattr(RecentBlocks, "keep", kept)
    patch.setattr(RecentBlocks, "get", lambda recent, user, block: get(recent, user, block[:15]))


def leave_a_lease_among_the_holders_of_a_block(patch: Patch) -> None:
    patch.setattr(
        Leases, "_holder_keys", lambda own, lease_id, held: [own._prefix + held[0].block + lease_id]
    )


def count_nothing_that_is_leased(patch: Patch) -> None:
    room = QueueCaps.room

    def unbounded(caps: QueueCaps, counters: Counters, now_ms: int) -> int:
        return room(caps, replace(counters, leased=0), now_ms)

    patch.setattr(QueueCaps, "room", unbounded)


def fill_the_bucket_at_a_restart(patch: Patch) -> None:
    name = "queueber.engine.queue.queue_state.decode_counters"
    patch.setattr(name, lambda read: replace(decode_counters(read), rate_full_at_us=0))


def wake_nobody_when_the_rate_allows_an_item(patch: Patch) -> None:
    patch.setattr(QueueCaps, "due_ms", lambda *_: NEVER_MS)


def let_every_key_have_one_more(patch: Patch) -> None:
    room = CapKeys.room

    def generous(keys: CapKeys, key: KeyRecord, now_ms: int) -> int:
        return room(keys, key, now_ms) or int(key.slots == keys._limit)

    patch.setattr(CapKeys, "room", generous)


def let_nobody_go_when_a_lease_ends(patch: Patch) -> None:
    room = CapKeys.room

    def of_others(keys: CapKeys, key: KeyRecord, now_ms: int) -> int:
        return 0 if key.parked else room(keys, key, now_ms)

    patch.setattr(CapKeys, "room", of_others)
    patch.setattr(CapKeys, "due_ms", lambda *_: NEVER_MS)


def give_back_no_slot_of_a_lease_that_ends(patch: Patch) -> None:
    patch.setattr("queueber.engine.queue.leases.free_slots", lambda _, runs: runs)


def count_no_lease_that_is_given_back(patch: Patch) -> None:
    patch.setattr("queueber.engine.queue.release.uncharged_again", lambda mark: mark)


def take_no_token_of_a_key(patch: Patch) -> None:
    patch.setattr(CapKeys, "take_tokens", lambda *_: None)


def never_look_at_keys_whose_tokens_are_back(patch: Patch) -> None:
    duties = [duty for duty in DUTIES if duty.name != "let go by rate"]
    patch.setattr("queueber.engine.queue.sweep.DUTIES", duties)


def let_no_item_expire(patch: Patch) -> None:
    duties = [duty for duty in DUTIES if duty.name != "expire unclaimed"]
    patch.setattr("queueber.engine.queue.sweep.DUTIES", duties)
    patch.setattr(Claims, "split", lambda _self, _due, run, _blocks: ([run], ()))
    patch.setattr(Claims, "claim", lambda _self, runs: runs)


def leave_options_behind(patch: Patch) -> None:
    patch.setattr("queueber.engine.queue.remove.drop_options", lambda *_: None)


RUN_BUGS: list[Bug] = [
    leave_the_first_item_in_what_is_left_of_a_cut_run,
    lose_what_is_left_of_a_cut_run,
    lose_the_end_of_a_run_that_some_items_leave,
    take_the_neighbour_of_an_item,
    join_runs_whatever_their_marks,
    join_runs_of_different_blocks,
    count_all_bytes_of_a_run_for_a_part_of_it,
    drop_a_block_with_the_first_item_that_ends,
    never_drop_a_block_of_which_items_ended_one_by_one,
    leave_the_wrong_items_when_a_block_is_rewritten,
    give_the_contents_of_the_item_before,
    keep_a_cached_block_of_another_queue,
    leave_a_lease_among_the_holders_of_a_block,
    count_no_lease_that_is_given_back,
]
"""In cutting, joining, finding and dropping."""

BUGS: list[Bug] = [
    *RUN_BUGS,
    answer_before_the_sync,
    answer_completes_before_the_sync,
    mix_up_the_answers_of_adds_that_share_a_write,
    run_calls_that_shared_a_write_once_more,
    give_shared_polls_the_items_of_the_first,
    answer_after_a_sync_that_began_before_the_write,
    go_on_after_a_failed_sync,
    leave_entries_of_places_behind,
    give_rescheduled_items_at_once,
    expire_leases_early,
    drop_dead_letters_early,
    lease_items_twice,
    accept_outcomes_of_expired_leases,
    extend_leases_in_the_answer_only,
    forget_what_is_due_at_a_restart,
    write_results_apart_from_what_they_are_of,
    forget_keys,
    store_repeats_of_producers_again,
    pause_in_memory_only,
    leave_the_dead_out_of_receipts,
    forget_batches_that_are_to_be_forgotten_again,
    start_ids_anew,
    wake_nobody_after_a_sweep,
    count_nothing_that_is_leased,
    fill_the_bucket_at_a_restart,
    let_every_key_have_one_more,
    let_no_item_expire,
    leave_options_behind,
    let_nobody_go_when_a_lease_ends,
    give_back_no_slot_of_a_lease_that_ends,
    wake_nobody_when_the_rate_allows_an_item,
    take_no_token_of_a_key,
    never_look_at_keys_whose_tokens_are_back,
    delete_results_that_one_reader_has_read,
    lose_what_an_unheard_poll_gives_back,
    answer_nobody_whose_sync_was_shared_with_one_who_left,
]
