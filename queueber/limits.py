"""Every hard limit, with its reason. Options of the server (`config.py`) stay within these."""

KIB = 1024
MIB = 1024 * KIB
SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

# --- Queues and items -----------------------------------------------------------------------------

ID_BYTES = 16

QUEUE_NAME_CHARS_MAX = 128
QUEUES_MAX = 1000
"""Each queue keeps its counters and a window of ready entries in memory (about 400 KiB at most)."""

LEASE_MS_MAX = 7 * DAY_MS
DELAY_MS_MAX = 366 * DAY_MS
POLL_WAIT_MS_MAX = 300 * SECOND_MS

ADD_ITEMS_MAX = 10_000
"""Items in one add. A call is one write batch, and blocks other calls for about 3 µs an item."""

POLL_ITEMS_CEILING = 10_000
"""Upper limit of `poll_items_max`: a lease expires as a whole, in one write batch."""

MANY_MAX = 10_000
"""Removes, extends or polls in one call."""

BLOCK_ITEMS_MAX = 512
BLOCK_BYTES_MAX = 64 * KIB
"""Items and bytes of one block of contents. Larger ones save nothing more: at 100 items an entry
costs each of them a hundredth. A poll of one item reads its block, and a block of which little is
left is rewritten: both want small ones. An item that is larger has a block of its own."""
BLOCK_WASTE_FACTOR = 4
"""A block is rewritten once less than a quarter of its bytes belongs to items that are left."""

PRIORITY_MAX = 9
PRIORITY_DEFAULT = 5

PARKED_LEVEL = 2 * (PRIORITY_MAX + 1)
"""Below it are the levels of ready items: one for each priority, and one for the quarantined items
of each. From it on are the same levels of items that are parked, because of a cap."""
LEVELS = 2 * PARKED_LEVEL

QUARANTINE_PATIENCE_MS = 30 * SECOND_MS
"""How long a holder that holds too many items for a quarantined one gets other items first. After
that it gets no item that comes after the quarantined one."""

OLDEST_FIRST_EVERY = 8
"""One lease in this many takes the items that have been ready longest, whatever their priority."""

# --- What items carry, and names ------------------------------------------------------------------

KEY_BYTES_MAX = 512
ATTRIBUTES_MAX = 32
"""Most attributes of one item."""
ATTRIBUTES_BYTES_MAX = 8 * KIB
"""Bytes of the names and values of one item's attributes."""
BATCH_NAME_BYTES_MAX = 256
PRODUCER_ID_BYTES_MAX = 256
READER_NAME_BYTES_MAX = 256
CLIENT_NAME_BYTES_MAX = 256
"""The name of a client, which the server logs."""
CALLER_NAME_BYTES_MAX = 256
"""The name of a caller, in the token file or in a JSON Web Token."""
PATTERN_BYTES_MAX = 256
"""A pattern of names in a grant."""
GRANTS_MAX = 100
"""Grants of one caller, and patterns of one grant."""
CALLERS_MAX = 10_000
"""Entries of a token file."""
TOKEN_BYTES_MAX = 16 * KIB
"""A token that a caller sends. Longer ones are refused unread."""
PASSWORD_BYTES_MAX = 1024
ERROR_BYTES_MAX = 16 * KIB
"""The error text of one failure. An item keeps the last in full."""
EARLIER_ERRORS_MAX = 19
EARLIER_ERROR_BYTES_MAX = 300
"""Errors of earlier failures that an item keeps, and of how much of each: every failure writes all
of them anew."""

# --- Attempts, keys, batches, producers -----------------------------------------------------------

ATTEMPTS_CEILING = 1000
"""Upper limit of `attempts_max`: an item keeps the times of all its attempts."""

CAP_ITEMS_MAX = 1_000_000
"""Upper limit of caps on items that are leased at once, and of the items of a rate."""
CAP_MOVED_MAX = 1000
"""Items that one transaction parks because of a cap, and items that it lets go."""
CAP_PASSES_MAX = 10
"""A poll that does not wait parks so many times as many, and then gets nothing."""
CAP_BY_BYTES_MAX = 256
"""The name of the attribute by which items are capped."""
RATE_MS_MAX = DAY_MS
"""The longest time that a rate may be given for."""

