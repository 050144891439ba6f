"""Exit codes, and error messages that name flags. The help text shows the codes."""

import click

from queueber import errors

NEGATIVE = 1
USAGE = 2
UNREACHABLE = 3
REFUSED = 4
STORE = 5
OUR_FAULT = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

EPILOG = """\b
Exit codes:
  0    success
  1    a negative answer: no items, not all done, not complete, damage found
  2    wrong usage, or an argument that the server refuses
  3    the server cannot be reached, or is too busy
  4    the server or Spark refused, or the outcome is unknown; see the message
  5    the store cannot be opened, or the server cannot start
  70   a bug of Queueber
  130  interrupted; 141 if the reader of the output has closed it

Every command has a --help with an example.
"""


class Failure(click.ClickException):
    """One sentence on stderr, and an exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click means it to be set


FLAGS = {
    "visibilityTimeout": "--delay", "delaysMs": "--delay", "leaseValidity": "--lease",
    "leaseMs": "--lease", "numItems": "--count", "forMs": "--for", "keys": "--key",
    "errors": "--error", "attributes": "--attribute", "producer.id": "--producer",
    "itemBytesMax": "--item-bytes-max", "attemptsMax": "--attempts-max",
    "backoffMs": "--backoff", "backoffBaseMs": "--backoff-base", "backoff.base": "--backoff-base",
    "backoffFactor": "--backoff-factor", "backoff.factor": "--backoff-factor",
    "backoffCapMs": "--backoff-cap", "backoff.cap": "--backoff-cap",
    "backoffJitter": "--backoff-jitter", "backoff.jitter": "--backoff-jitter",
    "dedupWindowMs": "--dedup-window", "resultAgeMs": "--result-age",
    "concurrencyMax": "--concurrency-max", "rateItems": "--rate", "rateMs": "--rate",
    "batchesMax": "--batches-max", "batchKeepMs": "--batch-keep",
    "capBy": "--cap-by", "capByConcurrencyMax": "--cap-by-concurrency-max",
    "capByRateItems": "--cap-by-rate", "capByRateMs": "--cap-by-rate",
    "deadAgeMs": "--dead-age",
    "tls.ca": "--tls-ca", "tls.certificate": "--tls-certificate", "tls.key": "--tls-key",
} | {
    f"{name}_ms": "--" + name.replace("_", "-")
    for name in (
        "lease", "backoff", "backoff_base", "backoff_cap", "dedup_window", "result_age",
        "batch_keep", "dead_age",
    )
} | {
    name: "--" + name.replace("_", "-")
    for name in (
        "items_max", "bytes_max", "item_bytes_max", "backoff_factor", "backoff_jitter",
        "result_bytes_max", "concurrency_max", "rate", "batches_max", "batch_keep", "cap_by",
        "cap_by_concurrency_max", "cap_by_rate", "dead_age",
        "count", "wait", "lease", "delay", "priority", "key", "error", "epoch", "producer",
        "attempts", "expires", "after", "after_batch",
        "concurrency", "processes", "prefetch", "timeout", "middleware", "loop",
        "serializer", "deserializer",
        "shutdown_timeout", "connect_timeout", "attempts_max", "backoff", "format",
        "contents_column", "key_column", "priority_column", "delay_column", "visible_at_column",
        "attributes_column", "write_id",
    )
}  # fmt: skip
"""Names of fields on the wire and of arguments in Python, and the flags that set them."""


def failure_of(error: errors.QueueberError) -> Failure:
    return Failure(_with_flag(error.sentence), _code_of(error))


def _with_flag(message: str) -> str:
    """Replace the field at the beginning of a message with its flag."""
    field, colon, rest = message.partition(": ")
    return f"{FLAGS.get(field, field)}{colon}{rest}"


def _code_of(error: errors.QueueberError) -> int:
    match error:
        case errors.InvalidArgument():
            return USAGE
        case errors.Unavailable():
            return UNREACHABLE
        case errors.DataDirLocked() | errors.StorageCorrupt() | errors.StorageFailed():
            return STORE
        case _:
            return REFUSED
