"""docs/limits.md is what `limits.py` says."""

from pathlib import Path

import pytest

from queueber import limits
from scripts import generate_limits


def test_the_page_is_current() -> None:
    """If it is not: run `scripts/generate_limits.py`, and commit what it writes."""
    assert generate_limits.PAGE.read_text() == generate_limits.page()


def test_every_limit_is_told_once() -> None:
    told = [
        name
        for section in generate_limits.sections(generate_limits.SOURCE.read_text())
        for group in section.groups
        for name in group.names
    ]
    known = {name for name, value in vars(limits).items() if isinstance(value, int | float)}

    assert len(told) == len(set(told))
    assert set(told) == {name for name in known if name.isupper()} - generate_limits.UNITS


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("QUEUES_MAX", "1,000"),
        ("KEY_BYTES_MAX", "512 B"),
        ("ERROR_BYTES_MAX", "16 KiB"),
        ("LEASE_MS_MAX", "7 d"),
        ("SQL_SECONDS_MAX", "30 s"),
        ("LOOKAHEAD_RETRY_MS", "0.04 s"),
    ],
)
def test_a_value_has_the_unit_of_its_name(name: str, shown: str) -> None:
    assert generate_limits.shown(name) == shown


def test_a_text_is_the_reason_of_the_limit_above_it() -> None:
    source = "# --- One ---\nA_MAX = 1\nB_MAX = 2\n'''Both,\nfor a\nreason.'''\n\nC_MAX = 3\n"

    (section,) = generate_limits.sections(source)

    assert section.title == "One"
    assert [(group.names, group.reason) for group in section.groups] == [
        (["A_MAX", "B_MAX"], "Both, for a reason."),
        (["C_MAX"], ""),
    ]


def test_check_fails_when_the_page_is_not_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate_limits, "PAGE", tmp_path / "limits.md")
    monkeypatch.setattr("sys.argv", ["generate_limits.py", "--check"])

    assert generate_limits.main() == 1
    assert capsys.readouterr().out == "limits.md: not current; run scripts/generate_limits.py\n"
    assert not (tmp_path / "limits.md").exists()

    monkeypatch.setattr("sys.argv", ["generate_limits.py"])
    assert generate_limits.main() == 0
    monkeypatch.setattr("sys.argv", ["generate_limits.py", "--check"])
    assert generate_limits.main() == 0