BACKOFF_STEPS_MAX = 100
ITEM_BACKOFF_STEPS_MAX = 16
"""Delays that an item may have of its own: each item has a copy of them."""
ITEM_TIMEOUT_MS_MAX = 7 * DAY_MS
"""The longest time limit of an item: that of a lease."""

DEDUP_WINDOW_MS_MAX = 30 * DAY_MS
RESULT_AGE_MS_MAX = 366 * DAY_MS
DEAD_AGE_MS_MAX = 366 * DAY_MS

FORGOTTEN_TOGETHER_MAX = 256
"""Keys that one entry of the family `forget` names: a slice of a sweep looks at a few entries."""

KEPT_KEYS_LOOK_MS = HOUR_MS
"""How often the server looks whether items are gone whose keys it keeps after the dedup window."""

BATCHES_MAX = 10_000_000
"""The default of `batches_max`, a setting of queues: some 2 GB on disk, and nothing in memory."""
BATCH_KEEP_MS = 7 * DAY_MS
"""The default of `batch_keep_ms`: when a queue forgets a complete batch."""
BATCH_KEEP_MS_MAX = 366 * DAY_MS
BATCH_NUMBER_MAX = (1 << 32) - 1
"""Batches that a queue ever has: a million a day for eleven years."""
FORGET_BATCHES_MAX = 1000
"""Batches that one slice of a call that forgets old ones looks at: a few milliseconds."""

CALLBACKS_MAX = 100_000
"""Callbacks of a queue whose item was not added yet. Of those whose batch is complete and whose
item is refused, memory has a number."""
CALLBACK_BYTES_MAX = 64 * KIB
"""Key, contents and attributes of the item of a callback: all of them may take 6 GB on disk."""
CALLBACKS_TOGETHER = 100
"""Items of callbacks that one write adds to a queue."""
CALLBACK_RETRY_MS = SECOND_MS
"""When a queue that refused the item of a callback is tried again."""

AFTER_MAX = 100
"""Items that one item may wait for."""
AFTER_TOGETHER_MAX = 10_000
"""Items of a call times items that each waits for: each pair is an entry."""
WAITERS_MAX = 1000
"""Items that may wait for one item, or for one batch."""
WAITING_MAX = 100_000
"""Items of a queue that may wait for others."""
CIRCLE_LOOKED_AT_MAX = 1000
"""Items that wait and that an add looks at, to see whether its batch would wait for itself: some
milliseconds. A circle through more of them is not seen."""

PRODUCER_ANSWERS_KEPT = 8
"""Answers that are kept for each producer, for its retries. A producer may have as many calls under
way."""
PRODUCER_KEEP_MS = 7 * DAY_MS
"""How long the server remembers a producer that sends nothing."""

# --- Bulk loads -----------------------------------------------------------------------------------

PARTITIONS_MAX = 1 << 24
"""Partitions of one load: an id has 3 bytes for the partition."""
ROWS_MAX = 1 << 32
"""Rows of one partition: an id has 4 bytes for the row."""
LOADS_MAX = 100
"""Loads of a queue that are not committed. Each keeps files on the disk of the server."""
LOAD_NAME_BYTES_MAX = 256
LOAD_PARTS_MAX = 20_000
"""Parts in one commit, which reads all their records at once."""
LOAD_FILES_MAX = 20_000
"""Files of one part."""
LOAD_FILE_BYTES = 64 * MIB
"""Size at which a builder starts a new file of items: that of RocksDB's own files."""
LOAD_FILE_BYTES_MAX = 256 * MIB
LOAD_CHUNK_BYTES = MIB
"""Bytes of a file in one call, which the server writes in less than a millisecond."""
LOAD_DUPLICATES_MAX = 100_000
"""Rows of one load that may be duplicates: the last write batch of the commit deletes them."""
LOAD_TIMEOUT_MS = HOUR_MS
LOAD_TIMEOUT_MS_MAX = 7 * DAY_MS
LOAD_KEEP_MS = 30 * DAY_MS
"""How long the server remembers a committed load, so that a client can retry the commit."""

# --- Topics ---------------------------------------------------------------------------------------

