"""Consuming a topic as KalamDB does: groups whose consumers read on, and acknowledge up to an
offset. The HTTP door and SQL share it; it uses the client, and nothing of the server."""

from queueber.consuming.consume import Consumed, acknowledge, consume, latest_offsets, reset
from queueber.consuming.starts import Start, read_start

__all__ = ["Consumed", "Start", "acknowledge", "consume", "latest_offsets", "read_start", "reset"]
