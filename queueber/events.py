"""Every event that is logged: its level, its fields, and what it means. Nothing else is logged.

Programs that read logs rely on the names and fields; a test holds the code to this table. Every
line also has `timestamp` and `level`, and `exception` where the event has `exc_info`.
"""

from dataclasses import dataclass

WHO = ("caller", "client", "identity")
"""Who caused it: the address, the name that the client gave, and who authenticated."""


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of line in the log."""

    name: str
    levels: tuple[str, ...]
    meaning: str
    fields: tuple[str, ...] = ()
    """Always there."""
    others: tuple[str, ...] = ()
    """There if it applies."""
    is_open: bool = False
    """Whether it has further fields, as `meaning` says."""


EVENTS: dict[str, Event] = {}
"""By name."""


def _event(
    level: str,
    name: str,
    meaning: str,
    fields: str = "",
    others: str = "",
    *,
    who: bool = False,
    is_open: bool = False,
) -> None:
    """`who`: also the fields of `WHO`, of which the first is always there."""
    always, sometimes = tuple(fields.split()), tuple(others.split())
    if who:
        always, sometimes = (*always, WHO[0]), (*sometimes, *WHO[1:])
    EVENTS[name] = Event(name, tuple(level.split()), meaning, always, sometimes, is_open)


# --- the server -----------------------------------------------------------------------------------

_event("info", "starting", "The server starts, with all its options.", "version", is_open=True)
_event("info", "listening", "Callers may connect.", "address")
_event("info", "reloaded", "Files were read again, after SIGHUP.", "what")
_event("error", "reload_failed", "A file is wrong; the old one stays in use.", "what reason")
_event("info", "stopping", "The server drains, and then stops.", "reason calls_in_flight")
_event("warning", "calls_abandoned", "The shutdown waited no longer.", "calls_in_flight")
_event("info", "stopped", "The store is closed.")
_event("warning", "open_files_limited", "Fewer connections.", "allowed wanted connections")
_event("warning", "torn_log", "The log ends in a torn write, after a crash.", "reason")
_event("critical", "crashed", "A promise is broken, or the store is: it stops.", "exc_info")
_event("critical", "server_failed", "The last line.", "reason exit_code", "exc_info")

# --- connections ----------------------------------------------------------------------------------

_event("error", "connection_not_accepted", "The system has no file or memory for it.", "error")
_event("warning", "connection_refused", "There are as many as may be.", "connections", who=True)
_event("warning", "connection_refused_often", "It is closed.", "refusals", who=True)
_event("warning", "connection_stalled", "It is closed.", "bytes seconds", who=True)
_event("warning", "handshakes_failed", "TLS: how many, and the last.", "count reason caller")
_event("info", "credential_ended", "The connection is closed.", "reason", who=True)
_event("info", "connection_without_credential", "It is closed.", who=True)
_event("debug", "connection_lost", "Its bound leases end.", "queue leases")
_event("error", "unexpected_error", "A bug; the call gets INTERNAL.", "exc_info", who=True)

# --- the audit log --------------------------------------------------------------------------------

_AUDIT = "method queue topic reason left_out caller client identity"
_event("info", "audit", "An administrative act, or a refusal.", "outcome", _AUDIT)
_event("error", "audit_not_written", "As audit, without a file.", "error outcome", _AUDIT)

# --- queues ---------------------------------------------------------------------------------------

_event(
    "info", "queue_created", "Not with settings if by its first use.", "queue", "settings", who=True
)
_event("info", "queue_configured", "Its settings were changed.", "queue settings", who=True)
_event("info", "queue_deleted", "With all its items.", "queue", who=True)
_event("info", "paused", "No poll is served; 0: until resumed.", "queue for_ms", who=True)
_event("info", "resumed", "Polls are served again.", "queue", who=True)
_event("info", "cancelled", "Items were taken out by id.", "queue items", who=True)
_event(
    "info", "rescheduled", "Items become ready at another time.", "queue items delay_ms", who=True,
)  # fmt: skip
_event("info", "purged", "Items of a state were deleted.", "queue state items", who=True)
_event("info", "redriven", "Dead letters are ready again.", "queue items", who=True)
_event("info", "load_begun", "Files may be staged.", "queue load epoch", who=True)
_event("info", "load_committed", "Its items are in the queue.", "queue load rows", who=True)
_event("info", "load_aborted", "Nothing of it is left.", "queue load", who=True)
_event("info", "schedule_stored", "Created or changed.", "queue schedule stored", who=True)
_event("info", "schedule_paused", "It does not run.", "queue schedule", who=True)
_event("info", "schedule_resumed", "It runs at its next time.", "queue schedule", who=True)
_event("info", "schedule_run", "Somebody had its item added.", "queue schedule item", who=True)
_event("info", "schedule_removed", "Its items stay.", "queue schedule", who=True)

# --- topics ---------------------------------------------------------------------------------------

_event("info debug", "topic_created", "At debug by a publish.", "topic", f"config {' '.join(WHO)}")
"""This one, deletions and forks are at debug, too, beyond 20 a second."""
_event("info", "topic_configured", "Its settings were changed.", "topic config", who=True)
_event("info debug", "topic_deleted", "With all its messages and groups.", "topic", who=True)
_event("info", "topic_schema_set", "A further version of its schema holds.", "topic", who=True)
_event("info", "topic_source_added", "It gets changes of a queue.", "topic source", who=True)
_event("info", "topic_source_dropped", "Or all of the queue.", "topic queue on", who=True)
_event("info", "topic_closed", "It takes no more messages.", "topic", who=True)
_event(
    "info",
    "topic_trimmed",
    "Messages before a position were deleted.",
    "topic partition to",
    who=True,
)
_event("info debug", "topic_forked", "Another topic shares its messages.", "topic fork", who=True)
_event("error", "topic_unreadable", "Its records are damaged; others go on.", "reason")
_event(
    "info", "group_created", "It reads the topic at its own pace.", "topic group settings", who=True
)
_event("info", "group_deleted", "Its position is forgotten.", "topic group", who=True)
_event("info", "group_reset", "It goes on elsewhere.", "topic group to", "partition", who=True)
_event("info", "group_paused", "It gets nothing; 0: until resumed.", "topic group for_ms", who=True)
_event("info", "group_resumed", "It gets messages again.", "topic group", who=True)
_event(
    "warning",
    "bridge_stopped",
    "A message does not fit.",
    "topic group queue partition offset reason",
)

# --- backups --------------------------------------------------------------------------------------

_event(
    "info", "backup_begun", "Files of the store are kept for it.", "backup files bytes", who=True
)
_event("info", "backup_ended", "Nothing is kept for it any more.", "backup reason")

# --- every operation ------------------------------------------------------------------------------

for _name in (
    "added", "extended", "removed", "completed", "failed", "released", "part_finished",
    "acknowledged", "reader_dropped", "batch_forgotten", "batches_forgotten", "callback_stored",
):  # fmt: skip
    _event("debug", _name, "What was asked and answered.", "queue ids answer")
_event("debug", "polled", "The leases, and the ids of each.", "queue leases")
_event("debug", "swept", "Leases that expired, delays that ended.", "queue expired promoted")
_event("debug", "taken_back", "A poll whose caller has gone.", "queue lease")
_event("debug", "snapshot_opened", "A view of the queue is kept.", "queue snapshot")
_event("debug", "snapshot_ended", "It is kept no longer.", "queue snapshot reason")
_event("debug", "consumer_failed", "Its subscription ends.", "consumer error")

# --- the gateway ----------------------------------------------------------------------------------

_event("info", "gateway_listening", "Requests may come.", "address server")
_event("info", "grpc_listening", "Calls of gRPC may come.", "address")
_event("info", "gateway_stopped", "All requests were answered.")
_event("info", "gateway_starting", "The server starts one beside itself.", "address")
_event("error", "gateway_died", "It is started again.", "exit_code restart_seconds")
_event("critical", "gateway_crashed", "A bug; the process ends.", "exc_info")

# --- subscriptions to streams ---------------------------------------------------------------------

_event("warning", "webhook_failed", "It is sent again.", "subscription generation failures reason")
_event("warning", "webhook_unsettled", "Its answer is lost; sent again.", "subscription reason")
_event("warning", "subscription_full", "Further streams are not linked.", "subscription links")
_event("debug", "wake_stream_missing", "Nobody is told of a wake.", "subscription stream")
_event("debug", "subscriptions_not_seen", "Looked at again soon.", "reason", "subscription")
_event("error", "request_failed", "A bug; the caller gets 500.", "path exc_info")

# --- workers --------------------------------------------------------------------------------------

_NUMBERS = "queue rate in_flight waiting done failed refused unknown connected"
_event("info", "worker_connecting", "The server has not answered yet.", "queue")
_event("info", "worker_started", "The server has answered; it polls.", "queue")
_event("info", "working", "Every ten seconds, if anything changed.", _NUMBERS)
_event("info", "worker_ended", "The last numbers.", _NUMBERS)
_event("info", "worker_stopping", "It waits for handlers.", "handlers seconds action")
_event("warning", "event_loop_blocked", "By a handler.", "seconds where action")
_event("info", "event_loop_free", "It turns again.", "seconds")
_FAILURE = ("id attempt error exception", "job skipped_since")
_event("warning", "handler_failed", "At most one a second of each type.", *_FAILURE)
_event("warning", "result_refused", "The result was too large, or wrong.", *_FAILURE)
_event(
    "warning",
    "unknown_job",
    "It is left to other workers.",
    "id attempt error job queue action",
    "skipped_since",
)
_event("warning", "results_refused", "The leases had ended.", "count ids reason")
_event("info", "results_unknown", "The answer was lost.", "count ids")
_event("warning", "on_lease_lost_failed", "The callback raised.", "id error")
_event(
    "warning",
    "too_many_unknown_jobs",
    "A run that ends by itself can keep no more of them, and ends.",
    "count action",
)
_event("warning", "handlers_stuck", "They ran too long, and cannot be ended.", "count free")
_event("warning", "handlers_abandoned", "They did not end in time.", "count ids")
_event("warning", "results_abandoned", "The server was away too long.", "count")
_event("warning", "server_unreachable", "Once, until it is back.", "reason action")
_event("info", "server_reachable", "It is back.")
_event("warning", "queue_not_found", "Once, until it is there.", "queue action")
_event("info", "queue_found", "It is there.", "queue")
_event("warning", "worker_process_died", "It is started again.", "process reason deaths_in_a_row")
_event("warning", "worker_process_killed", "It did not end by itself.", "process reason")
_event("warning", "worker_process_replaced", "A handler ran too long.", "process")
