"""Arguments and results of jobs: checked where they are sent, converted where they arrive."""

import asyncio
import pickle
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial, wraps
from typing import Any

import msgspec
import pytest
import trio

import queueber
from queueber.jobs import app as app_module
from queueber.jobs.codec import Own
from queueber.jobs.job import Job
from queueber.testing import inline
from queueber.worker.handlers.kinds import JobItem, Kind
from queueber.worker.handlers.log_context import LogContext
from queueber.worker.handlers.work_item import HeldLease


@dataclass
class Point:
    x: int
    y: float = 0.5


class Order(msgspec.Struct):
    name: str
    when: datetime


class Model:
    """Has what a model of pydantic has for its users."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    @classmethod
    def model_validate(cls, value: dict[str, Any]) -> "Model":
        if not isinstance(value.get("name"), str):
            raise ValueError("name must be text")  # noqa: TRY004  as pydantic does
        return cls(**value)

    def model_dump(self, mode: str) -> dict[str, Any]:
        assert mode == "json"
        return self.fields


def draw(
    point: Point,
    order: Order,
    sizes: tuple[int, ...] = (1, 2),
    *,
    day: date | None = None,
) -> dict[str, Any]:
    return {"point": point, "order": order, "sizes": sizes, "day": day}


def resize(path: str, width: int) -> int:
    return width


def save(model: Model) -> Model:
    return model


@pytest.fixture
def app() -> queueber.App:
    """It never connects."""
    return queueber.App("127.0.0.1:1")


@pytest.fixture
def plain_app(monkeypatch: pytest.MonkeyPatch) -> queueber.App:
    """As if msgspec were not installed."""
    monkeypatch.setitem(sys.modules, "msgspec", None)
    return queueber.App("127.0.0.1:1")


def item_of(contents: bytes, attempt: int = 1) -> JobItem:
    return JobItem(queueber.Item(b"i" * 16, contents, attempt), HeldLease(b"l" * 16, 1, 0.0))


def call(app: queueber.App, contents: bytes) -> Any:
    """What a worker would do with the item."""
    item = item_of(contents)
    kind = app.kind_of(item)
    assert isinstance(kind, Kind)
    item.kind = kind
    return kind.handler(item)


def opened(app: queueber.App, contents: bytes) -> JobItem:
    item = item_of(contents)
    app.kind_of(item)
    return item


def test_arguments_arrive_as_the_types_that_they_are_annotated_with(app: queueber.App) -> None:
    seen = []

    def keep(
        point: Point, order: Order, sizes: tuple[int, ...] = (1,), *, day: date | None = None
    ) -> None:
        seen.append((point, order, sizes, day))

    job = app.job("keep")(keep)
    order = Order("x", datetime(2026, 1, 2, tzinfo=UTC))

    contents = job.contents((Point(1),), {"order": order, "day": date(2026, 3, 4)})

    assert contents == (
        b'{"job":"keep","args":{"point":{"x":1,"y":0.5},"order":{"name":"x",'
        b'"when":"2026-01-02T00:00:00Z"},"day":"2026-03-04"}}'
    )
    assert call(app, contents) == b""
    assert seen == [(Point(1), order, (1,), date(2026, 3, 4))]


@pytest.mark.parametrize(
    ("args", "kwargs", "told"),
    [
        ((), {"path": "x", "width": "wide"}, "resize: width: expected `int`, got `str`"),
        ((), {"path": "x"}, "resize(path, width): missing a required argument: 'width'"),
        (("x", 1, 2), {}, "resize(path, width): too many positional arguments"),
        (("x", 1), {"widht": 2}, "resize(path, width): got an unexpected keyword argument 'widht'"),
        (("x", object()), {}, "resize: objects of type object cannot be sent"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(
    app: queueber.App, args: tuple[Any, ...], kwargs: dict[str, Any], told: str
) -> None:
    job = app.job("resize")(resize)

    with pytest.raises(queueber.InvalidArgument) as caught:
        app.enqueue(job, *args, **kwargs)  # it would raise Unavailable if it connected

    assert str(caught.value) == told


def test_a_nested_error_says_where(app: queueber.App) -> None:
    job = app.job("draw")(draw)

    with pytest.raises(queueber.InvalidArgument, match=r"^draw: point\.x: expected `int`, got"):
        job.contents(({"x": "no"},), {"order": Order("", datetime.now(UTC))})


def test_models_that_validate_and_dump_themselves_are_types(app: queueber.App) -> None:
    job = app.job("save")(save)

    contents = job.contents((Model(name="a", tags=[1]),), {})

    assert contents == b'{"job":"save","args":{"model":{"name":"a","tags":[1]}}}'
    result = call(app, contents)
    assert result == b'{"name":"a","tags":[1]}'
    assert job.decode_result(result).fields == {"name": "a", "tags": [1]}
    with pytest.raises(queueber.InvalidArgument, match="save: model: name must be text"):
        job.contents((Model(name=3),), {})


def test_models_of_pydantic_are_types(app: queueber.App) -> None:
    pydantic = pytest.importorskip("pydantic")

    made = pydantic.create_model("User", name=(str, ...), age=(int, 3))

    def keep(user: Any) -> Any:
        return user

    keep.__annotations__ = {"user": made, "return": made}
    job = app.job("keep")(keep)
    assert job.decode_result(call(app, job.contents((made(name="x"),), {}))) == made(name="x")


def test_a_result_of_another_type_is_an_error(app: queueber.App) -> None:
    job = app.job("resize")(resize)

    assert job.decode_result(b"3") == 3
    assert job.decode_result(b"") is None  # it returned None
    with pytest.raises(TypeError, match="the result of resize has another type: expected `int`"):
        job.decode_result(b'"wide"')


def test_a_job_may_be_called_as_its_function(app: queueber.App) -> None:
    job = app.job("resize")(resize)

    assert job("x", width=7) == 7
    assert job.__doc__ == resize.__doc__
    assert repr(job) == "<Job 'resize' of queue 'default'>"


def test_without_msgspec_names_are_checked_and_types_are_not(plain_app: queueber.App) -> None:
    job = plain_app.job("resize")(resize)

    assert call(plain_app, job.contents(("x",), {"width": "wide"})) == b'"wide"'
    with pytest.raises(queueber.InvalidArgument, match="missing a required argument: 'width'"):
        job.contents(("x",), {})
    with pytest.raises(queueber.InvalidArgument, match="resize: an argument cannot be sent: "):
        job.contents(("x", object()), {})


DEEP = b'{"job":"resize","args":{"path":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"bytes",
        b"\xff",
        b"3",
        b"{}",
        b'{"job": 3}',
        b'{"job":"resize","args":3}',
        b'{"job":"resize","timeout":-1}',
        b'{"job":"resize","timeout":1e300}',
        b'{"job":"resize","timeout":1' + b"0" * 400 + b"}",
        DEEP,
    ],
)
@pytest.mark.parametrize("kind", ["app", "plain_app"])
def test_contents_that_are_no_job_fail(
    kind: str, contents: bytes, request: pytest.FixtureRequest
) -> None:
    app: queueber.App = request.getfixturevalue(kind)
    app.job("resize")(resize)

    with pytest.raises((ValueError, msgspec.ValidationError)):
        call(app, contents)


@pytest.mark.parametrize("kind", ["app", "plain_app"])
def test_contents_that_are_nested_too_deeply_fail(
    kind: str, request: pytest.FixtureRequest
) -> None:
    app: queueber.App = request.getfixturevalue(kind)
    job = app.job("resize")(resize)
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]

    with pytest.raises(ValueError, match="those of a job: they are nested too deeply"):
        call(app, DEEP)
    with pytest.raises(queueber.InvalidArgument, match=r"resize: .*maximum recursion depth"):
        job.contents((nested, 1), {})
    while nested:
        nested = nested[0]  # freed one by one


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
@pytest.mark.parametrize("kind", ["app", "plain_app"])
def test_numbers_that_json_does_not_have_are_refused(
    kind: str, number: float, request: pytest.FixtureRequest
) -> None:
    """Else a worker would get None, and so would whoever waits for the result."""
    app: queueber.App = request.getfixturevalue(kind)

    def measure(values: Any, more: float | None = None) -> Any:
        return values

    job = app.job("measure")(measure)
    with pytest.raises(queueber.InvalidArgument, match=r"measure: .*JSON"):
        job.contents((1, number), {})
    if kind == "app":
        with pytest.raises(queueber.InvalidArgument, match=r"measure: values\.a\[1\]: JSON has no"):
            job.contents(({"a": [None, number]},), {})
        assert call(app, job.contents(({"a": [None, 1]},), {})) == b'{"a":[null,1]}'
    handler = app.job("tell")(lambda: number).kind().handler
    with pytest.raises(ValueError, match="JSON"):
        handler(opened(app, b'{"job":"tell"}'))


def test_a_job_of_another_name_is_unknown(app: queueber.App) -> None:
    app.job("resize")(resize)

    assert app.kind_of(item_of(b'{"job":"shrink","args":{}}')) == "shrink"


def test_the_time_limit_is_that_of_the_item_or_of_the_job(app: queueber.App) -> None:
    job: Job[..., Any] = app.job("resize", timeout=30)(resize)
    own, other = item_of(job.contents(("x", 1), {}, Own(5))), item_of(job.contents(("x", 1), {}))
    for item in own, other:
        app.kind_of(item)

    assert (own.timeout, other.timeout) == (5, 30)


def test_the_backoff_of_a_job_has_a_delay_for_each_failure(app: queueber.App) -> None:
    kind = app.job("resize", backoff=[1, 5])(resize).kind()

    assert [kind.delay_after(attempt) for attempt in (1, 2, 3)] == [1, 5, 5]
    assert app.job("other")(resize).kind().delay_after(1) is None


def rest(*paths: str) -> None: ...


def taken(key: str) -> None: ...


def unknown(path: "NoSuchType") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def yields(path: str) -> Iterator[str]:
    yield path


async def yields_soon(path: str) -> AsyncIterator[str]:
    yield path


def two_items(one: queueber.WorkItem, other: queueber.WorkItem) -> None: ...


@pytest.mark.parametrize(
    ("options", "function", "told"),
    [
        ({}, yields, "x: it is a generator; a call of it runs nothing"),
        ({}, yields_soon, "x: it is a generator; a call of it runs nothing"),
        ({}, two_items, "x: one, other are both the item; give one"),
        ({}, rest, "x: *paths: str has no name; name each argument of a job"),
        ({}, taken, "x: 'key' is an option of enqueue; name the argument differently"),
        ({}, unknown, "x: a type of its function is not found: name 'NoSuchType' is not defined"),
        ({"timeout": 0}, resize, "timeout: 0 is outside"),
        ({"timeout": "soon"}, resize, "timeout: 'soon' is not a number of seconds"),
        ({"backoff": []}, resize, "backoff: give 1 to 100 delays in seconds"),
        ({"backoff": [-1]}, resize, "backoff: -1 is outside"),
        ({}, dict, "x: <class 'dict'> does not say which arguments it has; wrap it in a function"),
        ({"queue": "no spaces"}, resize, "queue: 'no spaces' is not a queue name; use 1 to 128"),
        ({"queue": "x" * 129}, resize, "queue: 'xxxxx"),
        ({"queue": 3}, resize, "queue: 3 is not text; it must be str"),
    ],
)
def test_a_job_that_cannot_be_declared_says_why(
    app: queueber.App, options: dict[str, Any], function: Any, told: str
) -> None:
    with pytest.raises(queueber.InvalidArgument) as caught:
        app.job("x", **options)(function)

    assert str(caught.value).startswith(told)
    assert not app.jobs


class Adder:
    """An object whose attributes have names of those of jobs."""

    def __init__(self, more: int) -> None:
        self.more = self.options = self.name = more

    def __call__(self, number: int) -> int:
        return number + self.more


class SoonAdder(Adder):
    async def __call__(self, number: int) -> int:  # type: ignore[override]
        return number + self.more


def add(number: int, more: int, item: queueber.WorkItem | None = None) -> int:
    return number + more + (item.attempt if item else 0)


async def add_soon(number: int, more: int) -> int:
    return number + more


@wraps(add_soon)
def add_wrapped(*args: Any, **kwargs: Any) -> Any:
    return add_soon(*args, **kwargs)


@pytest.mark.parametrize(
    ("function", "sum_of_one_and_two"),
    [
        (Adder(2), 3),
        (SoonAdder(2), 3),
        (Adder(2).__call__, 3),
        (partial(add, more=2), 4),
        (partial(add_soon, more=2), 3),
        (lambda number: number + 2, 3),
    ],
)
def test_whatever_can_be_called_may_be_a_job(
    app: queueber.App, function: Any, sum_of_one_and_two: int
) -> None:
    job = app.job("add")(function)

    with inline(app):
        handle: queueber.Handle[int] = app.enqueue(job, number=1)
        assert handle.result() == sum_of_one_and_two
        if not isinstance(function, type(lambda: 0)):
            with pytest.raises(queueber.InvalidArgument, match="number: expected `int`, got `str`"):
                app.enqueue(job, number="one")
    assert repr(job) == "<Job 'add' of queue 'default'>"


def test_an_item_that_may_be_none_is_given(app: queueber.App) -> None:
    job = app.job("add")(add)

    with inline(app):
        assert app.enqueue(job, 1, 2).result() == 4
    assert job(1, 2) == 3


def test_a_job_of_another_app_is_declared_again_as_its_function(app: queueber.App) -> None:
    other = queueber.App()
    job = app.job("sum")(other.job("add", queue="others")(add))

    assert (job.name, job.options.queue) == ("sum", "default")
    with inline(app):
        assert app.enqueue(job, 1, 2).result() == 4


def test_a_function_that_returns_a_coroutine_is_told_to_be_async(app: queueber.App) -> None:
    job = app.job("add", attempts=1)(add_wrapped)

    with inline(app) as jobs:
        app.enqueue(job, 1, 2)

    assert jobs.ran[0].error.startswith("TypeError: the handler returned a coroutine; declare it")


def test_a_name_is_that_of_one_job(app: queueber.App) -> None:
    app.job("resize")(resize)

    with pytest.raises(queueber.InvalidArgument, match="there is a job 'resize' already"):
        app.job("resize")(draw)
    with pytest.raises(queueber.InvalidArgument, match="name: '' is not the name of a job"):
        app.job("")


def test_only_jobs_of_the_app_are_enqueued(app: queueber.App) -> None:
    other = queueber.App().job("resize")(resize)

    with pytest.raises(queueber.InvalidArgument, match="is not a job of this app"):
        app.enqueue(other, "x", 1)
    with pytest.raises(queueber.InvalidArgument, match="job: 5 is not a job; declare it with"):
        app.handle(5, b"i" * 16)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"at": datetime(2026, 1, 1)}, "at: 2026-01-01 00:00:00 has no time zone"),  # noqa: DTZ001
        ({"at": "soon"}, "at: 'soon' is not a datetime"),
        ({"at": datetime(9999, 1, 1, tzinfo=UTC)}, "at: 9999-01-01 00:00:00+00:00 is too far away"),
        ({"at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 1}, "at: delay was given, too"),
        ({"after": 5}, "after: 5 is not an id of 16 bytes"),
        ({"after": [5]}, "after: 5 is not an id of 16 bytes"),
        ({"delay": float("nan")}, "delay: nan is not a number of seconds"),
        ({"timeout": float("nan")}, "timeout: nan is outside"),
        ({"backoff": [1] * 17}, "backoff: it has 17 delays; give 1 to 16"),
        ({"attempts": 1.5}, "attempts: 1.5 is not a number"),
    ],
)
def test_options_that_are_wrong_are_named_before_anything_is_sent(
    app: queueber.App, options: dict[str, Any], told: str
) -> None:
    job = app.job("resize")(resize)

    with inline(app) as jobs, pytest.raises(queueber.InvalidArgument) as caught:
        app.enqueue(job, "x", 1, **options)

    assert str(caught.value).startswith(told)
    assert not jobs.ran


def test_options_that_are_none_are_not_given(app: queueber.App) -> None:
    job = app.job("resize")(resize)
    nothing: dict[str, Any] = dict.fromkeys(
        ("after", "after_batch", "at", "attempts", "backoff", "batch", "delay", "expires", "key")
    )

    with inline(app):
        assert app.enqueue(job, "x", 1, timeout=None, **nothing).result() == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"queues": 5}, "queues: 5 is no list of names"),
        ({"queues": [5]}, "queues: 5 is not text; it must be str"),
        ({"queues": [["a"]]}, "queues: ['a'] is not text; it must be str"),
        ({"middleware": LogContext()}, "middleware: <queueber.worker.handlers.log_context"),
        ({"middleware": "shop:Log"}, "middleware: 'shop:Log' is no list of middleware"),
        ({"middleware": None}, "middleware: None is no list of middleware"),
    ],
)
def test_options_of_a_worker_that_are_wrong_are_named(
    app: queueber.App, options: dict[str, Any], told: str
) -> None:
    app.job("resize")(resize)

    with pytest.raises(queueber.InvalidArgument) as caught:
        app.worker(**options)

    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"queueber.batch": "b", "queueber.added": "x", "queueber.done": "1", "queueber.dead": "0"},
    ],
)
def test_attributes_of_no_callback_have_no_receipt(attributes: dict[str, str]) -> None:
    with pytest.raises(
        queueber.InvalidArgument, match="attributes: they are not those of the item"
    ):
        queueber.callback_receipt(attributes)


@pytest.mark.parametrize("run", [asyncio.run, trio.run])
def test_the_loop_that_enqueues_does_not_wait_for_the_connection(
    app: queueber.App, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = app.job("resize")(resize)
    threads = []

    def connect(*_: Any, **__: Any) -> Any:
        threads.append(threading.current_thread())
        raise queueber.Unavailable("nobody listens")

    monkeypatch.setattr(app_module, "connect", connect)

    async def main() -> None:
        with pytest.raises(queueber.InvalidArgument, match="expected `int`, got `str`"):
            await app.enqueue_async(job, "x", "wide")
        with pytest.raises(queueber.Unavailable, match="nobody listens"):
            await app.enqueue_async(job, "x", 1)

    run(main) if run is trio.run else run(main())
    (thread,) = threads
    assert thread is not threading.current_thread()


@pytest.mark.parametrize(
    "error",
    [
        queueber.JobDied("resize", "ValueError: no", 3),
        queueber.JobGone("resize"),
        queueber.HandlerTimeout(0.5),
        queueber.Retry("busy", delay=5),
    ],
)
def test_errors_of_jobs_may_go_to_other_processes(error: Exception) -> None:
    """A pool of processes that gets one that cannot be unpickled hangs."""
    copy = pickle.loads(pickle.dumps(error))

    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_a_worker_needs_jobs(app: queueber.App) -> None:
    with pytest.raises(queueber.InvalidArgument, match="handler: the app has no jobs"):
        app.worker()
