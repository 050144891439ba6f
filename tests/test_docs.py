"""Every example of the documentation is run, and its tables are those of the code.

Blocks marked `python` and `console` are run against a server, here or in `test_docs_output.py` and
`test_docs_spark.py`; `127.0.0.1:9090` stands for its address. Blocks marked `sh` start servers or
build things: their commands are checked to exist.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import pytest
from click.testing import CliRunner

import queueber
from queueber import limits
from queueber.auth.roles import ACTION_MEANINGS, ROLES, Action
from queueber.cli import program
from queueber.cli.commands.serve import serve
from queueber.cli.queue_settings import settings_flags
from queueber.client.arguments.topic_settings import TopicArguments
from queueber.config import OPTIONS
from queueber.db.families import Family
from queueber.db.store.format import FORMAT
from queueber.engine.loads.loads import TRANSITIONS as PHASES
from queueber.engine.loads.part_check import _KNOWN as KNOWN_FAMILIES
from queueber.engine.queue.lifecycle import INVARIANTS, TRANSITIONS
from queueber.engine.queue.sweep import DUTIES
from queueber.engine.topics.sweep import TOPIC_DUTIES
from queueber.errors import WIRE_ERRORS
from queueber.gateway.settings import GatewaySettings
from queueber.gateway.streams import found, headers
from queueber.gateway.streams.live import event_stream
from queueber.jobs.job import RESERVED
from queueber.schema import wire
from queueber.sql.bounds import Bounds
from queueber.sql.settings import CREATED
from queueber.testing import ServerProcess, running_server
from queueber.wire.flow import _HELD_BACK as HELD_BACK
from queueber.wire.flow import State as FlowState
from tests.support.examples import ADDRESS, Examples
from tests.support.warm import warm_programs
from tests.test_docs_output import PAGES as PAGES_WITH_OUTPUT
from tests.test_docs_spark import PAGES as PAGES_OF_SPARK

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMPARED = {*PAGES_WITH_OUTPUT, *PAGES_OF_SPARK}
"""Pages whose examples other tests run, and compare what they print."""
ALONE = [page for page in PAGES if str(page.relative_to(ROOT)) not in COMPARED]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language: str, pages: Iterable[Path]) -> list[object]:
    found: list[object] = []
    for page in pages:
        codes = [code for name, code in BLOCK.findall(page.read_text()) if name == language]
        found += [pytest.param(code, id=f"{page.name}-{at}") for at, code in enumerate(codes)]
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def examples(server: ServerProcess) -> Iterator[Examples]:
    """In a folder of its own: some examples write files."""
    with warm_programs() as programs, TemporaryDirectory() as folder:
        yield Examples(programs, server.address, Path(folder))


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("python", ALONE))
def test_python_example_runs(code: str, examples: Examples) -> None:
    examples.python(code.replace(ADDRESS, examples.address))


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks("console", ALONE))
def test_console_example_runs(code: str, examples: Examples) -> None:
    lines = [line.removeprefix("$ ") for line in code.splitlines() if line.startswith("$ ")]
    assert lines

    examples.shell("\n".join(lines))


@pytest.mark.parametrize("code", blocks("sh", PAGES))
def test_shell_example_names_commands_that_exist(code: str) -> None:
    for line in code.splitlines():
        command, *arguments = line.split("#")[0].split()
        if command == ".":
            assert arguments == [".venv/bin/activate"], line
            continue
        if command == "make":
            asked = ["make", "--dry-run", *arguments]
        else:
            assert Path(command).name == "queueber", line
            flags = [argument for argument in arguments[1:] if argument.startswith("--")]
            told = CliRunner().invoke(program, [arguments[0], "--help"]).stdout
            assert all(flag in told for flag in flags), line
            continue
        assert subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode == 0, (
            line
        )


def test_pages_that_are_linked_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).is_file(), f"{page.name} links {target}"


def rows(page: str) -> list[list[str]]:
    lines = (ROOT / "docs" / page).read_text().splitlines()
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]


def section(page: str, heading: str) -> str:
    """The text below a heading, up to the next one of the same or a higher level."""
    text = (ROOT / "docs" / page).read_text()
    level = len(heading) - len(heading.lstrip("#"))
    _, found, rest = text.partition(f"\n{heading}\n")
    assert found, heading
    return re.split(rf"^#{{1,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def table(page: str, heading: str) -> list[list[str]]:
    """The rows of the only table of a section."""
    lines = [line for line in section(page, heading).splitlines() if line.startswith("|")]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    assert [row[0] for row in cells].count("---") == 1, heading
    return cells[2:]


def test_the_families_are_those_of_the_code() -> None:
    expected = [[family.family_name, family.key_parts, family.value_kind] for family in Family]

    assert table("architecture.md", "## The families") == expected


def test_the_duties_are_those_of_the_code() -> None:
    listed = table("architecture.md", "## Duties")

    assert [row[0] for row in listed] == [duty.name for duty in DUTIES]


def test_the_phases_of_a_load_are_those_of_the_code() -> None:
    expected = [[phase.name, event, after.name] for (phase, event), after in PHASES.items()]

    assert table("architecture.md", "## Load phases") == expected


def test_the_states_of_flow_control_are_those_of_the_code() -> None:
    listed = table("architecture.md", "## Flow control")

    assert [row[0] for row in listed] == [state.name for state in FlowState]
    for state, begins, ends, _ in listed:
        if FlowState[state] in HELD_BACK:
            assert (begins, ends) == tuple(event.name for event in HELD_BACK[FlowState[state]])


def test_the_folders_of_the_tree_are_all_told() -> None:
    told = section("architecture.md", "## The tree")
    root = ROOT / "queueber"

    for package in root.rglob("__init__.py"):
        path = package.parent.relative_to(root)
        if path.parts and path.parts[0] in {"engine", "db", "client"}:
            # The rooms of these are told each; a layer is its rooms.
            assert len(path.parts) == 1 or f"`{path}/`" in told, path
        elif path.parts:
            assert f"`{path.parts[0]}/`" in told, path


WALKS = re.findall(
    r"^### ((?:The road|An?) .*)$",
    (ROOT / "docs" / "architecture.md").read_text(),
    re.MULTILINE,
)


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_names_files_that_exist_and_counts_them(walk: str) -> None:
    text = section("architecture.md", f"### {walk}")
    steps = re.findall(r"^(\d+)\. `([\w/.]+)`: ", text, re.MULTILINE)

    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert [file for _, file in steps if not (ROOT / "queueber" / file).is_file()] == []
    assert len({file for _, file in steps}) == len(steps)
    assert re.search(rf"^{len(steps)} files", text, re.MULTILINE)


def test_the_walks_are_those_of_an_add_a_poll_a_completion_an_expiry_and_a_load() -> None:
    assert len(WALKS) == 6


def test_files_that_the_pages_name_exist() -> None:
    roots = [ROOT, ROOT / "queueber", ROOT / "queueber" / "engine", ROOT / "queueber" / "client"]
    for page in ("architecture.md", "lifecycle.md", "glossary.md"):
        text = (ROOT / "docs" / page).read_text()
        named = re.findall(r"`([\w/]+/[\w/]+\.(?:py|capnp|toml))`", text)
        missing = [name for name in named if not any((root / name).is_file() for root in roots)]
        assert missing == [], page


def test_the_families_of_a_load_are_those_of_the_code() -> None:
    known = {*KNOWN_FAMILIES}

    told = [row[0] for row in rows("protocol.md") if len(row) == 3 and row[0] in known]

    assert sorted(told) == sorted(known)


def test_the_limits_of_loads_are_those_of_the_code() -> None:
    listed = {row[0]: row[1] for row in rows("protocol.md") if len(row) == 2}

    for told, limit in {
        "loads of a queue that are under way": limits.LOADS_MAX,
        "bytes of a load's name, or an attempt's": limits.LOAD_NAME_BYTES_MAX,
        "partitions": limits.PARTITIONS_MAX,
        "rows of a partition": limits.ROWS_MAX,
        "parts of a commit": limits.LOAD_PARTS_MAX,
        "files of a part": limits.LOAD_FILES_MAX,
        "bytes of a file": limits.LOAD_FILE_BYTES_MAX,
        "bytes of one `stageFile": limits.LOAD_CHUNK_BYTES,
        "duplicates in a commit": limits.LOAD_DUPLICATES_MAX,
        "milliseconds of `timeoutMs": limits.LOAD_TIMEOUT_MS_MAX,
    }.items():
        assert listed[told] == f"{limit:,}", told


def test_the_limits_of_topics_are_those_of_the_code() -> None:
    listed = {row[0]: row[1] for row in table("topics.md", "## Limits")}

    assert [*listed.values()] == [
        f"{limit:,}"
        for limit in (
            limits.TOPIC_NAME_BYTES_MAX,
            limits.TOPIC_PARTITIONS_MAX,
            limits.PAYLOAD_BYTES_MAX,
            limits.KEY_BYTES_MAX,
            limits.ATTRIBUTES_MAX,
            limits.ATTRIBUTES_BYTES_MAX,
            limits.DEDUP_ID_BYTES_MAX,
            limits.CONTENT_TYPE_BYTES_MAX,
            limits.TEXT_SEQUENCE_BYTES_MAX,
            limits.PUBLISH_MESSAGES_MAX,
            limits.PUBLISH_TOPICS_MAX,
            limits.READ_ITEMS_MAX,
            limits.GROUPS_MAX,
            limits.GROUP_NAME_BYTES_MAX,
            limits.CREDITS_MAX,
            limits.DELIVERY_MESSAGES_MAX,
            limits.SUBSCRIPTIONS_OF_CONNECTION_MAX,
            limits.FORKS_MAX,
            limits.INHERITED_MAX,
            limits.GROUP_RESET_MAX,
            limits.GROUP_ACK_MAX,
            limits.MANY_MAX,
            limits.RETENTION_MS_MAX // limits.DAY_MS,
            limits.DEDUP_WINDOW_MS_MAX // limits.DAY_MS,
        )
    ]


def test_the_limits_of_streams_are_those_of_the_code() -> None:
    gateway = GatewaySettings()

    assert [row[1] for row in table("streams.md", "## Limits")] == [
        f"{limit:,}"
        for limit in (
            limits.TOPIC_NAME_BYTES_MAX,
            gateway.body_bytes_max,
            limits.PUBLISH_MESSAGES_MAX,
            limits.PAYLOAD_BYTES_MAX,
            found.ANSWER_BYTES,
            found.EVENT_BYTES,
            gateway.stream_wait_ms,
            int(max(event_stream._CONNECTION_SECONDS)),
            gateway.answers_bytes_max,
            limits.CONTENT_TYPE_BYTES_MAX,
            limits.FORKS_MAX,
            headers._NUMBER_MAX,
        )
    ]


def test_the_limits_of_sql_are_those_of_the_code() -> None:
    bounds = Bounds()

    assert [row[1] for row in table("sql.md", "## Bounds")] == [
        f"{limit:,.0f}"
        for limit in (
            bounds.chars_max,
            bounds.statements_max,
            bounds.params_max,
            limits.SQL_LISTS_MAX,
            bounds.rows_max,
            bounds.answer_bytes_max,
            bounds.seconds_max,
        )
    ]


def test_every_setting_of_a_topic_can_be_written_in_sql() -> None:
    told = section("sql.md", "### Settings")

    assert {*TopicArguments.__annotations__} <= {*CREATED.settings}
    assert [name for name in CREATED.settings if f"`{name}`" not in told] == []


def test_the_settings_of_topics_are_all_told() -> None:
    told = section("topics.md", "## What is kept, and for how long")

    for setting in TopicArguments.__annotations__:
        assert f"`{setting}`" in told, setting


def test_the_duties_of_topics_are_those_of_the_code() -> None:
    listed = [row for row in rows("architecture.md") if len(row) == 3]
    start = next(at for at, row in enumerate(listed) if row[0] == "duty of a topic")

    names = [row[0] for row in listed[start + 2 : start + 2 + len(TOPIC_DUTIES)]]
    assert names == [duty.name for duty in TOPIC_DUTIES]


@pytest.mark.parametrize("interface", ["Topic", "Consumer", "Subscription"])
def test_the_methods_of_topics_are_told(interface: str) -> None:
    told = section("protocol.md", "## Topics")

    for method in getattr(wire, interface).schema.method_names:
        assert re.search(rf"`{method}[`(]", told), method


def test_the_format_number_is_that_of_the_code() -> None:
    text = (ROOT / "docs" / "storage-format.md").read_text()

    assert f"reads and writes format {FORMAT} and refuses others" in text


def test_the_methods_of_loads_are_told() -> None:
    text = (ROOT / "docs" / "protocol.md").read_text()
    loads = {method for method in wire.Queue.schema.method_names if "Load" in method}

    assert len(loads) == 4
    for method in (*loads, "stageFile", "finishPart"):
        assert f"`{method}" in text


def test_the_states_and_invariants_are_those_of_the_code() -> None:
    listed = rows("lifecycle.md")

    states = [
        [state.value, operation, target.value] for (state, operation), target in TRANSITIONS.items()
    ]
    assert [row for row in listed if len(row) == 3 and row[0] not in {"state", "---"}] == states
    assert {row[0]: row[1] for row in listed if row[0].startswith("I")} == INVARIANTS


def test_the_options_are_those_of_the_code() -> None:
    listed = {row[0]: row[1:] for row in rows("operations.md") if len(row) == 3}

    for option in OPTIONS:
        default = "" if option.default is None else str(option.default)
        assert listed[option.name] == [default, option.help]


def test_every_option_of_serve_is_told() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    in_the_table = {option.flag for option in OPTIONS}

    assert {flag for flag in flags_of(serve) if f"`{flag}" not in text} <= in_the_table


def test_every_setting_of_a_queue_is_in_the_table_of_its_flags() -> None:
    told = " ".join(row[0] for row in table("cli.md", "## Settings of a queue"))

    assert sorted(re.findall(r"--[\w-]+", told)) == sorted(
        flags_of(settings_flags(click.Command("c")))
    )


def flags_of(command: click.Command) -> list[str]:
    return [flag for option in command.params for flag in (*option.opts, *option.secondary_opts)]


def test_every_option_of_enqueue_is_told() -> None:
    told = " ".join(row[0] for row in table("jobs.md", "## Enqueueing"))
    of_callbacks = {"of"}

    assert {*re.findall(r"\w+", told)} == {*RESERVED} - of_callbacks


def test_every_extra_is_told() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for_developers = {"airflow", "audit", "bench", "dev", "docs"}

    listed = [row[0] for row in table("index.md", "## Install it")]

    assert {*listed} == {f"queueber[{extra}]" for extra in project["optional-dependencies"]} - {
        f"queueber[{extra}]" for extra in for_developers
    }


def test_the_roles_and_actions_are_those_of_the_code() -> None:
    text = section("security.md", "## Roles")
    heading = next(line for line in text.splitlines() if line.startswith("| role "))
    actions = [cell.strip() for cell in heading.strip("|").split("|")][1:]
    listed = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `") and line.count("|") > 5
    ]

    assert actions == [each.value for each in Action]
    assert listed == [
        [role, *("yes" if each in allowed else "" for each in Action)]
        for role, allowed in ROLES.items()
    ]
    meanings = table("security.md", "### Actions")
    assert meanings == [[each.value, ACTION_MEANINGS[each]] for each in Action]


def test_every_error_code_is_told() -> None:
    raised = [code for code, error in WIRE_ERRORS.items() if error.__name__ in queueber.__all__]
    for page, codes in {"client.md": raised, "protocol.md": list(WIRE_ERRORS)}.items():
        text = (ROOT / "docs" / page).read_text()
        assert [code for code in codes if f"`{code}`" not in text] == [], page


def test_the_exit_codes_are_those_of_the_command() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "queueber", "--help"], capture_output=True, text=True, check=True
    ).stdout
    page = (ROOT / "docs" / "cli.md").read_text()

    for code, meaning in re.findall(r"^    (\d+) +(.*)$", told, re.MULTILINE):
        if code != "130":
            assert f"| {code} | {meaning} |" in page


def test_the_tests_that_guarantees_name_exist() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / "spark.md").read_text())

    assert len(named) > 20
    assert [name for name in named if f"def {name}(" not in tests] == []
