"""The static files of the dashboard, with a strict content security policy.

The address of every file has a digest of all files in it. So a browser may keep files for good, and
still loads new ones after an upgrade. Only the page itself is asked for again each time.
"""

import hashlib
from pathlib import Path

from starlette.responses import Response

from queueber.gateway.calls import Call
from queueber.gateway.routes import NoQuery, Route

FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Nothing can be turned into HTML or script, not even by a mistake of ours.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_FOR_GOOD = "public, max-age=31536000, immutable"


def _files() -> dict[str, bytes]:
    """By path below the folder. They are few and small, so all are kept in memory."""
    found = sorted(path for path in FOLDER.rglob("*") if path.suffix in _TYPES)
    return {str(path.relative_to(FOLDER)): path.read_bytes() for path in found}


FILES = _files()
VERSION = hashlib.sha256(b"".join(FILES.values())).hexdigest()[:16]


def _page() -> bytes:
    return FILES["index.html"].replace(b"VERSION", VERSION.encode())


async def show_page(call: Call[NoQuery, None]) -> Response:
    etag = f'"{VERSION}"'
    headers = {**_HEADERS, "etag": etag, "cache-control": "no-cache"}
    if call.headers.get(b"if-none-match") == etag.encode():
        return Response(status_code=304, headers=headers)
    return Response(_page(), headers=headers, media_type=_TYPES[".html"])


def _file_route(name: str) -> Route:
    kind = _TYPES[Path(name).suffix]

    async def show_file(call: Call[NoQuery, None]) -> Response:
        headers = {**_HEADERS, "cache-control": _FOR_GOOD}
        return Response(FILES[name], headers=headers, media_type=kind)

    return Route(
        "GET", f"/dashboard/{VERSION}/{name}", show_file, f"The file {name}", "dashboard",
        answer_type=kind.partition(";")[0], uses_client=False, is_shown=False,
    )  # fmt: skip


ROUTES = (
    Route(
        "GET", "/", show_page, "The dashboard", "dashboard",
        answer_type="text/html", uses_client=False, is_shown=False,
    ),
    *(_file_route(name) for name in FILES if name != "index.html"),
)  # fmt: skip
