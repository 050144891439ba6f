"""The checks of what items have of their own, in place of what their queue or worker says."""

from queueber.errors import InvalidArgument
from queueber.limits import (
    ATTEMPTS_CEILING,
    DELAY_MS_MAX,
    ITEM_BACKOFF_STEPS_MAX,
    ITEM_TIMEOUT_MS_MAX,
)
from queueber.model import ItemOptions, NewItems
from queueber.service.validate.arguments import check_column
from queueber.service.validate.settings import check_range


def check_options(items: NewItems) -> None:
    """The options of new items that have some."""
    check_column("options", items.options, len(items.contents))
    for options in set(items.options):
        check_own_options(options)
    if items.delays_ms:
        for options, delay_ms in set(zip(items.options, items.delays_ms, strict=True)):
            if 0 < options.expires_ms <= delay_ms:
                raise InvalidArgument(
                    f"options.expiresMs: an item that expires after {options.expires_ms} ms has a "
                    f"delay of {delay_ms} ms; let it expire later"
                )


def check_own_options(options: ItemOptions) -> None:
    """What one item has of its own."""
    if options.attempts_max is not None:
        check_range("options.attemptsMax", options.attempts_max, 0, ATTEMPTS_CEILING)
    if len(options.backoff_ms) > ITEM_BACKOFF_STEPS_MAX:
        raise InvalidArgument(
            f"options.backoffMs: {len(options.backoff_ms)} delays; the limit is "
            f"{ITEM_BACKOFF_STEPS_MAX}, the last one repeats"
        )
    for delay_ms in options.backoff_ms:
        check_range("options.backoffMs", delay_ms, 0, DELAY_MS_MAX)
    check_range("options.timeoutMs", options.timeout_ms, 0, ITEM_TIMEOUT_MS_MAX)
    check_range("options.expiresMs", options.expires_ms, 0, DELAY_MS_MAX)
