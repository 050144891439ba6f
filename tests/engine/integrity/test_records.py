"""The check of what a queue remembers: damage is reported under its rule, and under no other."""

from functools import partial

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, due_part, text_digest
from queueber.db.records.log import block_key, encode_block, encode_result, encode_rows
from queueber.db.records.remembered import (
    FORGET_BATCH,
    FORGET_KEY,
    FORGET_PRODUCER,
    Answer,
    BatchRecord,
    ProducerHead,
    encode_answer,
    encode_batch,
    encode_key_entry,
    encode_producer,
)
from queueber.engine.integrity.records import RecordsCheck
from queueber.engine.records.batches import batch_reference
from queueber.limits import BATCH_KEEP_MS, MINUTE_MS, PRODUCER_KEEP_MS
from tests.engine.damage import (
    ENDED_BATCH,
    KEY,
    LIVE_BATCH,
    PRODUCER,
    STRANGER,
    Case,
    Damage,
    steps,
)
from tests.engine.integrity.test_queue_entries import checked_queue
from tests.support.rig import START_MS, Rig

FORGET = Family.FORGET
KEY_MS = START_MS + 10 * MINUTE_MS
PRODUCER_DUE = due_part(START_MS + PRODUCER_KEEP_MS, PRODUCER)
BATCH_DUE = due_part(START_MS + BATCH_KEEP_MS, batch_reference(2))
ANSWER = encode_answer(Answer(0, [], []))


def key_due(d: Damage) -> bytes:
    """The entry that names the key of an add has the id of its item."""
    return due_part(KEY_MS, d.special)


def special_key(d: Damage) -> bytes:
    return b"\0" + due_part(START_MS, d.special)


def set_of_live_batch(d: Damage, name: str) -> None:
    d.change_batch(LIVE_BATCH, **{name: 5})


def answer_of_nine_calls_ago(d: Damage) -> None:
    """Ten calls were sent: the answers of the last eight are in their place, and one more."""
    head = ProducerHead(1, 10, START_MS, START_MS + PRODUCER_KEEP_MS)
    d.put(Family.PRODUCERS, PRODUCER, encode_producer(head))
    d.delete(Family.PRODUCERS, PRODUCER + (1).to_bytes(8))
    for sequence in range(3, 11):
        d.put(Family.PRODUCERS, PRODUCER + sequence.to_bytes(8), ANSWER)


def plain_result(item_id: bytes, result: bytes) -> bytes:
    return encode_result(item_id, result, attempt=1, key=b"", batch=b"", attributes=b"")


def put_result(d: Damage, item_id: bytes) -> None:
    """In place of the one result there is."""
    rows = [plain_result(item_id, b"result")]
    value = d.get(Family.LOG_BLOCKS, bytes(8))
    changed = encode_block(encode_rows(rows), first_offset=0, appended_at_ms=START_MS, position=0)
    assert len(changed) <= len(value)
    head = d.rig.queue.results.head._replace(end_position=len(changed) - 24)
    d.put(Family.LOG_BLOCKS, bytes(8), changed)
    d.set_head(head._replace(first_block_end_position=head.end_position))


BATCHES = [
    *[
        Case("I10", f"{name} of a batch is wrong", partial(set_of_live_batch, name=name))
        for name in ("added", "done", "dead", "added_digest", "done_digest", "dead_digest")
    ],
    Case(
        "I10",
        "items name a batch that does not exist",
        lambda d: d.remark(d.ready_key(), batch=77),
    ),
    Case(
        "I10",
        "an item is in another batch than was counted",
        lambda d: d.remark(special_key(d), batch=2),
    ),
    Case("I10", "an item left its batch", lambda d: d.remark(special_key(d), batch=0)),
    Case(
        "I10",
        "a batch is not known by its name",
        lambda d: d.delete(Family.BATCH_NAMES, text_digest("live")),
    ),
    Case(
        "I10",
        "a name leads to another batch",
        lambda d: d.put(Family.BATCH_NAMES, text_digest("live"), ENDED_BATCH),
    ),
    Case(
        "I10",
        "a name leads to no batch",
        lambda d: d.put(Family.BATCH_NAMES, text_digest("gone"), b"\0\0\0\7"),
    ),
    Case("I10", "batches are counted wrong", lambda d: d.count(batches=1)),
    Case("I10", "a batch is newer than the newest", lambda d: d.count(last_batch=-1)),
    Case(
        "I10",
        "a batch is gone while its items live",
        steps(
            lambda d: d.delete(Family.BATCHES, LIVE_BATCH),
            lambda d: d.delete(Family.BATCH_NAMES, text_digest("live")),
            lambda d: d.delete(FORGET, due_part(START_MS + BATCH_KEEP_MS, batch_reference(1))),
            lambda d: d.count(batches=-1, forgets=-1),
        ),
    ),
]

