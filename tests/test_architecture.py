"""The rules of the tree: who imports whom, one file an operation, no file without end."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

import queueber
from queueber.db.families import QUEUE_FAMILIES
from queueber.engine.integrity import (
    check_agenda,
    check_blocks,
    check_callbacks,
    check_caps,
    check_groups,
    check_items,
    check_options,
    check_routes,
    check_schedules,
    check_store,
    check_topics,
    check_waits,
    message_logs,
    records,
)
from queueber.engine.integrity.owners import KEY_WIDTHS
from queueber.engine.queue.lifecycle import INVARIANTS, TRANSITIONS
from queueber.schema import wire
from queueber.service.callbacks import Callbacks
from queueber.service.find import Find
from queueber.service.items import Items
from queueber.service.lease_holders import LeaseHolders
from queueber.service.loads import Loads
from queueber.service.polls import Polls
from queueber.service.queues import Queues
from queueber.service.results import Results
from queueber.service.snapshots import Snapshots

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path.relative_to(ROOT) for path in (ROOT / "queueber").rglob("*.py"))
TESTS = ROOT / "tests"

LINES_MAX = 400
TABLES = {"limits.py"}
"""Lists of values, which are read line by line."""
TESTED_AS = {
    "db/records/dead_letters": "db/records/test_run_codecs",
    "engine/flow/flow": "engine/flow/test_callbacks",
    "engine/records/callbacks": "engine/flow/test_callbacks",
    "engine/records/waits": "engine/queue/test_let_go",
    "engine/queue/after": "engine/queue/test_let_go",
    "engine/integrity/check_shared": "engine/integrity/test_check_groups",
    "engine/integrity/lost_records": "engine/integrity/test_rebuild_topics",
    "engine/integrity/rebuild_agenda": "engine/integrity/test_rebuild_topics",
    "engine/integrity/rebuild_groups": "engine/integrity/test_rebuild_topics",
    "engine/integrity/rebuild_messages": "engine/integrity/test_rebuild_topics",
    "engine/queue/changes": "engine/routes/test_events",
    "engine/queue/scheduled": "engine/schedules/test_queue_schedules",
    "engine/queue/settle": "engine/topics/test_together",
    "engine/routes/circles": "engine/routes/test_routes",
    "engine/routes/queue_routes": "engine/routes/test_events",
    "engine/routes/route": "engine/routes/test_routes",
    "engine/topics/append": "engine/topics/test_publish",
    "engine/topics/topic_state": "engine/topics/test_read",
    "engine/topics/sequences": "engine/topics/test_publish",
    "engine/queue/fronts": "engine/queue/test_selection",
    "engine/topics/group": "engine/topics/test_groups",
    "engine/topics/group_entries": "engine/topics/test_shared_groups",
    "engine/caps/key_changes": "engine/caps/test_key_rates",
    "engine/caps/parks": "engine/caps/test_cap_keys",
    "engine/caps/review": "engine/caps/test_key_rates",
    "engine/topics/group_fronts": "engine/topics/test_shared_groups",
    "db/records/cutting": "db/records/test_runs",
    "db/store/options": "db/store/test_rocks",
    "db/store/snapshot": "db/store/test_contract",
    "engine/loads/staging": "engine/loads/test_loads",
    "engine/log": "engine/log/test_log",
    "engine/queue/places": "engine/queue/test_cancel",
    "engine/queue/queue_state": "engine/queue/test_queue_state",
    "engine/queue/ready_index": "engine/kernel/test_transaction",
    "service/consumers": "service/test_subscriptions",
    "service/durable_ends": "service/test_topics",
    "service/groups": "service/test_topic_groups",
    "service/items": "service/test_outcomes",
    "service/lease_feed": "service/test_subscriptions",
    "service/log_feed": "service/test_subscriptions",
    "service/polls": "service/test_waiting_polls",
    "service/publish": "service/test_topics",
    "service/queues": "service/test_service",
    "service/reads": "service/test_topics",
    "service/result_feed": "rpc/test_results_topic",
    "service/result_messages": "rpc/test_results_topic",
    "service/result_topics": "rpc/test_results_topic",
    "service/results": "service/test_read_results",
    "service/routes": "client/api/test_sources",
    "service/schemas": "client/api/test_schemas",
    "service/validate/routes": "client/api/test_sources",
    "service/shell": "service/test_durability",
    "service/subscription": "service/test_subscriptions",
    "service/together": "rpc/test_together",
    "service/topic_handle": "service/test_topics",
    "service/waiting": "service/test_read_results_waiting",
}
"""Modules whose tests are named by what a caller sees: both below their own root."""
WITHOUT_LOGIC = {"service/loop"}
NOUNS = (Items, Polls, Loads, Results, Callbacks, Snapshots, Queues, LeaseHolders, Find)
CHECKERS = (
    check_store,
    check_blocks,
    check_items,
    records,
    check_topics,
    check_agenda,
    check_groups,
    check_routes,
    check_schedules,
    check_callbacks,
    check_waits,
    check_caps,
    check_options,
    message_logs,
)

DOORS: dict[str, tuple[str, ...]] = {
    "rocksdict": (
        "queueber/db/original.py",
        "queueber/db/store/rocks.py",
        "queueber/db/store/properties.py",
        "queueber/db/store/snapshot.py",
        "queueber/db/store/options.py",
        "queueber/db/recovery/opening.py",
        "queueber/db/recovery/salvage.py",
        "queueber/db/upgrade/stores.py",
        "queueber/db/bulk/staged_files.py",
    ),
    "capnp": (
        "queueber/schema/__init__.py",
        "queueber/rpc/",
        "queueber/client/",
        "queueber/wire/stream.py",
    ),
    "asyncio": (
        "queueber/rpc/kj_bridge.py",
        "queueber/rpc/server.py",
        "queueber/client/",
        "queueber/worker/",
        "queueber/gateway/",
        "queueber/sql/",
        "queueber/testing/",
        "queueber/wire/stream.py",
    ),
    "lark": ("queueber/filters/", "queueber/sql/", "queueber/cli/sql/completion.py"),
    "prompt_toolkit": ("queueber/cli/sql/",),
    "starlette": ("queueber/gateway/",),
    "uvicorn": ("queueber/gateway/server.py", "queueber/gateway/protocol.py"),
    "httptools": ("queueber/gateway/protocol.py",),
    "msgspec": ("queueber/gateway/", "queueber/jobs/"),
    "jsonschema_rs": ("queueber/gateway/streams/extensions/schemas/compiled.py",),
    "h11": ("queueber/gateway/streams/subscriptions/webhooks/post.py",),
    "cryptography": (
        "queueber/gateway/streams/subscriptions/webhooks/signing.py",
        "queueber/auth/",
    ),
    "trio": (
        "queueber/app.py",
        "queueber/beside.py",
        "queueber/rpc/kj_bridge.py",
        "queueber/sweeper/",
        "queueber/client/",
        "queueber/worker/handlers/trio_runner.py",
        "queueber/testing/",
    ),
    "pyspark": ("queueber/spark/",),
    "pyarrow": ("queueber/spark/", "queueber/tables/", "queueber/sql/select/"),
    "duckdb": ("queueber/sql/select/engine/",),
    "sqlglot": ("queueber/sql/select/engine/",),
    "py4j": ("queueber/spark/jobs/faults.py",),
    "opentelemetry": (
        "queueber/client/arguments/traces.py",
        "queueber/worker/handlers/spans.py",
        "queueber/worker/handlers/handler_metrics.py",
    ),
    "multiprocessing": ("queueber/worker/processes/",),
    "celery": ("queueber/celery/",),
    "kombu": ("queueber/celery/",),
    "obstore": ("queueber/backup/bucket.py",),
    "time": ("queueber/clock.py", "queueber/testing/", "queueber/spark/"),
}
"""Where a library may be imported: files, and folders with all that is in them."""


def tree_of(source: Path) -> ast.Module:
    return ast.parse((ROOT / source).read_text())


@functools.cache
def imported(source: Path) -> set[str]:
    """The top-level packages that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


