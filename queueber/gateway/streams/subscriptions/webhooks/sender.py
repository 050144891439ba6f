"""Webhooks: what is sent, what counts as an answer, and when a failed one is sent again."""

import asyncio
import random
import ssl
from dataclasses import dataclass
from enum import Enum

import msgspec

from queueber.clock import Clock
from queueber.gateway.streams.subscriptions.records.record import Record
from queueber.gateway.streams.subscriptions.refusals import Refusal
from queueber.gateway.streams.subscriptions.wake_tokens import make_token
from queueber.gateway.streams.subscriptions.wakes import states
from queueber.gateway.streams.subscriptions.webhooks.signing import SigningKeys
from queueber.gateway.streams.subscriptions.webhooks.targets import (
    Resolver,
    ask_system,
    resolve,
    to_target,
)
from queueber.limits import SECOND_MS

ATTEMPT_MS_MAX = 30 * SECOND_MS
_BACKOFF_MS = 1 * SECOND_MS
_BACKOFF_MS_MAX = 60 * SECOND_MS
_JITTER = 0.2


class Outcome(Enum):
    DONE = "done"
    """All that the wake is about is acknowledged."""
    ARRIVED = "arrived"
    """The receiver works, and calls back."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Sent:
    outcome: Outcome
    reason: str = ""


class _Answer(msgspec.Struct):
    done: bool = False


def attempt_ms(record: Record) -> int:
    """How long an attempt may take: whoever answers later has lost the lease anyway."""
    return min(record.lease_ttl_ms, ATTEMPT_MS_MAX)


def backoff_ms(failures: int) -> int:
    """How long to wait after so many failures: a second, doubled for each, up to a minute."""
    usual = min(_BACKOFF_MS << min(failures - 1, 10), _BACKOFF_MS_MAX)
    return round(usual * (1 + _JITTER * (2 * random.random() - 1)))


def body_of(record: Record, token: str) -> bytes:
    """The JSON of the present wake."""
    assert record.wake is not None
    return msgspec.json.encode(
        {
            "subscription_id": record.id,
            "wake_id": record.wake.id,
            "generation": record.generation,
            "streams": states(record, record.wake.snapshot),
            "callback_url": record.url("callback"),
            "callback_token": token,
        }
    )


class Sender:
    """Sends webhooks. `resolver` and `tls` are for tests."""

    def __init__(
        self,
        clock: Clock,
        *,
        allows_loopback: bool,
        resolver: Resolver = ask_system,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._clock = clock
        self.allows_loopback = allows_loopback
        self.resolver = resolver
        self._tls = tls

    async def send(self, keys: SigningKeys, record: Record) -> Sent:
        """Send the webhook of the present wake once, within its time."""
        from queueber.gateway.streams.subscriptions.webhooks.post import post  # few gateways post

        body = body_of(record, make_token(keys.token_key, record))
        headers = {
            "content-type": "application/json",
            "user-agent": "queueber",
            "webhook-signature": keys.sign(body, self._clock.now_ms()),
        }
        try:
            target = to_target(record.webhook_url or "", allows_loopback=self.allows_loopback)
            async with asyncio.timeout(attempt_ms(record) / SECOND_MS):
                address = await resolve(target, self.resolver)
                reply = await post(target, address, headers, body, tls=self._tls)
        except TimeoutError:
            return Sent(Outcome.FAILED, f"no answer within {attempt_ms(record)} ms")
        except Refusal as refused:
            return Sent(Outcome.FAILED, refused.detail)
        except OSError as error:
            return Sent(Outcome.FAILED, str(error)[:200] or type(error).__name__)
        if not 200 <= reply.status < 300:
            return Sent(Outcome.FAILED, f"the answer has status {reply.status}")
        return Sent(Outcome.DONE if _says_done(reply.body) else Outcome.ARRIVED)


def _says_done(body: bytes) -> bool:
    try:
        return msgspec.json.decode(body, type=_Answer).done
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
