"""How the RPC adapter shares the server between its connections. No rule of queues is here."""

from queueber.limits import KIB, MIB

QUEUES_OF_CONNECTION_MAX = 4000
"""Capabilities of queues that one connection holds, about 12 KiB each. Our client keeps 1,000."""

TURN_SECONDS_MAX = 0.002
"""How long a turn of the loop should take at most while connections wait for fair turns."""
CALLS_WHILE_NEW = 16
"""A connection is new until it has begun so many calls: it takes turns with other new ones, as
nobody knows what it costs. Otherwise one call a connection would be a way to have all turns."""
CALLS_A_TURN = 4
"""Calls that one connection may begin in a turn of the loop before others have theirs; a few more
when they are small."""
READS_A_TURN = 64
"""The same for reads that begin no call."""

LONG_MESSAGES_BYTES_MAX = 1024 * MIB
"""Long messages of all connections that have begun to come in. Further ones wait."""

STALLED_SECONDS_MAX = 30.0
"""A connection that does not read its answers, or does not send the rest of its message, is closed:
one that moves less than `STALLED_SLICE_BYTES` in that time."""
STALLED_SECONDS_CROWDED = 5.0
"""The same when others need the memory."""
STALLED_SLICE_BYTES = 256 * KIB
