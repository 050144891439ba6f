"""What must not be in the tree: ways to run what was sent to us, and secrets."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.test_architecture import ROOT, SOURCES, imported, tree_of

CODE_IN_BYTES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
"""What these read can run code. Spark pickles on its own account, between its own processes."""
CODE_IN_TEXT = {"eval", "exec", "compile", "__import__"}

SECRETS = {
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a key of AWS": r"\b(AKIA|ASIA)[0-9A-Z]{16}\b",
    "a token of GitHub": r"\bgh[pousr]_[0-9A-Za-z]{36}",
    "a token of Slack": r"\bxox[abprs]-[0-9A-Za-z-]{10}",
    "a token of a package index": r"\bpypi-[0-9A-Za-z_-]{50}",
    "a JSON web token": r"\beyJ[0-9A-Za-z_-]{16,}\.eyJ[0-9A-Za-z_-]{16,}\.",
    "a password in an address": r"[a-z]+://[^\s/:@{}'\"<>]+:[^\s/@{}'\"<>$]+@",
    "a password or key as text": (
        r"(?i)\b\w*(password|passwd|secret|api_?key|access_?key)\w*['\"]?\s*[:=]\s*"
        r"['\"][^'\"\s{}]{6,}['\"]"
    ),
}


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_nothing_that_was_sent_to_us_is_run(source: Path) -> None:
    called = {
        node.func.id
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not imported(source) & (CODE_IN_BYTES | {"yaml"})
    assert not called & CODE_IN_TEXT


def texts() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file() and path.suffix != ".png"]


def secrets_in(text: str) -> list[str]:
    return [what for what, pattern in SECRETS.items() if re.search(pattern, text)]


def test_no_secret_is_in_the_tree() -> None:
    found = {
        str(path.relative_to(ROOT)): what
        for path in texts()
        if path != Path(__file__) and (what := secrets_in(path.read_text(errors="replace")))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----", "a private key"),
        ("id = AKIAABCDEFGHIJKLMNOP", "a key of AWS"),
        ("ghp_" + "a1" * 18, "a token of GitHub"),
        ("postgres://me:hunter22@db/x", "a password in an address"),
        ('password = "hunter22"', "a password or key as text"),
        ("'api_key': 'abcdef012345'", "a password or key as text"),
    ],
)
def test_secrets_are_known_when_they_are_seen(text: str, what: str) -> None:
    assert secrets_in(text) == [what]