def modules_of(folder: str) -> set[str]:
    """All modules of a folder and its rooms, as paths below `queueber/` without a suffix."""
    root = ROOT / "queueber"
    found = (path for path in (root / folder).rglob("*.py") if path.stem != "__init__")
    return {str(path.relative_to(root).with_suffix("")) for path in found}


# --- imports --------------------------------------------------------------------------------------


def test_imports_keep_the_contracts() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-logo"]

    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "0 broken" in checked.stdout


@pytest.mark.parametrize("library", DOORS)
def test_library_is_imported_only_where_it_may_be(library: str) -> None:
    importers = [str(source) for source in SOURCES if library in imported(source)]

    assert importers
    assert [each for each in importers if not each.startswith(DOORS[library])] == []


BLOCKING = """
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "rocksdict":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import queueber
import queueber.client
for module in pkgutil.walk_packages(queueber.client.__path__, "queueber.client."):
    importlib.import_module(module.name)
for name in queueber.__all__:
    getattr(queueber, name)
server = ("queueber.db", "queueber.engine", "queueber.service", "queueber.rpc")
print([name for name in sys.modules if name.startswith(server)])
try:
    importlib.import_module("queueber.db.store.rocks")
except ModuleNotFoundError:
    print("blocked")
"""


def test_client_needs_no_rocksdb_and_nothing_of_the_server() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", BLOCKING], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["[]", "blocked"]


