"""A server that speaks as much of S3 as a backup needs: objects in memory, on a free port.

The usual one for tests, moto, cannot be installed beside the version of python-dateutil that
pandas is tested with here.
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape


class Bucket:
    """The objects, and what the server does wrong if a test says so."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.changed_at: dict[str, float] = {}
        self.refuses = False
        self.puts = 0
        self.address = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""

    def _asked(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        _, _bucket, *key = unquote(parts.path).split("/", 2)
        return key[0] if key else "", parse_qs(parts.query, keep_blank_values=True)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self) -> None:
        self._answer(404, b"<Error><Code>NoSuchKey</Code><Message>none</Message></Error>")

    def do_PUT(self) -> None:
        key, query = self._asked()
        body = self._body()
        self.bucket.puts += 1
        if self.bucket.refuses:
            self._answer(403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
        elif "partNumber" in query:
            self.bucket.uploads[query["uploadId"][0]][int(query["partNumber"][0])] = body
            self._answer(200, ETag=_etag(body))
        elif self.headers.get("If-None-Match") == "*" and key in self.bucket.objects:
            self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        else:
            self._store(key, body)
            self._answer(200, ETag=_etag(body))

    def _store(self, key: str, body: bytes) -> None:
        self.bucket.objects[key] = body
        self.bucket.changed_at[key] = time.time()

    def do_POST(self) -> None:
        key, query = self._asked()
        body = self._body()
        if "uploads" in query:
            upload = f"upload-{len(self.bucket.uploads)}"
            self.bucket.uploads[upload] = {}
            told = f"<Key>{escape(key)}</Key><UploadId>{upload}</UploadId>"
            name = "InitiateMultipartUploadResult"
            self._answer(200, f"<{name}><Bucket>b</Bucket>{told}</{name}>".encode())
        elif "uploadId" in query:
            parts = self.bucket.uploads.pop(query["uploadId"][0])
            self._store(key, b"".join(parts[number] for number in sorted(parts)))
            told = f"<Key>{escape(key)}</Key><ETag>{_etag(self.bucket.objects[key])}</ETag>"
            name = "CompleteMultipartUploadResult"
            self._answer(200, f"<{name}>{told}</{name}>".encode())
        elif "delete" in query:
            keys = [part.partition("</Key>")[0] for part in body.decode().split("<Key>")[1:]]
            for each in keys:
                self.bucket.objects.pop(unescape(each), None)
            told = "".join(f"<Deleted><Key>{each}</Key></Deleted>" for each in keys)
            self._answer(200, f"<DeleteResult>{told}</DeleteResult>".encode())

    def do_GET(self) -> None:
        key, query = self._asked()
        if "list-type" in query:
            self._list(query.get("prefix", [""])[0])
        elif key not in self.bucket.objects:
            self._missing()
        else:
            data = self.bucket.objects[key]
            changed = formatdate(self.bucket.changed_at[key], usegmt=True)
            self._answer(
                200, data, ETag=_etag(data), Last_Modified=changed, Content_Length=str(len(data))
            )

    do_HEAD = do_GET  # noqa: N815  the library's name

    def do_DELETE(self) -> None:
        key, _ = self._asked()
        self.bucket.objects.pop(key, None)
        self._answer(204)

    def _list(self, prefix: str) -> None:
        found = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z"
            f"</LastModified><ETag>{_etag(data)}</ETag><Size>{len(data)}</Size></Contents>"
            for key, data in sorted(self.bucket.objects.items())
            if key.startswith(prefix)
        )
        told = f"<Name>b</Name><IsTruncated>false</IsTruncated>{found}"
        self._answer(200, f"<ListBucketResult>{told}</ListBucketResult>".encode())


def _etag(data: bytes) -> str:
    return f'"{md5(data, usedforsecurity=False).hexdigest()}"'


@contextlib.contextmanager
def s3_server() -> Iterator[Bucket]:
    bucket = Bucket()
    handler = type("Handler", (_Handler,), {"bucket": bucket})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    bucket.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield bucket
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def s3_environment(bucket: Bucket) -> dict[str, str]:
    """The variables with which a process finds it."""
    return {
        "AWS_ENDPOINT_URL": bucket.address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": "tests",
    }
