"""What schemathesis changes in its requests, because no schema can say it.

No test waits as long as a long poll may. An offset is one that the log has: it is empty, so 0.
In long bodies 5.0 does not stand for 5. A cap by an attribute names the attribute.
"""

from typing import Any

import schemathesis

from queueber.gateway.bodies import _LOOSE_BYTES_MAX
from tests.gateway.kalam.schemathesis_fixes import fix_kalam
from tests.gateway.queues.schemathesis_fixes import fix_queues
from tests.gateway.sql.schemathesis_fixes import fix_sql
from tests.gateway.topics.schemathesis_fixes import fix, is_number

_WAIT_MS_MAX = 20
_LIMIT_MS = 300_000


@schemathesis.hook
def before_call(context: Any, case: Any, **named: Any) -> None:
    for fields in (case.body, case.query):
        if isinstance(fields, dict):
            _fix_fields(fields)
    if case.path.endswith("/poll"):
        if isinstance(case.body, dict):
            case.body.setdefault("wait_ms", _WAIT_MS_MAX)
        elif not isinstance(case.body, str | bytes | int | list | float | bool):
            case.body = {"wait_ms": _WAIT_MS_MAX}
    if case.path.endswith("/api/sql"):
        fix_sql(case)
    elif "/api/" in case.path:
        fix_kalam(case)
    else:
        fix(case)
        fix_queues(case)
    if isinstance(case.body, dict) and len(str(case.body)) > _LOOSE_BYTES_MAX // 2:
        for name, value in case.body.items():
            if isinstance(value, float) and value.is_integer():
                case.body[name] = int(value)


def _fix_fields(fields: dict[str, Any]) -> None:
    if _is_long(fields.get("wait_ms")):
        fields["wait_ms"] = _WAIT_MS_MAX
    if is_number(fields.get("offset"), 1 << 63):
        fields["offset"] = 0
    if fields.get("cap_by_concurrency_max") or fields.get("cap_by_rate_items"):
        fields["cap_by"] = fields.get("cap_by") or "customer"


def _is_long(value: object) -> bool:
    """Whether it is a wait that the gateway would accept; a wrong one is sent as it is."""
    try:
        return _WAIT_MS_MAX < float(str(value)) <= _LIMIT_MS
    except ValueError:
        return False
