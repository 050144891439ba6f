"""Every hard bound, with its reason. What an operator may set is in `config.py`, within these."""

KIB = 1024
MIB = 1024 * KIB
SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

ID_BYTES = 16

QUEUE_NAME_CHARS_MAX = 128
QUEUES_MAX = 1000
"""Each queue keeps its counters and a window of ready entries in memory (about 150 KiB at most)."""

LEASE_MS_MAX = 7 * DAY_MS
DELAY_MS_MAX = 366 * DAY_MS
POLL_WAIT_MS_MAX = 300 * SECOND_MS

ADD_ITEMS_MAX = 10_000
"""Items in one add. A call is one write batch and holds the server for about 3 µs an item."""

POLL_ITEMS_CEILING = 10_000
"""The most an operator may allow in one poll: a lease is expired as a whole, in one batch."""

MANY_MAX = 10_000
"""Removes, extends, polls and the like in one call."""

PRIORITY_MAX = 9
PRIORITY_DEFAULT = 5

LEVELS = 2 * (PRIORITY_MAX + 1)
"""Of ready items: one for each priority, and one for the quarantined items of each."""

QUARANTINE_PATIENCE_MS = 30 * SECOND_MS
"""How long a holder that holds too much for a quarantined item is given others first. After that it
gets nothing that stands behind the item."""

OLDEST_FIRST_EVERY = 8
"""One lease in so many takes the items that have been ready longest, whatever their priority."""

KEY_BYTES_MAX = 512
ATTRIBUTES_MAX = 32
"""Attributes of one item."""
ATTRIBUTES_BYTES_MAX = 8 * KIB
"""Names and values of one item's attributes together."""
BATCH_NAME_BYTES_MAX = 256
PRODUCER_ID_BYTES_MAX = 256
READER_NAME_BYTES_MAX = 256
CLIENT_NAME_BYTES_MAX = 256
"""What a caller calls itself, for the log."""
ERROR_BYTES_MAX = 16 * KIB
"""The text of one failure; only the last one of an item is kept."""

ATTEMPTS_CEILING = 1000
"""The most attempts that a queue may allow: the times of all of them are kept."""

BACKOFF_STEPS_MAX = 100
DEDUP_WINDOW_MS_MAX = 30 * DAY_MS
RESULT_AGE_MS_MAX = 366 * DAY_MS

BATCHES_MAX = 100_000
"""Batches that a queue remembers; a complete one is forgotten after `BATCH_KEEP_MS`."""
BATCH_KEEP_MS = 7 * DAY_MS

PRODUCER_ANSWERS_KEPT = 8
"""The last calls of a producer that are answered again when repeated: as many may be under way."""
PRODUCER_KEEP_MS = 7 * DAY_MS
"""How long a producer that sends nothing is remembered."""

PARTITIONS_MAX = 1 << 24
"""Of one load: a partition's number has 3 bytes of an id."""
ROWS_MAX = 1 << 32
"""Of one partition: a row's number has 4 bytes of an id."""
LOADS_MAX = 100
"""Loads of a queue that are not committed. Each keeps files on the disk of the server."""
LOAD_NAME_BYTES_MAX = 256
LOAD_PARTS_MAX = 20_000
"""Parts in one commit: their records are read at once."""
LOAD_FILES_MAX = 20_000
"""Files of one part."""
LOAD_FILE_BYTES = 64 * MIB
"""Where a file of items ends and the next begins: as large as RocksDB makes its own."""
LOAD_FILE_BYTES_MAX = 256 * MIB
LOAD_CHUNK_BYTES = MIB
"""Bytes of a file in one call: the server writes them in less than a millisecond."""
LOAD_DUPLICATES_MAX = 100_000
"""Rows of one load that keys may keep out: they are deleted in the batch that ends it."""
LOAD_TIMEOUT_MS = HOUR_MS
LOAD_TIMEOUT_MS_MAX = 7 * DAY_MS
LOAD_KEEP_MS = 30 * DAY_MS
"""How long a committed load is remembered, so that its commit may be repeated."""

LOG_READERS_MAX = 100
READ_ITEMS_MAX = 10_000
PEEK_ITEMS_MAX = 100
PURGE_ITEMS_MAX = 1000
"""Items of one page of peek, or slice of purge or redrive: a few milliseconds."""

READ_LOOKED_AT_MAX = 10_000
"""Results that a read of one batch may look at in a call, whether they are of it or not: about
5 ms."""
SCAN_ITEMS_MAX = 250
"""Items of one page of a snapshot: about 2 ms without their contents."""
SCAN_LOOKED_AT_MAX = 1000
"""Entries that a scan for one batch may look at in a call: about 2 ms."""

SPLIT_PARTS_MAX = 10_000
SPLIT_SEEKS_MAX = 4000
"""Seeks of one split of a snapshot, however many ranges are asked for: 20 ms. 16 ranges of one
priority take about 150."""

SNAPSHOTS_MAX = 16
"""Snapshots of all queues. Each keeps write buffers in memory and files on disk."""
SNAPSHOT_KEEP_MS = 10 * MINUTE_MS
"""How long a snapshot that nobody reads is kept."""
SNAPSHOT_YIELDS_MS = 2 * SECOND_MS
"""When there are too many, the one that was not read for longest makes room, if it is as long: who
is reading asks for the next page within milliseconds."""

MESSAGE_BYTES_CEILING = 56 * MIB
"""Clients with the default reader limits of Cap'n Proto refuse a message of 64 MiB."""

ITEM_WIRE_BYTES = 64
"""What an item adds to a message beside its contents: pointers, id and padding, rounded up."""

ATTRIBUTE_WIRE_BYTES = 32
"""What an attribute adds beside its texts: two pointers, two ends, padding."""

MESSAGE_OVERHEAD_BYTES = 4 * KIB
"""Room for the envelope of a call."""

ANSWER_BYTES = 2 * MIB
"""So much more than the largest item an answer may have. Who asks for more asks again: all others
wait while an answer is made, about 2 ms for so much."""


def answer_bytes_max(*, item_bytes_max: int, message_bytes_max: int) -> int:
    """What the items of one answer may have together."""
    return min(message_bytes_max, ANSWER_BYTES + item_bytes_max) - MESSAGE_OVERHEAD_BYTES


READY_WINDOW_ENTRIES = 1024
"""Ready entries kept in memory for each queue, read ahead so that a poll seldom seeks."""

RECENT_BYTES_MAX = 64 * MIB
"""Contents of new items that are kept in memory until they are polled, and of one queue's."""
RECENT_QUEUE_BYTES_MAX = 48 * MIB

SWEEP_SLICE_ITEMS = 1000
"""Items that one slice of a sweep moves: a few milliseconds, between which calls are answered."""

LOOKAHEAD_SKIPS_MAX = 2000
"""Deleted entries that a look ahead for the next due time may skip (about 0.2 ms)."""

LOOKAHEAD_RETRY_MS = 40
"""When to look again after giving up: within the 50 ms in which a waiting poll must wake."""

STORE_RETRY_MS = 500
"""How long a sweep waits after the store refused its write (a full disk, say)."""

SYNC_EVERY_MS = 1_000
"""How often what nobody waits for is synced, and how far it went is noted."""

if not LOOKAHEAD_RETRY_MS < 50:
    raise AssertionError("a due time would be found later than promised")
if not POLL_ITEMS_CEILING * ITEM_WIRE_BYTES < MESSAGE_BYTES_CEILING // 2:
    raise AssertionError("the bookkeeping of a full poll would crowd out its contents")
