"""The agenda against a dictionary."""

from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.db.records.keys import NEVER_MS
from queueber.engine.kernel.transaction import Agenda
from queueber.ids import QueueId

NO_QUEUE, ONE, TWO, THREE = (QueueId(number) for number in range(4))
queue_ids = st.integers(1, 5).map(QueueId)
times_ms = st.integers(0, 20)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("schedule"), queue_ids, times_ms),
        st.tuples(st.just("forget"), queue_ids, st.just(0)),
        st.tuples(st.just("take_due"), st.just(NO_QUEUE), times_ms),
    ),
    max_size=60,
)


@settings(max_examples=300)
@given(steps=steps)
def test_agenda_through_any_steps_is_the_earliest_time_of_each_queue(
    steps: list[tuple[str, QueueId, int]],
) -> None:
    agenda = Agenda()
    model: dict[int, int] = {}

    for step, queue_id, at_ms in steps:
        if step == "schedule":
            agenda.schedule(queue_id, at_ms)
            model[queue_id] = min(at_ms, model.get(queue_id, NEVER_MS))
        elif step == "forget":
            agenda.forget(queue_id)
            model.pop(queue_id, None)
        else:
            taken = agenda.take_due(at_ms)
            if taken is None:
                assert all(due_ms > at_ms for due_ms in model.values())
            else:
                earliest_ms = min(model.values())
                assert earliest_ms <= at_ms
                assert model.pop(taken) == earliest_ms
        assert agenda.next_ms() == min(model.values(), default=NEVER_MS)


def test_agenda_takes_queues_in_the_order_of_their_times() -> None:
    agenda = Agenda()
    for queue_id, at_ms in ((ONE, 30), (TWO, 10), (THREE, 20), (ONE, 15)):
        agenda.schedule(queue_id, at_ms)

    taken = [agenda.take_due(100) for _ in range(4)]

    assert taken == [2, 1, 3, None]


def test_agenda_with_nothing_on_it_is_never_due() -> None:
    agenda = Agenda()
    agenda.schedule(ONE, NEVER_MS)

    assert agenda.next_ms() == NEVER_MS
    assert agenda.take_due(NEVER_MS - 1) is None


def test_agenda_does_not_keep_a_later_time_that_an_earlier_one_replaced() -> None:
    agenda = Agenda()
    agenda.schedule(ONE, 50)
    agenda.schedule(ONE, 10)

    assert agenda.take_due(10) == 1
    assert agenda.take_due(100) is None


def test_agenda_scheduled_without_end_does_not_grow() -> None:
    """A queue with an item delayed by days and leases of seconds, day after day.

    Each lease is an earlier time, and once it has passed, the far one is put back.
    """
    agenda = Agenda()
    far_ms = 10**9
    agenda.schedule(ONE, far_ms)

    for now_ms in range(1, 100_000):
        agenda.schedule(ONE, now_ms)
        assert agenda.take_due(now_ms) == 1
        agenda.schedule(ONE, far_ms)

    assert len(agenda._heap) < 1000
