"""How deeply a JSON value is nested. What follows a value into its depth has a stack of its own."""

from queueber.gateway.problems import invalid

NESTING_MAX = 64
"""Arrays and objects within each other, in a message that has a schema, and in a schema."""


def check_nesting(payload: bytes, value: object, what: str) -> None:
    """Refuse a value that is nested too deeply; `payload` is its JSON."""
    if payload.count(b"[") + payload.count(b"{") <= NESTING_MAX:
        return
    level = [value]
    for _ in range(NESTING_MAX):
        level = [
            inner for each in level for inner in _inside(each) if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise invalid(f"{what}: it is nested too deeply; the limit is {NESTING_MAX}")


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
