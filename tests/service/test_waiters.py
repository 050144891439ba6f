"""The row of waiting polls against a dictionary of lists."""

from hypothesis import given
from hypothesis import strategies as st

from queueber.service.waiters import Asked, Waiter, Waiters

steps = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "discard", "put_back", "take_queue", "take_all"]),
        st.integers(1, 3),
        st.integers(0, 30),
    ),
    max_size=40,
)


@given(steps=steps)
def test_waiters_through_any_steps_stand_in_the_order_in_which_they_came(
    steps: list[tuple[str, int, int]],
) -> None:
    waiters = Waiters()
    model: dict[int, list[Waiter]] = {1: [], 2: [], 3: []}
    seen: list[Waiter] = []

    for step, queue_id, number in steps:
        if step == "append":
            # All alike: they are told apart by which they are.
            waiter = Waiter(None, Asked([1], 1000))
            waiters.append(queue_id, waiter)
            model[queue_id].append(waiter)
            seen.append(waiter)
        elif step == "discard" and seen:
            gone = seen[number % len(seen)]
            waiters.discard(queue_id, gone)
            model[queue_id] = [each for each in model[queue_id] if each is not gone]
        elif step == "put_back":
            passed_over: list[Waiter] = []
            while len(passed_over) < number and (first := waiters.first(queue_id)) is not None:
                waiters.discard(queue_id, first)
                passed_over.append(first)
            assert passed_over == model[queue_id][:number]
            assert waiters.count(queue_id) == len(model[queue_id]) - len(passed_over)
            waiters.put_back(queue_id, passed_over)
        elif step == "take_queue":
            assert waiters.take_queue(queue_id) == model[queue_id]
            model[queue_id] = []
        elif step == "take_all":
            taken = waiters.take_all()
            assert {id(each) for each in taken} == {
                id(each) for row in model.values() for each in row
            }
            for row in model.values():
                in_row = {id(each) for each in row}
                assert [each for each in taken if id(each) in in_row] == row
            model = {1: [], 2: [], 3: []}

        for each_id, row in model.items():
            assert waiters.first(each_id) is (row[0] if row else None)
            assert waiters.count(each_id) == len(row)
