"""Write the blocking classes of the client from the awaited ones.

    python scripts/generate_blocking.py            writes queueber/client/api/queue.py and others
    python scripts/generate_blocking.py --check    says which of them are not current, and fails

`async_queue.py` becomes `queue.py`: `async` and `await` go, `AsyncQueue` becomes `Queue`, and
`wait_for_async` becomes `wait_for`. Docstrings and comments are kept with the same replacements.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

API = Path(__file__).parent.parent / "queueber" / "client" / "api"
PREFIX = "async_"

NAMES = {
    "aclose": "close",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "StopAsyncIteration": "StopIteration",
    "_add_soon": "add_soon",  # programs that await have tasks instead
    "_publish_soon": "publish_soon",
}
"""What is not `AsyncName`, `name_async` or `async_name`."""

ONLY_AWAITED = {"__await__"}
"""Methods that the blocking classes do not have."""

TIDY = "I,F401,RUF100,UP028"
"""Rules of the linter whose fixes the result needs: imports in order and used, `yield from`."""


def blocking_name(name: str) -> str:
    name = NAMES.get(name, name)
    return name.removeprefix("Async").removeprefix(PREFIX).removesuffix("_async")


def blocking_text(text: str) -> str:
    """The same replacements in a docstring, a comment or a message."""
    text = re.sub(r"\basync (?=with|for)", "", text)
    text = text.replace("an `with`", "a `with`")
    return re.sub(r"\w+", lambda word: blocking_name(word[0]), text)


def blocking_source(source: str) -> str:
    """The source of the blocking classes, not formatted yet."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name in ONLY_AWAITED:
            assert node.end_lineno is not None
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    source = "".join(lines)
    written: list[str] = []
    at = (1, 0)
    rows = source.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in (tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            written += [_between(rows, at, token.start), _blocking_token(token)]
            at = token.end
    return re.sub(r"\b(async|await)\x00 ", "", "".join(written))


def _blocking_token(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return (
            f"{token.string}\x00"
            if token.string in ("async", "await")
            else blocking_name(token.string)
        )
    if token.type in (tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", -1)):
        return blocking_text(token.string)
    return token.string


def _between(rows: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The white space between two tokens."""
    if start[0] == end[0]:
        return rows[start[0] - 1][start[1] : end[1]] if start[1] < end[1] else ""
    middle = "".join(rows[start[0] : end[0] - 1])
    return rows[start[0] - 1][start[1] :] + middle + rows[end[0] - 1][: end[1]]


def generated(path: Path) -> str:
    """What the blocking file of an awaited one must hold."""
    header = (
        f"# Generated from {path.name} by scripts/generate_blocking.py; edit that file instead.\n"
    )
    text = header + blocking_source(path.read_text())
    target = str(blocking_path(path))
    for command in (
        ["check", "--quiet", "--select", TIDY, "--fix-only", "--unsafe-fixes"],
        ["format", "--quiet"],
    ):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", target, "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def blocking_path(path: Path) -> Path:
    return path.with_name(path.name.removeprefix(PREFIX))


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    stale = []
    for path in sorted(API.glob(f"{PREFIX}*.py")):
        target, text = blocking_path(path), generated(path)
        if not target.exists() or target.read_text() != text:
            stale.append(target)
            if not is_check:
                target.write_text(text)
    for target in stale:
        sys.stdout.write(f"{target.name}: {'not current' if is_check else 'written'}\n")
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