TOPIC_NAME_BYTES_MAX = 255
TOPIC_PARTITIONS_MAX = 256
DEDUP_ID_BYTES_MAX = 256
CONTENT_TYPE_BYTES_MAX = 255
TEXT_SEQUENCE_BYTES_MAX = 1024
SCHEMA_VERSION_MAX = (1 << 32) - 1
SCHEMA_BYTES_MAX = 256 * KIB
"""Of the document of a topic's schema."""
SCHEMAS_MAX = 1_000
"""Versions that a topic keeps."""
GROUP_NAME_BYTES_MAX = 255
GROUP_RESET_MAX = 100_000
"""Messages that are leased or to be retried, when a shared group is reset: one write drops them."""
GROUP_ACK_MAX = 100_000
"""Messages that are leased or to be retried, and that a shared group settles by one offset."""
WINDOW_DELAYED_MAX = 1_000
"""Runs of delayed messages that a poll of one partition passes over in search of a ready one."""
BRIDGE_RETRY_MS = SECOND_MS
"""When a bridge whose queue had no room tries again."""
BRIDGE_BYTES_MAX = 4 * MIB
"""What a bridge adds to its queue in one write, unless a single message is larger."""
GROUPS_MAX = 100
"""Groups of one topic: all their records are read when the topic is first used."""
FORKS_MAX = 10_000
"""Forks of one topic."""
INHERITED_MAX = 1024
"""Stretches of messages that a fork shares: one for each partition and ancestor."""
PUBLISH_MESSAGES_MAX = 10_000
"""Messages in one publish, to all its topics together."""
PUBLISH_TOPICS_MAX = 1000
"""Topics in one publish."""
TOPICS_LOADED_MAX = 5000
"""Topics that are kept in memory though nobody uses them right now, some 4 KiB each."""
HISTORY_NAMES_MAX = 200
"""Queues, and topics, in one call for their histories: as many as the server has histories of."""
TOPIC_LIST_MAX = 1000
"""Topics in a page of their list."""
PAYLOAD_BYTES_MAX = 4 * MIB
"""The default of `payload_bytes_max`."""
RETENTION_MS_MAX = 3660 * DAY_MS
TOMBSTONE_MS = DAY_MS
TRIM_ACKNOWLEDGED_MS = SECOND_MS
"""How long messages that all groups have acknowledged wait for their deletion: those of a second
are deleted together."""
COMPACT_AFTER_MS = 10 * SECOND_MS
"""How long a message that was replaced by a later one may still be read. All that were replaced
meanwhile leave their blocks together."""
TTL_SLACK_PART = 16
"""The time of a topic's last use is written at most so often within its time to live."""
AGENDA_SLACK_MS = MINUTE_MS
"""The agenda on disk says to within this time when to look at a topic. Memory says it exactly, as
long as the topic is there."""

# --- Routes and filters ---------------------------------------------------------------------------

ROUTES_OF_TOPIC_MAX = 100
ROUTES_OF_QUEUE_MAX = 16
"""Each is looked at for every change of the queue's items, and all are in memory."""
ROUTE_CHAIN_MAX = 100
"""Topics that a new route or bridge is followed to, in search of a circle."""
EVENTS_BYTES_MAX = 64 * MIB
"""Contents and attributes in the events of one write. An event for which there is no room has its
key only."""
FILTER_CHARS_MAX = 2000
FILTER_DEPTH_MAX = 32
FILTER_PATTERN_CHARS_MAX = 200
FILTER_FIELDS_MAX = 8
"""A filter: its text, how deep its conditions are nested, a pattern of LIKE; and the fields that a
partition is chosen by."""
FILTER_CONTENTS_BYTES_MAX = 64 * KIB
"""JSON contents that a filter looks into, on the one thread that everybody shares: about half a
millisecond. Larger ones have no fields for it."""
FILTER_LIKE_CHARS_MAX = 4096
"""A text that LIKE looks at; whether a longer one matches is unknown."""

# --- Schedules ------------------------------------------------------------------------------------

SCHEDULES_MAX = 10_000
"""Schedules of the server: when each is due is in memory."""
SCHEDULE_NAME_CHARS_MAX = 128
SCHEDULE_BYTES_MAX = 64 * KIB
"""Contents and attributes of the items of a schedule: every run writes its record again."""
SCHEDULES_LIST_MAX = 250
"""Schedules in a page of their list."""
WHEN_CHARS_MAX = 256
EVERY_MS_MIN = SECOND_MS
EVERY_MS_MAX = 366 * DAY_MS
SCHEDULE_YEARS_MAX = 40
"""How far a date of a schedule is searched for: a given weekday on the 29th of February comes after
40 years at most."""
MISSED_AFTER_MS = MINUTE_MS
"""A run that is so late is a missed one."""
MISSED_MADE_UP_MS = 7 * DAY_MS
"""Older missed runs are not made up for: a schedule of every minute has 10,080 of them by then."""
SCHEDULE_RUNS_TOGETHER = 100
"""Missed runs that one write makes up for."""
SCHEDULE_RETRY_MS = SECOND_MS
"""When a schedule whose queue had no room tries again."""

