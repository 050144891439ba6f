"""Every argument of the commands of topics with values that make no sense: an error for people."""

import pytest

import queueber
from queueber.cli.exits import NEGATIVE, OUR_FAULT
from tests.cli.conftest import Cli

STRANGE = (
    "-1", "18446744073709551616", "1e400", "nan", "inf", "1.5", "", "a b", "\n", "\udcff", "é",
    "x" * 300, "0x10", "2024-13-01", "{}",
)  # fmt: skip

COMMANDS = (
    "topics {}",
    "topics --limit {}",
    "topic create {}",
    "topic create new --partitions {}",
    "topic create new --content-type {}",
    "topic create new --alias {}",
    "topic create new --retention {}",
    "topic create new --retention-bytes {}",
    "topic create new --retention-messages {}",
    "topic create new --ttl {}",
    "topic create new --dedup-window {}",
    "topic describe {}",
    "topic publish {} x",
    "topic publish strange x --key {}",
    "topic publish strange x --attribute {}",
    "topic publish strange x --partition {}",
    "topic publish strange x --dedup-id {}",
    "topic publish strange x --expected-offset {}",
    "topic read {}",
    "topic read strange --from {}",
    "topic read strange --since {}",
    "topic read strange --last {}",
    "topic read strange --until {}",
    "topic read strange --partition {}",
    "topic read strange --limit {}",
    "topic groups {}",
    "topic create-group {} g",
    "topic create-group strange {}",
    "topic create-group strange h --kind {}",
    "topic create-group strange h --kind queue --queue {}",
    "topic create-group strange h --from {}",
    "topic delete-group {} g",
    "topic delete-group strange {}",
    "topic configure {} --retention 1",
    "topic configure strange --retention {}",
    "topic configure strange --partitions {}",
    "topic configure strange --alias {}",
    "topic reset strange {} --to 0",
    "topic reset strange g --to {}",
    "topic reset strange g --to 0 --partition {}",
    "topic trim strange --to {}",
    "topic trim strange --to 0 --partition {}",
    "topic close {}",
    "topic fork {} copy",
    "topic fork strange {}",
    "topic fork strange copy --offset {}",
    "topic fork strange copy --offset 0 --partition {}",
    "topic add-source {} default --on insert",
    "topic add-source strange {} --on update",
    "topic add-source strange default --on {}",
    "topic add-source strange default --on delete --where {}",
    "topic add-source strange default --on delete --partition-by {}",
    "topic add-source strange default --on delete --payload {}",
    "topic drop-source {} default",
    "topic drop-source strange {}",
    "topic drop-source strange default --on {}",
    "topic delete {} --yes",
    "topic tail strange --limit 1 --from {}",
    "topic tail strange --limit 1 --group {}",
    "topic tail strange --limit 1 --partition {}",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_strange_arguments_end_with_a_sentence(
    command: str, cli: Cli, client: queueber.Client
) -> None:
    wrong = []
    for value in STRANGE:
        for name in ("new", "copy", "strange"):
            client.delete_topic(name)
        topic = client.topic("strange")
        topic.publish(b"x")
        topic.create_group("g")
        arguments = [each.replace("{}", value) for each in command.split()]
        told = cli(*arguments)
        is_error = told.code not in (0, NEGATIVE)
        is_ours = told.code == OUR_FAULT or "Traceback" in told.stderr or "option:" in told.stderr
        if is_ours or (is_error and not told.stderr.strip()):
            wrong.append((value, told))

    assert wrong == []
    assert client.topic("strange").read(limit=1) is not None
