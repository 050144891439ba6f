"""What TLS decrypts in one turn of the loop is as much as costs little."""

import pytest

from queueber.rpc import decryption
from queueber.rpc.decryption import READ_SECONDS_MAX, Decryption
from queueber.wire.stream import SCRATCH_BYTES

BUFFER = memoryview(bytearray(SCRATCH_BYTES))


class Reads:
    """Reads a connection whose bytes cost so many seconds each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.decryption = Decryption(len(BUFFER))
        monkeypatch.setattr(decryption, "seconds", lambda: self.now)

    def read(self, there: int, cost: float) -> tuple[int, bool]:
        """How many of the bytes that are there were read, and whether others have turns now."""
        count = min(there, len(self.decryption.begin(BUFFER)))
        self.now += count * cost
        return count, self.decryption.end(count)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def test_whole_records_are_read_at_once(reads: Reads) -> None:
    for there in (100, len(BUFFER), 10 * len(BUFFER)):
        for cost in (1e-9, 10e-9):
            assert reads.read(there, cost) == (min(there, len(BUFFER)), False)


def test_tiny_records_are_read_a_little_at_a_time_and_others_have_turns(reads: Reads) -> None:
    for _ in range(6):
        reads.read(11_000, 1e-6)

    for _ in range(100):
        began_at = reads.now
        count, is_rest_due = reads.read(11_000, 1e-6)
        assert count >= 64
        assert is_rest_due
        assert reads.now - began_at <= 2 * READ_SECONDS_MAX


def test_a_connection_that_sends_whole_records_again_is_read_at_once_again(reads: Reads) -> None:
    for _ in range(10):
        reads.read(11_000, 1e-6)
    for _ in range(13):
        count, is_rest_due = reads.read(len(BUFFER), 1e-9)

    assert (count, is_rest_due) == (len(BUFFER), False)


def test_one_read_that_had_to_wait_for_a_processor_costs_a_quarter_of_the_next(
    reads: Reads,
) -> None:
    reads.read(1000, 1e-3)

    assert reads.read(len(BUFFER), 1e-9) == (len(BUFFER) // 4, True)


def test_a_read_with_nothing_behind_it_does_not_wait(reads: Reads) -> None:
    for _ in range(10):
        reads.read(11_000, 1e-6)

    assert reads.read(10, 1e-6) == (10, False)