# --- Subscriptions --------------------------------------------------------------------------------

CREDITS_MAX = 1_000_000
"""Messages that a subscriber may grant and has not got yet."""
DELIVERY_MESSAGES_MAX = 1000
DELIVERY_BYTES = 256 * KIB
"""Messages and bytes of one delivery; a message that is larger is delivered alone."""
DELIVERIES_MAX = 4
"""Deliveries of one subscription that its consumer has not answered."""
DELIVERY_BYTES_MAX = MIB
"""With so many bytes of them unanswered, no further one is sent."""
SUBSCRIPTIONS_OF_CONNECTION_MAX = 1000
HEARTBEAT_MS_MIN = 100

# --- Reading, lists and snapshots -----------------------------------------------------------------

LOG_READERS_MAX = 100
READ_ITEMS_MAX = 10_000
PEEK_ITEMS_MAX = 100
PURGE_ITEMS_MAX = 1000
"""Items in a page of peek, and in a slice of purge or redrive: a few milliseconds."""
LEASES_LIST_MAX = 1000
BATCHES_LIST_MAX = 250
"""Leases and batches in a page of their list: a few milliseconds."""
HOLDERS_REMEMBERED = 100_000
"""Leases that live at the same time of which the server knows who polled: some 20 MiB. There may be
up to twice as many."""

READ_LOOKED_AT_MAX = 10_000
"""Results that a call may look at when it reads the results of one batch: about 5 ms."""
SCAN_ITEMS_MAX = 250
"""Items in a page of a snapshot: about 2 ms without their contents."""
SCAN_LOOKED_AT_MAX = 1000
"""Entries that a call may look at when it scans for items of one batch: about 2 ms."""

SPLIT_PARTS_MAX = 10_000
SPLIT_SEEKS_MAX = 4000
"""Seeks in one split of a snapshot, for any number of ranges: 20 ms. 16 ranges of one priority take
about 150 seeks."""

SNAPSHOTS_MAX = 16
"""Snapshots of all queues together. Each keeps write buffers in memory and files on disk."""
SNAPSHOT_KEEP_MS = 10 * MINUTE_MS
"""How long the server keeps a snapshot that nobody reads."""
SNAPSHOT_YIELDS_MS = 2 * SECOND_MS
"""At the limit, a new snapshot ends the one unread for longest, if nobody read it for this long. An
active reader asks for its next page within milliseconds."""

# --- Backups --------------------------------------------------------------------------------------

BACKUPS_MAX = 4
"""Backups that the server keeps. Each keeps files on disk that compactions have replaced."""
BACKUP_KEEP_MS = 5 * MINUTE_MS
"""How long the server keeps a backup that nobody reads."""
BACKUP_CHUNK_BYTES = MIB
"""Bytes of a file in one call: reading and sending them takes about a millisecond."""
BACKUP_WAIT_MS_MAX = MINUTE_MS
"""How long a new backup waits for the commits of loads that are under way."""
BACKUP_FILES_MAX = 1_000_000
"""Files of one backup that a client takes in: 64 TB, in files of the usual size."""

# --- SELECT ---------------------------------------------------------------------------------------

SELECT_TEXT_BYTES_MAX = 64 * KIB
"""A SELECT, and its parameters."""
SELECT_TABLES_MAX = 8
"""Tables that one SELECT names."""
SELECT_SECONDS = 30
"""How long one SELECT may take, with the reading of its tables."""
SELECT_MEMORY_BYTES = 768 * MIB
"""By how much the process may grow that runs SELECT: tables, what it computes, and the answer."""
SELECT_ENGINE_BYTES = 256 * MIB
"""Of these, what the query engine takes for sorts, groups and joins."""
SELECT_TABLE_BYTES_MAX = 256 * MIB
SELECT_TABLE_ROWS_MAX = 5_000_000
"""Bytes and rows of all tables of one SELECT."""
SELECT_ROWS_MAX = 10_000
SELECT_ANSWER_BYTES_MAX = 16 * MIB
"""Rows and bytes of one answer."""
SELECTS_MAX = 2
"""SELECTs that run at a time in one process of the gateway, each on a core of its own."""
SELECT_WAITS_MAX = 32
"""SELECTs that wait for their turn."""
SELECT_IDLE_MS = MINUTE_MS
"""How long a process that runs SELECT is kept without one. It takes half a second to start."""

