"""Why a request about a subscription is refused: the codes of the protocol, and their statuses."""

from dataclasses import dataclass, field

import msgspec

from queueber.gateway.problems import Problem

STATUSES: dict[str, int] = {
    "INVALID_REQUEST": 400,
    "WEBHOOK_URL_REJECTED": 400,
    "TOKEN_INVALID": 401,
    "TOKEN_EXPIRED": 401,
    "SUBSCRIPTION_NOT_FOUND": 404,
    "SUBSCRIPTION_ALREADY_EXISTS": 409,
    "FENCED": 409,
    "ALREADY_CLAIMED": 409,
    "NO_PENDING_WORK": 409,
    "INVALID_OFFSET": 409,
    "TOO_MANY": 429,
    "SUBSCRIPTIONS_OFF": 501,
}
"""The last two are ours; the protocol has the others."""


@dataclass(slots=True)
class Refusal(Problem):
    """A problem that also has the `error` object which clients of the protocol read."""

    facts: dict[str, object] = field(default_factory=dict)
    """Further fields of the object, such as `current_holder`."""

    def body(self) -> bytes:
        told = msgspec.json.decode(Problem.body(self))
        told["error"] = {"code": self.code, "message": self.detail, **self.facts}
        return msgspec.json.encode(told)


def refusal(code: str, detail: str, **facts: object) -> Refusal:
    headers = {"www-authenticate": "Bearer"} if STATUSES[code] == 401 else {}
    return Refusal(STATUSES[code], code, detail, headers, facts=facts)


def invalid_request(detail: str) -> Refusal:
    return refusal("INVALID_REQUEST", detail)


def not_found(id: str) -> Refusal:
    return refusal("SUBSCRIPTION_NOT_FOUND", f"there is no subscription {id!r}")
