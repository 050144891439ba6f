"""What schemathesis changes in its requests of KalamDB's kind, because no schema can say it.

They take two names for one field, and need one of them. Only values that are right by themselves
are changed; what is wrong is sent as it is.
"""

from typing import Any

from schemathesis.core import NotSet

_TOPIC, _GROUP, _USER = "shop.orders", "billing", "ann"


def fix_kalam(case: Any) -> None:
    if isinstance(case.body, NotSet):
        case.body = {}
    body = case.body
    if not isinstance(body, dict):
        return
    if case.path.endswith("/login"):
        _name_one(body, ("user", "username"), _USER)
        return
    partitions = body.get("partitions")
    for each in [body, *(partitions if isinstance(partitions, list) else [])]:
        if isinstance(each, dict):
            _name_one(each, ("topic_id", "topic"), _TOPIC)
    if isinstance(body.get("group_id", ""), str | None):
        body["group_id"] = _GROUP
    if isinstance(body.get("start"), str | None):
        body["start"] = "Earliest"
    if isinstance(body.get("start"), dict) and all(
        isinstance(each, int) for each in body["start"].values()
    ):
        body["start"] = {"Offset": 0}
    if body.get("timeout_seconds") is None:
        body["timeout_seconds"] = 0


def _name_one(fields: dict[str, Any], names: tuple[str, str], name: str) -> None:
    first, second = names
    if all(isinstance(fields.get(each), str | None) for each in names):
        fields[first] = name
        fields.pop(second, None)
