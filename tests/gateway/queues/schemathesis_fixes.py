"""What schemathesis changes in its requests about queues, because no schema can say it.

Only values that are right by themselves are changed; what is wrong is sent as it is.
"""

from typing import Any

from queueber.limits import BATCH_NAME_BYTES_MAX, FILTER_CHARS_MAX, KEY_BYTES_MAX, WHEN_CHARS_MAX

_ID_DIGITS = 32


def fix_queues(case: Any) -> None:
    if isinstance(case.query, dict) and case.path.endswith("/items"):
        _fix_where(case.query)
    if isinstance(case.body, dict) and case.path.endswith("/cancel"):
        _fix_cancel(case.body)
    if isinstance(case.body, dict) and "/v1/schedules/" in case.path:
        _fix_schedule(case.body)


def _fix_where(query: dict[str, Any]) -> None:
    """Filters have a grammar, and an address has a limit of its own."""
    text = query.get("where")
    if isinstance(text, str) and len(text) > FILTER_CHARS_MAX:
        query["where"] = "a" * (FILTER_CHARS_MAX + 1)
    if isinstance(text, str) and text and len(text) <= FILTER_CHARS_MAX:
        query["where"] = "a = 1".ljust(len(text))


def _fix_schedule(body: dict[str, Any]) -> None:
    """Times have a grammar, and zones are a list."""
    when, zone = body.get("when"), body.get("zone")
    if isinstance(when, str) and 0 < len(when) <= WHEN_CHARS_MAX:
        body["when"] = "@daily"
    if isinstance(zone, str) and zone:
        body["zone"] = "UTC"


def _fix_cancel(body: dict[str, Any]) -> None:
    """One of the three."""
    given = {name: value for name, value in body.items() if value is not None}
    if not all(_is_right(name, value) for name, value in given.items()):
        return
    if not given:
        body["key"] = "k"
    for name in list(given)[1:]:
        del body[name]


def _is_right(name: str, value: object) -> bool:
    if name == "ids":
        return isinstance(value, list) and bool(value) and all(map(_is_id, value))
    most = {"key": KEY_BYTES_MAX, "batch": BATCH_NAME_BYTES_MAX}.get(name, 0)
    return isinstance(value, str) and 0 < len(value) <= most


def _is_id(value: object) -> bool:
    digits = "0123456789abcdefABCDEF"
    return isinstance(value, str) and len(value) == _ID_DIGITS and set(value) <= set(digits)