FORGETTING = [
    *[
        Case(
            "I11",
            f"a {what} is never forgotten",
            lambda d, due=due: (d.delete(FORGET, due), d.count(forgets=-1)),  # type: ignore[misc]
        )
        for what, due in {
            "producer": PRODUCER_DUE,
            "batch": BATCH_DUE,
        }.items()
    ],
    *[
        Case(
            "I11",
            f"a {what} is forgotten twice",
            lambda d, reference=reference, kind=kind: (  # type: ignore[misc]
                d.put(FORGET, due_part(START_MS + BATCH_KEEP_MS + 5, reference), kind),
                d.count(forgets=1),
            ),
        )
        for what, reference, kind in (
            ("producer", PRODUCER, FORGET_PRODUCER),
            ("batch", batch_reference(2), FORGET_BATCH),
            ("batch that lives", batch_reference(1), FORGET_BATCH),
            ("key of another length", STRANGER, FORGET_KEY + b"short"),
            ("producer that never was", STRANGER, FORGET_PRODUCER),
            ("batch that never was", batch_reference(9), FORGET_BATCH),
            ("thing of no kind", KEY, b"x"),
        )
    ],
    Case("I11", "a thing to forget is of another kind", lambda d: d.put(FORGET, key_due(d), b"p")),
    Case("I11", "forgets is wrong", lambda d: d.count(forgets=1)),
    Case(
        "I6",
        "something to forget lies before its mark",
        lambda d: d.set(forget_due_ms=KEY_MS + 1),
    ),
    Case("I6", "nothing is ever forgotten", lambda d: d.set(forget_due_ms=NEVER_MS)),
    Case(
        "I11",
        "a key is never forgotten",
        steps(lambda d: d.delete(FORGET, key_due(d)), lambda d: d.count(forgets=-1)),
    ),
    Case(
        "I11",
        "the entry of a key names another",
        lambda d: d.put(FORGET, key_due(d), FORGET_KEY + STRANGER),
    ),
    Case(
        "I11",
        "the entry of a key has another kind",
        lambda d: d.put(FORGET, key_due(d), b"x" + KEY),
    ),
    Case(
        "I11",
        "a key is named at a later time",
        steps(
            lambda d: d.delete(FORGET, key_due(d)),
            lambda d: d.put(FORGET, due_part(KEY_MS + 1, d.special), FORGET_KEY + KEY),
        ),
    ),
    Case(
        "I11",
        "a key is to be forgotten at another time",
        lambda d: d.put(Family.KEYS, KEY, encode_key_entry(d.special, 1)),
    ),
    Case("I11", "a key's entry is cut short", lambda d: d.put(Family.KEYS, KEY, b"x")),
    Case(
        "I11",
        "a key has no entry",
        lambda d: d.put(Family.KEYS, STRANGER, encode_key_entry(d.special, 1)),
    ),
    Case(
        "I11",
        "an ended batch has no time to be forgotten",
        steps(
            lambda d: d.change_batch(ENDED_BATCH, forget_at_ms=0),
            lambda d: d.delete(FORGET, BATCH_DUE),
            lambda d: d.count(forgets=-1),
        ),
    ),
    Case(
        "I11",
        "a batch without items is never forgotten",
        steps(
            lambda d: d.put(Family.BATCHES, b"\0\0\0\4", encode_batch(BatchRecord("empty"))),
            lambda d: d.put(Family.BATCH_NAMES, text_digest("empty"), b"\0\0\0\4"),
            lambda d: d.count(batches=1, last_batch=1),
        ),
    ),
]

PRODUCERS = [
    Case("I11", "a producer is gone", lambda d: d.delete(Family.PRODUCERS, PRODUCER)),
    Case(
        "I11",
        "a producer has no last answer",
        lambda d: d.delete(Family.PRODUCERS, PRODUCER + (2).to_bytes(8)),
    ),
    Case(
        "I11",
        "an answer is newer than its producer",
        lambda d: d.put(Family.PRODUCERS, PRODUCER + (3).to_bytes(8), ANSWER),
    ),
    Case("I11", "an answer is too old to be kept", answer_of_nine_calls_ago),
    Case(
        "I11",
        "an answer has no producer",
        lambda d: d.put(Family.PRODUCERS, STRANGER + (1).to_bytes(8), ANSWER),
    ),
    Case(
        "I11",
        "a producer is to be forgotten at another time",
        lambda d: d.put(
            Family.PRODUCERS, PRODUCER, encode_producer(ProducerHead(1, 2, START_MS, START_MS))
        ),
    ),
]

RESULTS = [
    Case("I12", "a result is missing", lambda d: d.delete(Family.LOG_BLOCKS, bytes(8))),
    Case(
        "I12",
        "a completed item is still here",
        lambda d: put_result(d, d.ready[0]),
    ),
    Case(
        "I12",
        "there is a result more than completed items",
        steps(
            lambda d: d.count(completed_total=-1, removed_total=1),
        ),
    ),
    Case("I12", "a log has lost its head", lambda d: d.delete(Family.LOGS, b"")),
    Case(
        "I12",
        "a reader is past the end",
        lambda d: d.put(Family.LOGS, b"reader", (9).to_bytes(8)),
    ),
    Case(
        "I12",
        "a block follows the last",
        lambda d: d.put(
            Family.LOG_BLOCKS,
            block_key(b"", 1),
            encode_block(
                encode_rows([plain_result(STRANGER, b"")]),
                first_offset=1,
                appended_at_ms=START_MS,
                position=d.rig.queue.results.head.end_position,
            ),
        ),
    ),
]

CASES = [*BATCHES, *FORGETTING, *PRODUCERS, *RESULTS]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_of_the_registry_is_reported_under_its_rule_and_no_other(
    rig: Rig, case: Case
) -> None:
    assert case.rules_found(rig) == case.rules


def test_check_of_a_sound_registry_finds_nothing_given_the_live_items(rig: Rig) -> None:
    Damage(rig)
    check = RecordsCheck(checked_queue(rig))

    found = [str(violation) for violation in check.run({})]

    assert [text.split(":")[0] for text in found] == ["I10 q"]
    assert "batch 'live'" in found[0]
