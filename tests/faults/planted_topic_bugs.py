"""Bugs of topics that are planted on purpose: the simulation must find each of them."""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.log import LogHead, block_key
from queueber.db.records.topics import Inherited
from queueber.engine.kernel.noted_times import NotedTime
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log import append_block
from queueber.engine.records.dedup_keys import DedupKeys, KeyLookup
from queueber.engine.records.producers import ProducerCall
from queueber.engine.topics import (
    append,
    bridge,
    conditions,
    forks,
    group_ack,
    groups,
    publish,
    shared_groups,
)
from queueber.engine.topics.compaction import Compaction
from queueber.engine.topics.group_fronts import UndeliveredFront
from queueber.engine.topics.read import read, start_of
from queueber.engine.topics.sequences import Sequences
from queueber.engine.topics.shared_groups import SharedMessages
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import Aborted
from queueber.limits import HOUR_MS
from queueber.model import ForkAt, Published
from queueber.service.durable_ends import DurableEnds
from queueber.service.log_feed import LogFeed
from queueber.service.reads import Reads
from queueber.service.subscription import Subscription
from tests.faults.planted_bugs import Bug, Patch


def write_the_head_without_its_block(patch: Patch) -> None:
    def without(tx: Any, log: Any, body: bytes, count: int) -> LogHead:
        head = append_block(tx, log, body, count)
        if head.next_offset % 5 == 0:
            tx.batch.delete(Family.LOG_BLOCKS, block_key(log.prefix, head.next_offset - 1))
        return head

    patch.setattr(append, "append_block", without)


def let_cursors_go_back(patch: Patch) -> None:
    def moved(tx: Any, topic: Any, group: Any, partition: int, offset: int) -> int:
        groups._put_cursor(tx, topic, group, partition, offset)
        return offset

    patch.setattr(groups, "move_cursor", moved)


def use_sequences_again_after_a_restart(patch: Patch) -> None:
    def kept(sequences: Sequences, tx: Transaction[Any]) -> None:
        tx.after_write(sequences._written, tx.pending[sequences][0])

    patch.setattr(Sequences, "_write", kept)


def let_forks_read_past_their_end(patch: Patch) -> None:
    inherited = forks._inherited

    def longer(topic: TopicState, ends: list[int]) -> tuple[Inherited, ...]:
        found = inherited(topic, ends)
        return tuple(each._replace(end=topic.next_offset(each.partition)) for each in found)

    patch.setattr(forks, "_inherited", longer)


def trim_one_message_more(patch: Patch) -> None:
    def further(reads: Any, topic: TopicState, partition: int, to: Any) -> tuple[int, int]:
        offset, missed = start_of(reads, topic, partition, to)
        return min(offset + 1, topic.next_offset(partition)), missed

    patch.setattr("queueber.engine.topics.trim.start_of", further)


def forget_dedup_ids_early(patch: Patch) -> None:
    look_up = DedupKeys.look_up

    def early(own: DedupKeys, tx: Any, keys: Sequence[str], window_ms: int) -> KeyLookup:
        return look_up(own, tx, keys, 5 if isinstance(tx.queue, TopicState) else window_ms)

    patch.setattr(DedupKeys, "look_up", early)


def accept_gaps_of_producers(patch: Patch) -> None:
    check = ProducerCall._check

    def lax(turn: ProducerCall, tx: Any, items: int, decides: bool) -> None:
        try:
            check(turn, tx, items, decides)
        except Aborted as error:
            if "leaves a gap" not in str(error) or not isinstance(tx.queue, TopicState):
                raise

    patch.setattr(ProducerCall, "_check", lax)


def drop_the_last_message_of_a_key(patch: Patch) -> None:
    mark = Compaction._mark

    def more(own: Compaction, tx: Any, prefix: bytes, offsets: Sequence[int]) -> None:
        last = tx.pending.get((own, prefix), {})
        mark(own, tx, prefix, [*offsets, *(each for each in last.values() if each % 4 == 0)])

    patch.setattr(Compaction, "_mark", more)


