"""`/docs`: the description as a page, without scripts and without anything from elsewhere."""

import base64
import hashlib
import json
from html import escape
from typing import Any

from queueber.errors import WIRE_ERRORS, OutcomeUnknown
from queueber.gateway.problems import STATUSES

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid; text-transform: capitalize; }
details { margin: .5rem 0; padding: .25rem .75rem; border: 1px solid #8888; border-radius: .4rem; }
summary { cursor: pointer; }
code, pre { font: 14px/1.4 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .5rem; background: #8881; border-radius: .4rem; }
.method { display: inline-block; min-width: 4.5rem; font-weight: bold; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; }
""".strip()

_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}


def render(document: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The page and the headers that go with it."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            shown = _operation(method.upper(), path, operation)
            by_tag.setdefault(operation["tags"][0], []).append(shown)
    rooms = "".join(f"<h2>{escape(tag)}</h2>{''.join(each)}" for tag, each in by_tag.items())
    info = document["info"]
    page = (
        "<!doctype html><html lang=en><head><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>Queueber: HTTP</title><style>{_STYLE}</style></head><body>"
        f"<h1>Queueber {escape(info['version'])}: HTTP</h1><p>{_text(info['description'])}</p>"
        "<p>For programs: <a href=/openapi.json>openapi.json</a> (OpenAPI 3.1).</p>"
        f"{rooms}<h2>errors</h2>{_errors()}</body></html>"
    )
    return page, _HEADERS


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f"<p>{_text(operation['description'])}</p>"] if "description" in operation else []
    query = [each for each in operation["parameters"] if each["in"] == "query"]
    if query:
        rows = "".join(
            f"<tr><td><code>{escape(each['name'])}</code></td>"
            f"<td>{escape(_kind(each['schema']))}</td>"
            f"<td>{_text(each.get('description', ''))}</td></tr>"
            for each in query
        )
        parts.append(f"<table>{rows}</table>")
    content = operation.get("requestBody", {}).get("content", {})
    parts += [_example("Request", each.get("example")) for each in content.values()]
    for status, response in operation["responses"].items():
        for each in response.get("content", {}).values():
            parts.append(_example(f"Answer {status}", each.get("example")))
    parts.append(f"<p>Statuses: {', '.join(operation['responses'])}</p>")
    return (
        f"<details><summary><span class=method>{method}</span> <code>{escape(path)}</code> "
        f"{escape(operation['summary'])}</summary>{''.join(parts)}</details>"
    )


def _kind(schema: dict[str, Any]) -> str:
    """`integer, 100 by default`."""
    words = [str(schema.get("type") or " | ".join(map(str, schema.get("enum", ()))))]
    if schema.get("default") not in (None, ""):
        words.append(f"{schema['default']} by default")
    return ", ".join(words)


def _example(title: str, example: object) -> str:
    if example is None:
        return ""
    shown = escape(json.dumps(example, indent=2))
    return f"<p>{title}</p><pre>{shown}</pre>"


def _errors() -> str:
    kinds = WIRE_ERRORS | {OutcomeUnknown.code: OutcomeUnknown}
    rows = "".join(
        f"<tr id={code}><td><code>{code}</code></td><td>{STATUSES[code]}</td>"
        f"<td>{escape(' '.join((kind.__doc__ or '').split()))}</td></tr>"
        for code, kind in kinds.items()
    )
    return f"<table><tr><th>code</th><th>status</th><th>when</th></tr>{rows}</table>"


def _text(text: str) -> str:
    """Text with code between backquotes."""
    parts = escape(text).split("`")
    return "".join(f"<code>{each}</code>" if at % 2 else each for at, each in enumerate(parts))
