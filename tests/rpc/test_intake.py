"""The intake: long messages have room for all of them, or wait."""

from queueber.rpc.intake import Intake


class Stream:
    def __init__(self, intake: Intake, size: int) -> None:
        self._intake, self.size = intake, size
        self.has_room = intake.reserve(self, size)

    def read_on(self) -> None:
        self.has_room = self._intake.reserve(self, self.size)


def test_intake_lets_messages_wait_until_others_have_ended() -> None:
    intake = Intake(100)
    first, second, third = Stream(intake, 60), Stream(intake, 60), Stream(intake, 40)

    assert (first.has_room, second.has_room, third.has_room) == (True, False, True)
    assert intake.is_crowded
    intake.release(first.size)
    assert second.has_room
    assert not intake.is_crowded
    assert intake.bytes == 100


def test_intake_takes_a_message_that_is_too_large_when_there_is_no_other() -> None:
    intake = Intake(100)

    assert Stream(intake, 1000).has_room
    assert not Stream(intake, 1).has_room


def test_intake_forgets_who_has_gone() -> None:
    intake = Intake(100)
    Stream(intake, 100)
    gone = Stream(intake, 50)

    intake.forget(gone)
    intake.forget(gone)

    assert not intake.is_crowded