# --- Messages of the wire -------------------------------------------------------------------------

MESSAGE_BYTES_CEILING = 56 * MIB
"""Upper limit of `message_bytes_max`: by default, Cap'n Proto clients refuse 64 MiB messages."""

ITEM_WIRE_BYTES = 64
"""Bytes of a message for each item beside its contents: pointers, id and padding, rounded up."""

ATTRIBUTE_WIRE_BYTES = 32
"""Bytes of a message for each attribute beside its texts: two pointers, two NULs, padding."""

MESSAGE_OVERHEAD_BYTES = 4 * KIB
"""Bytes reserved for the envelope of a call."""

ANSWER_BYTES = 2 * MIB
"""Headroom above the largest item; larger reads are paged. Building this much of an answer blocks
other calls for about 2 ms."""


def answer_bytes_max(*, item_bytes_max: int, message_bytes_max: int) -> int:
    """Most bytes of items in one answer."""
    return min(message_bytes_max, ANSWER_BYTES + item_bytes_max) - MESSAGE_OVERHEAD_BYTES


# --- SQL ------------------------------------------------------------------------------------------

SQL_CHARS_MAX = 64 * KIB
"""Of the text of one call, which takes about 100 ms to parse."""
SQL_STATEMENTS_MAX = 100
SQL_PARAMS_MAX = 100
SQL_LISTS_MAX = 16
"""Lists in lists of a parameter."""
SQL_ROWS_MAX = 10_000
"""Rows that one statement answers with."""
SQL_ANSWER_BYTES_MAX = 16 * MIB
"""Of the values in all rows that one call answers with."""
SQL_SECONDS_MAX = 30.0
"""How long the statements of one call may take together."""

# --- gRPC -----------------------------------------------------------------------------------------

GRPC_OPEN_STREAMS_MAX = 100
"""Streams of health and reflection of one process of the gateway. Anybody may open them: they take
no place of those that subscribe."""
GRPC_REFLECTION_SECONDS_MAX = 60
"""How long a stream of reflection may be open; a tool asks, and hangs up."""

# --- Inside the server ----------------------------------------------------------------------------

READY_WINDOW_ENTRIES = 1024
"""Ready entries that each queue reads ahead into memory, so that a poll seldom seeks."""
RECENT_BYTES_MAX = 64 * MIB
"""Cache of the contents of new items until they are polled, of all queues together."""
RECENT_QUEUE_BYTES_MAX = 48 * MIB
"""The same of one queue."""
SWEEP_SLICE_ITEMS = 1000
"""Items that one slice of a sweep moves, in a few milliseconds. Calls run between slices."""
DEAD_READ_REST_MS = 500
"""Between two slices of a sweep that look for dead letters to delete; less if it read less. They
are read in order of id, again and again: some 100,000 a minute, for less than a hundredth of a
core."""
LOOKAHEAD_SKIPS_MAX = 2000
"""Deleted entries that a search for the next due time may skip (about 0.2 ms)."""
LOOKAHEAD_RETRY_MS = 40
"""When to repeat a search that gave up: within the 50 ms in which a waiting poll must wake."""
STORE_RETRY_MS = 500
"""How long a sweep waits after the store refused a write, for instance because the disk is full."""
SAMPLE_EVERY_MS = 10_000
"""How often the server takes a point of the histories of queues and topics."""
UNREADABLE_RETRY_MS = HOUR_MS
"""When a sweep looks again at a topic whose records cannot be read, and says so again."""
SYNC_EVERY_MS = 1_000
"""How often the server syncs writes that no call waits for, and records how far it synced."""

if not LOOKAHEAD_RETRY_MS < 50:
    raise AssertionError("a waiting poll would wake later than after 50 ms")
if not POLL_ITEMS_CEILING * ITEM_WIRE_BYTES < MESSAGE_BYTES_CEILING // 2:
    raise AssertionError("a full poll would need more than half of a message for its ids")
