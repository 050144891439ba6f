"""The table of everything that the server measures. `docs/metrics.md` has the same table.

Names follow the conventions of Prometheus: the base unit last, `_total` for what only grows.
"""

from queueber.model import Metric, MetricKind

COUNTER, GAUGE, HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM

NAMED_MAX = 100
"""Queues, topics and groups that have samples of their own; all others share one sample."""
OTHER = "(other)"
"""The label of what the others have together: no queue or topic can have this name."""

CALL_SECONDS = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
)  # fmt: skip
SYNC_SECONDS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0,
)  # fmt: skip
WAIT_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)
GROUP_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)

METRICS: dict[str, Metric] = {}
"""By name."""


def _metric(
    name: str, kind: MetricKind, text: str, *labels: str, bounds: tuple[float, ...] = ()
) -> Metric:
    METRICS[name] = metric = Metric(name, kind, text, labels, bounds)
    return metric


# --- the server -----------------------------------------------------------------------------------

UP = _metric("queueber_info", GAUGE, "Always 1; the labels describe the server.", "version")
STARTED = _metric(
    "queueber_start_time_seconds", GAUGE, "When the server was started, since the epoch."
)
CALLS = _metric(
    "queueber_calls_total",
    COUNTER,
    "Calls that have ended, by method and by the code of their error, or OK.",
    "method",
    "code",
)
CALL_DURATION = _metric(
    "queueber_call_duration_seconds",
    HISTOGRAM,
    "How long successful calls took, with the time in which they waited for items or messages.",
    "method",
    bounds=CALL_SECONDS,
)
CALLS_IN_FLIGHT = _metric(
    "queueber_calls_in_flight", GAUGE, "Calls under way, without those that wait."
)
CALLS_MAX = _metric(
    "queueber_calls_in_flight_max", GAUGE, "The limit of calls under way; at it, callers wait."
)
CALLS_WAITING = _metric(
    "queueber_calls_waiting", GAUGE, "Calls that wait for items, results or messages."
)
HELD_BACK = _metric(
    "queueber_callers_held_back", GAUGE, "Callers whose next call waits, as too many are under way."
)
UNREAD_BYTES = _metric(
    "queueber_unread_answers_bytes", GAUGE, "Answers in memory that their callers have not read."
)
CONNECTIONS = _metric("queueber_connections", GAUGE, "Open connections.")
CONNECTIONS_MAX = _metric("queueber_connections_max", GAUGE, "The limit of open connections.")
CONNECTIONS_TOTAL = _metric(
    "queueber_connection_attempts_total",
    COUNTER,
    "Attempts to connect, by whether they were accepted or refused at the limit.",
    "outcome",
)

# --- commits --------------------------------------------------------------------------------------

COMMIT_CALLS = _metric(
    "queueber_commit_group_calls",
    HISTOGRAM,
    "How many calls shared one sync of the log.",
    bounds=GROUP_SIZES,
)
COMMIT_ITEMS = _metric(
    "queueber_commit_group_items",
    HISTOGRAM,
    "How many items and messages shared one sync of the log.",
    bounds=GROUP_SIZES,
)
SYNC_DURATION = _metric(
    "queueber_sync_duration_seconds",
    HISTOGRAM,
    "How long a sync of the log took.",
    bounds=SYNC_SECONDS,
)

# --- queues ---------------------------------------------------------------------------------------

QUEUES = _metric("queueber_queues", GAUGE, "Queues of the server.")
QUEUE_ITEMS = _metric(
    "queueber_queue_items", GAUGE, "Items of a queue, by state.", "queue", "state"
)
QUEUE_OPERATIONS = _metric(
    "queueber_queue_operations_total",
    COUNTER,
    "Items of a queue that were added, polled, completed, and so on; `unclaimed`: those that died "
    "because nobody leased them in time.",
    "queue",
    "operation",
)
QUEUE_BYTES = _metric(
    "queueber_queue_contents_bytes", GAUGE, "Contents of the items of a queue.", "queue"
)
QUEUE_LEASES = _metric("queueber_queue_leases", GAUGE, "Live leases of a queue.", "queue")
QUEUE_OLDEST = _metric(
    "queueber_queue_oldest_item_seconds",
    GAUGE,
    "How long the oldest item that a poll could get now has been ready.",
    "queue",
)
QUEUE_WAITED = _metric(
    "queueber_queue_wait_seconds",
    GAUGE,
    "How long items had been ready when they were polled: the mean of the last 10 seconds.",
    "queue",
)
QUEUE_WAITING_POLLS = _metric(
    "queueber_queue_waiting_polls", GAUGE, "Polls that wait for items of a queue.", "queue"
)
QUEUE_PAUSED = _metric("queueber_queue_paused", GAUGE, "1 while a queue is paused.", "queue")
QUEUE_RESULTS = _metric("queueber_queue_results", GAUGE, "Results that a queue keeps.", "queue")
QUEUE_RESULT_BYTES = _metric(
    "queueber_queue_results_bytes", GAUGE, "Bytes of the results that a queue keeps.", "queue"
)
ITEM_WAIT = _metric(
    "queueber_item_wait_seconds",
    HISTOGRAM,
    "How long items of any queue had been ready when they were polled; of some polls.",
    bounds=WAIT_SECONDS,
)

