"""What the tutorial promises of its pages, beside that their output is true."""

import ast
import re

from tests.test_architecture import ROOT

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
LINES_MAX = 30
HEADINGS = [
    "A server",
    "The first job",
    "A retry",
    "A dead letter",
    "Later",
    "A time limit",
    "A test",
    "Typed jobs",
    "Deploy it",
]


def file_of(title: str) -> str:
    (code,) = re.findall(
        rf'^```python title="{re.escape(title)}"\n(.*?)^```$', TUTORIAL, re.MULTILINE | re.DOTALL
    )
    found: str = code
    return found


def test_a_typed_job_with_a_retry_a_time_limit_a_schedule_and_a_test_is_short() -> None:
    code = file_of("tasks.py")
    tree = ast.parse(code)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}

    assert len(code.splitlines()) < LINES_MAX
    job = functions["resize"]
    assert all(argument.annotation for argument in job.args.args)
    assert job.returns is not None
    (declared,) = (ast.unparse(each) for each in job.decorator_list)
    assert "timeout=30" in declared
    assert "backoff=[0.1, 10]" in declared
    assert "app.schedule(" in ast.unparse(functions["plan"])
    (tested,) = (each for name, each in functions.items() if name.startswith("test_"))
    assert "stats.failed" in ast.unparse(tested), "the retry is tested"
    assert "run_schedule" in ast.unparse(tested), "the schedule is tested"


def test_the_tutorial_takes_its_steps_in_order() -> None:
    headings = re.findall(r"^## (.*)$", TUTORIAL, re.MULTILINE)

    assert [each for each in headings if each in HEADINGS] == HEADINGS


def test_every_step_shows_what_it_prints() -> None:
    """A block of commands shows output; one that is silent writes its log to a file."""
    for step in re.split(r"^## ", TUTORIAL, flags=re.MULTILINE)[2:]:
        if step.startswith("Where to go on"):
            continue
        shown = "".join(
            re.findall(r"^```(?:console|text|sh)\n(.*?)^```$", step, re.MULTILINE | re.DOTALL)
        )
        lines = [line for line in shown.splitlines() if not line.startswith("$ ")]
        assert lines, step.partition("\n")[0]
