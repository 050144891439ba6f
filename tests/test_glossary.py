"""The glossary has the words that are ours, and the private words of the past do not come back."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
SOURCES = sorted((ROOT / "queueber").rglob("*.py"))

NOT_IN_NAMES = {
    "aside": "background thread",
    "company": "held together",
    "complaint": "failure log",
    "fresh": "recent contents",
    "holding": "work item",
    "intake": "poller",
    "lane": "batcher",
    "numbering": "numbered adds",
    "outbox": "unread answers",
    "outlet": "reporter",
    "reminder": "retention",
    "suspect": "quarantined",
    "tally": "counters",
    "telling": "outcome",
    "asking": "confirm",
}
"""Words that nobody outside knows, and what is said instead."""

NOT_MODULES = {
    "charge": "attempts",
    "child": "worker_process",
    "choice": "selection",
    "contact": "server_health",
    "core": "connection",
    "described": "jsonl_items",
    "finding": "must_exist, a flag of the call",
    "gate": "admission",
    "hosts": "on_thread, on_loop",
    "room": "quota",
    "signals": "wakeups",
    "turns": "fair_turns",
    "watching": "progress",
    "common": "the name of what is in it",
    "helpers": "the name of what is in it",
    "manager": "the name of what is in it",
    "utils": "the name of what is in it",
}
"""Words that say too little as the name of a file."""


def glossary_words() -> list[str]:
    rows = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    cells = [row.strip("|").split("|")[0] for row in rows]
    words = [word.strip(" `") for cell in cells for word in cell.split(",")]
    return [word for word in words if word not in {"word", "---"}]


def words_of(name: str) -> set[str]:
    """The words of a name in snake case or camel case, in the singular."""
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    return words | {word.removesuffix("s") for word in words}


def names_in(tree: ast.AST) -> set[str]:
    """What a file defines: classes, functions, arguments, variables and attributes."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


@pytest.fixture(scope="module")
def text() -> str:
    """All of the code and the pages, without the glossary."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    files = [*SOURCES, *(page for page in pages if page != GLOSSARY)]
    return "\n".join(file.read_text() for file in files)


@pytest.mark.parametrize("word", glossary_words())
def test_every_word_of_the_glossary_is_used(word: str, text: str) -> None:
    spelt = r"[\s_-]*".join(re.escape(part) for part in re.split(r"[\s_-]", word))

    assert re.search(rf"(?<![A-Za-z]){spelt}", text, re.IGNORECASE), word


def test_no_word_is_explained_twice() -> None:
    words = glossary_words()

    assert len(words) > 80
    assert sorted(set(words)) == sorted(words)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_private_word_of_the_past_names_anything(source: Path) -> None:
    names = {source.stem, source.parent.name, *names_in(ast.parse(source.read_text()))}

    found = {(name, word) for name in names for word in words_of(name) & set(NOT_IN_NAMES)}

    assert found == set(), {word: NOT_IN_NAMES[word] for _, word in found}


def test_no_file_or_folder_has_a_name_that_says_too_little() -> None:
    paths = [source.relative_to(ROOT / "queueber").with_suffix("") for source in SOURCES]

    found = {part for path in paths for part in path.parts} & set(NOT_MODULES)

    assert found == set(), {name: NOT_MODULES[name] for name in found}


@pytest.mark.parametrize(
    ("name", "word"),
    [("Company", "company"), ("is_suspect", "suspect"), ("_SuspectItems", "suspect"),
     ("lanes", "lane"), ("TellingOutcome", "telling"), ("complaints", "complaint")],
)  # fmt: skip
def test_a_private_word_is_found_however_it_is_written(name: str, word: str) -> None:
    assert word in words_of(name) & set(NOT_IN_NAMES)


def test_all_names_that_a_file_defines_are_looked_at() -> None:
    tree = ast.parse(
        "class Company:\n    def f(self, suspect): self.lane = fresh = suspect\nasync def g(): ..."
    )

    assert names_in(tree) == {"Company", "f", "self", "suspect", "lane", "fresh", "g"}
