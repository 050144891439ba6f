"""Long messages: memory for all of one is reserved before it is read, or it waits."""

from queueber.rpc.buffers import LongMessage, MessageMemory


class Sender:
    """A connection that sends one long message."""

    def __init__(self, memory: MessageMemory, size: int) -> None:
        self.message = LongMessage(memory, self._memory_came)
        self.has_memory = self.message.reserve(size)

    def _memory_came(self) -> None:
        self.has_memory = True


def test_messages_wait_until_others_have_ended() -> None:
    memory = MessageMemory(100)
    first, second, third = Sender(memory, 60), Sender(memory, 60), Sender(memory, 40)

    assert (first.has_memory, second.has_memory, third.has_memory) == (True, False, True)
    assert memory.is_crowded
    first.message.end()
    assert second.has_memory
    assert not memory.is_crowded
    assert memory.bytes == 100
    assert (first.message.received, first.message.reserved) == (60, 0)


def test_message_that_is_too_large_comes_when_there_is_no_other() -> None:
    memory = MessageMemory(100)

    assert Sender(memory, 1000).has_memory
    assert not Sender(memory, 1).has_memory


def test_sender_that_has_gone_is_forgotten() -> None:
    memory = MessageMemory(100)
    first, gone = Sender(memory, 100), Sender(memory, 50)

    gone.message.end()
    gone.message.end()

    assert not memory.is_crowded
    first.message.end()
    assert (gone.has_memory, memory.bytes) == (False, 0)
