"""What an item has of its own that the server adds at a time of its own."""

import msgspec

from queueber.client.arguments.item_options import OwnOptions
from queueber.gateway.queues import fields
from queueber.limits import SECOND_MS


class OwnFields(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The fields of a request that say so."""

    attempts: fields.Attempts | None = None
    backoff_ms: fields.ItemBackoff = msgspec.field(default_factory=list)
    timeout_ms: fields.TimeoutMs | None = None
    expires_ms: fields.ExpiresMs | None = None

    def own(self) -> OwnOptions:
        return {
            "attempts": self.attempts,
            "backoff": [each / SECOND_MS for each in self.backoff_ms] or None,
            "timeout": _seconds(self.timeout_ms),
            "expires": _seconds(self.expires_ms),
        }


def _seconds(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / SECOND_MS