def move_a_shared_position_past_a_message(patch: Patch) -> None:
    take = UndeliveredFront.take

    def further(front: UndeliveredFront, rest: Any) -> None:
        take(front, rest)
        for partition, offset in front._moved.items():
            end = front._of.topic.next_offset(partition)
            front._moved[partition] = min(offset + (offset % 3 == 0), end)

    patch.setattr(UndeliveredFront, "take", further)


def keep_shared_positions_in_memory_only(patch: Patch) -> None:
    def moved(own: SharedMessages, tx: Any, offsets: Any) -> None:
        tx.after_write(own.positions.update, offsets)

    patch.setattr(SharedMessages, "move", moved)


def leave_what_others_have_leased_when_a_group_acknowledges(patch: Patch) -> None:
    patch.setattr(group_ack, "take_leased_before", lambda *_, **__: [])


def leave_what_is_to_be_retried_when_a_group_acknowledges(patch: Patch) -> None:
    patch.setattr(group_ack, "take_waiting", lambda *_, **__: [])


def let_a_shared_group_go_back(patch: Patch) -> None:
    def moved(own: SharedMessages, tx: Any, offsets: Any) -> None:
        back = {each: max(0, offset - (offset % 3 == 0)) for each, offset in offsets.items()}
        shared_groups.put_positions(tx, own._group, back)
        tx.after_write(own.positions.update, back)

    patch.setattr(SharedMessages, "move", moved)


def give_messages_of_any_partition(patch: Patch) -> None:
    def any_window(of: Any, queue: Any, blocks: Any, partition: int, count: int) -> Any:
        return UndeliveredFront(of, queue, blocks)

    patch.setattr(shared_groups, "window_front", any_window)


def lose_entries_of_the_agenda(patch: Patch) -> None:
    patch.setattr(NotedTime, "note", lambda *_: None)


def count_no_forks(patch: Patch) -> None:
    change = TopicState.change

    def changed(topic: TopicState, tx: Any, **fields: Any) -> Any:
        if fields.get("forks"):
            fields = {}
        return change(topic, tx, **fields)

    patch.setattr(TopicState, "change", changed)


def let_readers_see_what_is_not_synced(patch: Patch) -> None:
    patch.setattr(DurableEnds, "end", lambda *_: None)


def leave_the_names_of_deleted_topics(patch: Patch) -> None:
    patch.setattr(Topics, "_free_name", lambda *_: None)


def publish_apart_from_the_rest_of_a_call(patch: Patch) -> None:
    def apart(tx: Transaction[Any], topics: Topics, to: Any) -> list[Published]:
        own: Transaction[Any] = Transaction(tx._kernel, tx.now_ms, None)
        found = publish.publish(own, topics, to)
        own.commit()
        return found

    patch.setattr("queueber.engine.topics.together.publish", apart)


def lose_messages_on_a_bridge(patch: Patch) -> None:
    patch.setattr("queueber.engine.topics.bridge.add", lambda *_: None)


def ignore_the_expected_offset(patch: Patch) -> None:
    patch.setattr(publish, "check_expected", lambda *_: None)


def publish_to_closed_topics(patch: Patch) -> None:
    patch.setattr(conditions, "_check_open", lambda *_: None)


def take_any_content_type(patch: Patch) -> None:
    patch.setattr(conditions, "_check_content_type", lambda *_: None)


def take_any_text_sequence(patch: Patch) -> None:
    patch.setattr(conditions, "_check_text_sequence", lambda *_: None)


def take_messages_of_any_schema(patch: Patch) -> None:
    patch.setattr(conditions, "_check_schema", lambda *_: None)


def create_a_topic_before_its_first_messages(patch: Patch) -> None:
    def without(*_: Any) -> Published:
        return Published(0, (), (), (), ())

    patch.setattr("queueber.service.topics.publish_first", without)


def cut_a_message_at_another_byte(patch: Patch) -> None:
    cut = forks._cut_message

    def longer(tx: Any, topic: TopicState, at: ForkAt) -> Any:
        return cut(tx, topic, at._replace(cut_bytes=at.cut_bytes + 1))

    patch.setattr(forks, "_cut_message", longer)


def mix_up_the_offsets_of_partitions(patch: Patch) -> None:
    spread = append._spread

    def mixed_up(*arguments: Any) -> Published:
        found = spread(*arguments)
        found.offsets = list(reversed(found.offsets))
        return found

    patch.setattr(append, "_spread", mixed_up)