# --- topics ---------------------------------------------------------------------------------------

TOPICS = _metric("queueber_topics", GAUGE, "Topics of the server.")
PUBLISHED = _metric(
    "queueber_published_messages_total", COUNTER, "Messages that were published in any topic."
)
TOPIC_PUBLISHED = _metric(
    "queueber_topic_published_messages_total", COUNTER, "Messages that were published.", "topic"
)
TOPIC_PUBLISHED_BYTES = _metric(
    "queueber_topic_published_bytes_total", COUNTER, "Bytes that were published.", "topic"
)
TOPIC_MESSAGES = _metric("queueber_topic_messages", GAUGE, "Messages that a topic keeps.", "topic")
TOPIC_BYTES = _metric(
    "queueber_topic_bytes", GAUGE, "Bytes of the messages that a topic keeps.", "topic"
)
GROUP_LAG = _metric(
    "queueber_group_lag_messages",
    GAUGE,
    "Messages that a group has not acknowledged.",
    "topic",
    "group",
)
GROUP_LAG_SECONDS = _metric(
    "queueber_group_lag_seconds",
    GAUGE,
    "The age of the oldest message that a group has not acknowledged.",
    "topic",
    "group",
)
GROUP_DEAD = _metric(
    "queueber_group_dead_messages", GAUGE, "Dead letters of a shared group.", "topic", "group"
)

# --- the store ------------------------------------------------------------------------------------

STORE_SST = _metric("queueber_store_files_bytes", GAUGE, "The sorted files of the store on disk.")
STORE_WAL = _metric("queueber_store_log_bytes", GAUGE, "The write-ahead log on disk.")
STORE_DISK_FREE = _metric(
    "queueber_store_disk_free_bytes", GAUGE, "What is free on the disk of the data directory."
)
STORE_DISK = _metric(
    "queueber_store_disk_bytes", GAUGE, "The size of the disk of the data directory."
)
STORE_MEMTABLES = _metric(
    "queueber_store_memtables_bytes", GAUGE, "Writes in memory that are not in a sorted file yet."
)
STORE_CACHE = _metric("queueber_store_cache_bytes", GAUGE, "What the block cache holds.")
STORE_CACHE_MAX = _metric("queueber_store_cache_max_bytes", GAUGE, "What the block cache may hold.")
STORE_COMPACTION_DEBT = _metric(
    "queueber_store_compaction_pending_bytes", GAUGE, "What compactions still have to rewrite."
)
STORE_COMPACTIONS = _metric(
    "queueber_store_compactions_running", GAUGE, "Compactions that run now."
)
STORE_FLUSHES = _metric(
    "queueber_store_flushes_running", GAUGE, "Flushes of memtables that run now."
)
STORE_L0_FILES = _metric(
    "queueber_store_level0_files",
    GAUGE,
    "Files of level 0 of the family that has most; at 400 writes stop.",
)
STORE_STOPPED = _metric(
    "queueber_store_writes_stopped",
    GAUGE,
    "1 while RocksDB takes no writes until it has compacted.",
)
STORE_STALLS = _metric(
    "queueber_store_refused_writes_total",
    COUNTER,
    "Writes that the store refused, because it stalled or the disk was full.",
    "reason",
)
STORE_ERRORS = _metric(
    "queueber_store_background_errors_total", COUNTER, "Background errors of RocksDB."
)

# --- the process ----------------------------------------------------------------------------------

CPU = _metric("queueber_process_cpu_seconds_total", COUNTER, "CPU time of the server.")
MEMORY = _metric("queueber_process_resident_memory_bytes", GAUGE, "Resident memory of the server.")
OPEN_FILES = _metric("queueber_process_open_fds", GAUGE, "Open files of the server.")
OPEN_FILES_MAX = _metric("queueber_process_max_fds", GAUGE, "The limit of open files.")
