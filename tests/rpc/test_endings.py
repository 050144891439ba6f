"""Endings: a thousand connections that go at once hold nobody up."""

from collections.abc import Callable

from queueber.rpc.endings import Endings


def test_connections_that_end_at_once_are_taken_down_a_few_in_a_turn() -> None:
    soon: list[Callable[[], None]] = []
    ended: list[int] = []
    endings = Endings(soon.append)
    for number in range(11):
        endings.run(lambda number=number: ended.append(number))  # type: ignore[misc]

    in_turns = [len(ended)]
    while soon:
        turn, soon[:] = list(soon), []
        for function in turn:
            function()
        in_turns.append(len(ended))

    assert in_turns == [4, 8, 11, 11]
    assert ended == list(range(11))


def test_a_lone_connection_ends_at_once() -> None:
    soon: list[Callable[[], None]] = []
    ended: list[bool] = []
    Endings(soon.append).run(lambda: ended.append(True))

    assert ended == [True]