def take_a_topic_for_the_one_before_it(patch: Patch) -> None:
    def without_number(topic: TopicState, partition: int, offset: int) -> str:
        return f"{topic.name}/{partition}/{offset}"

    patch.setattr(bridge, "_key", without_number)


def leave_out_messages_that_are_too_large_for_a_queue(patch: Patch) -> None:
    take = bridge._take

    def further(tx: Any, topic: Any, partition: int, start: int, items: Any) -> int:
        offset = take(tx, topic, partition, start, items)
        if items.too_large:
            items.too_large = 0
            return offset + 1
        return offset

    patch.setattr(bridge, "_take", further)


def never_go_on_after_a_message_that_is_too_large(patch: Patch) -> None:
    patch.setattr(bridge, "BRIDGE_RETRY_MS", HOUR_MS)


def take_acknowledgements_after_a_takeover(patch: Patch) -> None:
    patch.setattr(Subscription, "check_active", lambda _: None)


def leave_out_a_message_at_a_takeover(patch: Patch) -> None:
    feed = LogFeed.__init__

    def later(own: LogFeed, *arguments: Any) -> None:
        feed(own, *arguments)
        for partition, offset in own._offsets.items():
            own._offsets[partition] = offset + (offset > 0)

    patch.setattr(LogFeed, "__init__", later)


def push_the_last_message_again(patch: Patch) -> None:
    push = LogFeed.next

    async def again(own: LogFeed, messages_max: int, bytes_max: int) -> Any:
        found = await push(own, messages_max, bytes_max)
        for each in found:
            own._offsets[each.slice.partition] -= each.slice.next_offset % 4 == 0
        return found

    patch.setattr(LogFeed, "next", again)


def push_what_is_not_synced(patch: Patch) -> None:
    def unsynced(own: Any, state: Any, partition: int, offset: int, bounds: Any) -> Any:
        return read(own._shell.engine.store, state, partition, offset, bounds)

    patch.setattr(Reads, "slice", unsynced)


def delete_more_than_was_acknowledged(patch: Patch) -> None:
    def more(topic: TopicState, partition: int) -> int:
        found = groups.acknowledged(topic, partition)
        return min(found + 4, topic.next_offset(partition)) if found else 0

    patch.setattr("queueber.engine.topics.trim.acknowledged", more)


def keep_what_was_acknowledged(patch: Patch) -> None:
    patch.setattr("queueber.engine.topics.sweep.acknowledged", lambda *_: 0)
    patch.setattr("queueber.engine.topics.trim.acknowledged", lambda *_: 0)


TOPIC_BUGS: list[Bug] = [
    write_the_head_without_its_block,
    let_cursors_go_back,
    use_sequences_again_after_a_restart,
    let_forks_read_past_their_end,
    trim_one_message_more,
    forget_dedup_ids_early,
    accept_gaps_of_producers,
    drop_the_last_message_of_a_key,
    move_a_shared_position_past_a_message,
    keep_shared_positions_in_memory_only,
    leave_what_others_have_leased_when_a_group_acknowledges,
    leave_what_is_to_be_retried_when_a_group_acknowledges,
    let_a_shared_group_go_back,
    give_messages_of_any_partition,
    lose_entries_of_the_agenda,
    count_no_forks,
    let_readers_see_what_is_not_synced,
    leave_the_names_of_deleted_topics,
    publish_apart_from_the_rest_of_a_call,
    lose_messages_on_a_bridge,
    ignore_the_expected_offset,
    publish_to_closed_topics,
    take_any_content_type,
    take_any_text_sequence,
    take_messages_of_any_schema,
    create_a_topic_before_its_first_messages,
    cut_a_message_at_another_byte,
    mix_up_the_offsets_of_partitions,
    take_a_topic_for_the_one_before_it,
    leave_out_messages_that_are_too_large_for_a_queue,
    never_go_on_after_a_message_that_is_too_large,
    take_acknowledgements_after_a_takeover,
    leave_out_a_message_at_a_takeover,
    push_the_last_message_again,
    push_what_is_not_synced,
    delete_more_than_was_acknowledged,
    keep_what_was_acknowledged,
]
