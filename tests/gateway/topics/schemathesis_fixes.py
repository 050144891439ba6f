"""What schemathesis changes in its requests about topics, because no schema can say it.

Only values that are right by themselves are changed; what is wrong is sent as it is.
"""

from typing import Any
from urllib.parse import unquote

from schemathesis.core import NotSet

from queueber.limits import FILTER_CHARS_MAX

_LEASE = "0" * 32
_PARTITIONS_MAX = 256


def fix(case: Any) -> None:
    group = (case.path_parameters or {}).get("group")
    if isinstance(group, str) and not unquote(group).isprintable():
        case.path_parameters["group"] = "billing"
    for fields in (case.body, case.query):
        _fix_fields(fields)
    if isinstance(case.query, dict) and case.path.endswith("/find"):
        _fix_find(case.query)
    if case.path.endswith("/ack"):
        if isinstance(case.body, NotSet):
            case.body = {}
        if isinstance(case.body, dict):
            _fix_ack(case.body)
    if isinstance(case.body, dict) and case.path.endswith("/sources"):
        _fix_source(case.body)
    if isinstance(case.body, dict) and case.path == "/v1/publish":
        _fix_publications(case.body.get("publications"))


def _fix_fields(value: object) -> None:
    """Topics have one partition, and groups names that can be printed; settings that exclude each
    other are not both set."""
    if isinstance(value, list):
        for each in value:
            _fix_fields(each)
    if not isinstance(value, dict):
        return
    for each in value.values():
        _fix_fields(each)
    if is_number(value.get("partition"), _PARTITIONS_MAX):
        value["partition"] = 0
    for name in ("group", "from"):
        text = value.get(name)
        if isinstance(text, str) and not text.isprintable():
            value[name] = "billing" if name == "group" else "earliest"
    if is_number(value.get("partitions"), _PARTITIONS_MAX + 1) and value["partitions"]:
        value["partitions"] = 1
    if value.get("keeps_last_per_key") is True:
        value["keeps_last_per_key"] = False
    if value.get("ttl_ms") and is_number(value.get("expires_at_ms"), 1 << 48):
        value["expires_at_ms"] = 0


def _fix_source(source: dict[str, Any]) -> None:
    """Filters have a grammar."""
    for name, right in (("where", "a = 1"), ("partition_by", "a")):
        text = source.get(name)
        if isinstance(text, str) and text and len(text) <= FILTER_CHARS_MAX:
            source[name] = right.ljust(len(text))


def _fix_find(query: dict[str, Any]) -> None:
    """One of the two."""
    if "id" in query and is_number(query.get("sequence"), 1 << 63):
        del query["sequence"]
    if "id" not in query:
        query.setdefault("sequence", 0)


def _fix_publications(publications: object) -> None:
    """Each to a topic of its own."""
    if not isinstance(publications, list):
        return
    for number, each in enumerate(publications):
        if isinstance(each, dict) and isinstance(each.get("topic"), str) and each["topic"]:
            others = [
                other.get("topic") for other in publications[:number] if isinstance(other, dict)
            ]
            if each["topic"] in others:
                each["topic"] = f"topic-{number}"


def _fix_ack(body: dict[str, Any]) -> None:
    """Of one kind."""
    is_right = all(
        body.get(name) is None or is_number(body[name], 1 << 63) for name in ("offset", "partition")
    ) and set(body) <= {"offset", "partition", "lease", "messages"}
    lease, messages = body.get("lease"), body.get("messages")
    if not is_right:
        return
    if isinstance(messages, list):
        if lease is None:
            body["lease"] = _LEASE
        body.pop("offset", None)
        body.pop("partition", None)
    elif messages is None and (lease is None or _is_id(lease)):
        body.pop("lease", None)
        body["offset"] = 0


def _is_id(value: object) -> bool:
    return (
        isinstance(value, str) and len(value) == 32 and set(value) <= set("0123456789abcdefABCDEF")
    )


def is_number(value: object, end: int) -> bool:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).isdecimal() and int(str(value)) < end