def test_public_names_are_all_there() -> None:
    assert sorted(queueber.__all__) == list(queueber.__all__)
    assert all(hasattr(queueber, name) for name in queueber.__all__)
    assert set(queueber.__all__) <= set(dir(queueber))
    assert not hasattr(queueber, "Wroker")


def test_a_caller_imports_jobs_and_workers_when_it_asks_for_them() -> None:
    program = """
import sys, queueber
def late():
    return sorted({"queueber.jobs.app", "queueber.worker.worker"} & set(sys.modules))
print(late(), queueber.App.__name__, late(), queueber.App is queueber.jobs.app.App)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "[] App ['queueber.jobs.app', 'queueber.worker.worker'] True\n"


def test_a_gateway_starts_without_what_few_requests_need() -> None:
    program = """
import sys
import queueber.gateway.processes, queueber.gateway.grpc.server
late = {"lark", "cryptography", "h11", "queueber.sql.execute", "queueber.worker.worker"}
print(sorted(late & set(sys.modules)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert ran.stdout == "[]\n"


# --- one operation, one word, one file ------------------------------------------------------------


def test_every_operation_of_an_item_has_a_file_a_function_and_a_test() -> None:
    operations = {operation.partition(",")[0] for _, operation in TRANSITIONS} | {"add", "sweep"}

    for operation in operations:
        tree = tree_of(Path("queueber/engine/queue") / f"{operation}.py")
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert operation in functions
        assert (TESTS / "engine" / "queue" / f"test_{operation}.py").is_file()


def test_every_method_of_a_queue_on_the_wire_has_its_word_in_engine_and_service() -> None:
    methods = set(wire.Queue.schema.method_names)
    bulk = {"removeMany": "remove", "extendMany": "extend", "pollMany": "poll"}
    elsewhere = {
        "stats": "stats",
        "receipt": "receipt",
        "waitBatch": "wait_for_batch",
        "readResults": "read_results",
        "ackResults": "ack_results",
        "dropReader": "drop_reader",
        "listReaders": "results_stats",
        "resume": "resume",
        "withdrawPoll": "withdraw_poll",
        "openSnapshot": "open_snapshot",
        "scanSnapshot": "scan_snapshot",
        "closeSnapshot": "close_snapshot",
        "splitSnapshot": "split_snapshot",
        "beginLoad": "begin_load",
        "stageFile": "stage_file",
        "finishPart": "finish_part",
        "commitLoad": "commit_load",
        "abortLoad": "abort_load",
        "listLoads": "list_loads",
        "listLeases": "list_leases",
        "listBatches": "list_batches",
        "forgetBatch": "forget_batch",
        "forgetBatches": "forget_batches",
        "whenComplete": "when_complete",
        "callback": "describe_callback",
        "findItem": "find_item",
        "cancelKey": "cancel_key",
        "cancelBatch": "cancel_batch",
    }

    operations = {bulk.get(method, method) for method in methods - set(elsewhere)}

    assert {f"engine/queue/{operation}" for operation in operations} <= modules_of("engine")
    for word in [*operations, *elsewhere.values()]:
        assert sum(hasattr(noun, word) for noun in NOUNS) == 1, word


def test_nothing_in_the_service_inherits_from_another_part_of_it() -> None:
    for module in modules_of("service"):
        tree = tree_of(Path("queueber") / f"{module}.py")
        bases = {
            base.id
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for base in node.bases
            if isinstance(base, ast.Name)
        }
        assert bases <= {"Protocol"}, module


@pytest.mark.parametrize("folder", ["db", "engine", "service", "sweeper"])
def test_every_module_has_its_tests_where_it_has_its_own_place(folder: str) -> None:
    for module in modules_of(folder) - WITHOUT_LOGIC:
        path = Path(module)
        tests = TESTED_AS.get(module, str(path.with_name(f"test_{path.name}")))
        assert (TESTS / f"{tests}.py").is_file(), module


# --- rules that are told in one place and kept in another -----------------------------------------


def test_only_the_transaction_writes_to_the_store() -> None:
    """`engine/integrity` repairs stores that no server uses, and is not the live engine."""
    live = [
        source
        for source in SOURCES
        if source.is_relative_to("queueber/engine")
        and not source.is_relative_to("queueber/engine/integrity")
    ]

    writes = [
        f"{source}: {ast.unparse(node)}"
        for source in live
        for node in ast.walk(tree_of(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "write"
    ]

    assert writes == ["queueber/engine/kernel/transaction.py: self.store.write(batch)"]


def test_every_invariant_is_checked() -> None:
    checkers = [Path(str(module.__file__)).read_text() for module in CHECKERS]

    assert [rule for rule in INVARIANTS if not any(f'"{rule}"' in each for each in checkers)] == []


def test_every_family_of_a_queue_has_the_width_of_its_keys() -> None:
    assert set(KEY_WIDTHS) >= set(QUEUE_FAMILIES)


@pytest.mark.parametrize("folder", ["engine", "db"])
def test_engine_and_store_are_synchronous(folder: str) -> None:
    waits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)

    found = [
        str(source)
        for source in SOURCES
        if source.is_relative_to(f"queueber/{folder}")
        and any(isinstance(node, waits) for node in ast.walk(tree_of(source)))
    ]

    assert found == []


# --- tidiness -------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_source_file_is_short_and_says_what_it_is_for(source: Path) -> None:
    text = (ROOT / source).read_text()

    assert len(text.splitlines()) < LINES_MAX or source.name in TABLES
    assert ast.get_docstring(tree_of(source)), "a module begins with a line of purpose"
    if source != Path("queueber/__init__.py"):  # its late names are imported for checkers
        assert "TYPE_CHECKING" not in text, "such a type belongs in model.py"


def test_no_module_is_a_drawer() -> None:
    drawers = {"utils", "util", "common", "helpers", "manager", "misc", "data", "info"}

    assert [str(source) for source in SOURCES if source.stem in drawers] == []
