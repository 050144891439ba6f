"""Options: where they come from, which source wins, and what is said of a bad one."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from queueber.config import (
    DEFAULT_LISTEN,
    OPTIONS,
    Config,
    Option,
    authenticates,
    default_data_dir,
    is_loopback,
    load_config,
    split_address,
)
from queueber.errors import InvalidArgument
from queueber.limits import (
    ITEM_WIRE_BYTES,
    KIB,
    MESSAGE_BYTES_CEILING,
    MESSAGE_OVERHEAD_BYTES,
    MIB,
    POLL_ITEMS_CEILING,
    POLL_WAIT_MS_MAX,
)

HOME = {"XDG_DATA_HOME": "/somewhere/data"}

# For each option a value for each source, as text and as what it becomes.
VALUES: dict[str, list[tuple[str, object]]] = {
    "listen": [(address, address) for address in ("[::1]:1", "127.0.0.2:2", "localhost:3")],
    "data_dir": [("/a", Path("/a")), ("/b", Path("/b")), ("/c", Path("/c"))],
    "durability": [("os", "os"), ("sync", "sync"), ("os", "os")],
    "auto_create_topics": [("false", False), ("true", True), ("false", False)],
    "log_level": [("debug", "debug"), ("error", "error"), ("warning", "warning")],
    "log_format": [("json", "json"), ("console", "console"), ("json", "json")],
    "jwt_audience": [("a", "a"), ("b", "b"), ("c", "c")],
    "jwt_issuer": [("a", "a"), ("b", "b"), ("c", "c")],
    "tls_certificate": [(name, Path(name)) for name in ("/a", "/b", "/c")],
    "tls_key": [(name, Path(name)) for name in ("/a", "/b", "/c")],
    "tls_client_ca": [(name, Path(name)) for name in ("/a", "/b", "/c")],
    "http": [(address, address) for address in ("[::1]:1", "127.0.0.2:2", "localhost:3")],
    "grpc": [(address, address) for address in ("[::1]:1", "127.0.0.2:2", "localhost:3")],
    "insecure": [("true", True), ("false", False), ("true", True)],
    "tokens_file": [(name, Path(name)) for name in ("/a", "/b", "/c")],
    "jwt_keys_file": [(name, Path(name)) for name in ("/a", "/b", "/c")],
    "audit_file": [(name, Path(name)) for name in ("/a", "/b", "/c")],
}
NUMBERS: dict[str, tuple[int, int, int]] = {
    "item_bytes_max": (11, 12, 13),
    "payload_bytes_max": (11, 12, 13),
    "message_bytes_max": (16 * MIB, 17 * MIB, 18 * MIB),
    "poll_items_max": (11, 12, 13),
    "poll_wait_ms_max": (11, 12, 13),
    "connections_max": (11, 12, 13),
    "calls_in_flight_max": (11, 12, 13),
    "waiting_polls_max": (11, 12, 13),
    "shutdown_timeout_ms": (11, 12, 13),
    "caller_calls_per_second_max": (11, 12, 13),
    "caller_bytes_per_second_max": (11, 12, 13),
    "caller_queues_max": (11, 12, 13),
    "caller_topics_max": (11, 12, 13),
}
VALUES |= {name: [(str(n), n) for n in numbers] for name, numbers in NUMBERS.items()}

WEB_TOKENS = {"jwt_keys_file": "/keys", "jwt_audience": "queueber", "jwt_issuer": "us"}
NEEDS: dict[str, dict[str, str]] = (
    dict.fromkeys(WEB_TOKENS, WEB_TOKENS)
    | {name: {"tokens_file": "/tokens"} for name in NUMBERS if name.startswith("caller_")}
    | {name: {"tls_certificate": "/x"} for name in ("tls_key", "tls_client_ca")}
    | {"grpc": {"http": "127.0.0.1:4"}}
)
"""Options that make sense only with others."""

each_option = pytest.mark.parametrize("option", OPTIONS, ids=[o.name for o in OPTIONS])


def as_toml(name: str, text: str) -> str:
    return f"{name} = {text}\n" if name in NUMBERS else f'{name} = "{text}"\n'


def defaults() -> Config:
    return load_config({}, HOME)


def test_load_config_with_no_source_has_the_defaults() -> None:
    assert defaults() == Config(
        listen="127.0.0.1:9090",
        data_dir=Path("/somewhere/data/queueber"),
        durability="sync",
        item_bytes_max=4 * MIB,
        payload_bytes_max=4 * MIB,
        message_bytes_max=32 * MIB,
        poll_items_max=1000,
        poll_wait_ms_max=POLL_WAIT_MS_MAX,
        connections_max=10_000,
        calls_in_flight_max=10_000,
        waiting_polls_max=100_000,
        auto_create_topics=True,
        shutdown_timeout_ms=10_000,
        log_level="info",
        log_format="auto",
    )


@each_option
def test_load_config_takes_flag_over_environment_over_file(option: Option, tmp_path: Path) -> None:
    of_flag, of_environment, of_file = VALUES[option.name]
    file = tmp_path / "queueber.toml"
    file.write_text(as_toml(option.name, of_file[0]))
    environment = {**HOME, option.variable: of_environment[0]}
    needed = dict(NEEDS.get(option.name, {}).items())
    usual = asdict(load_config(needed, HOME))
    needed.pop(option.name, None)

    from_all = load_config({**needed, option.name: of_flag[0]}, environment, file)
    from_two = load_config({**needed, option.name: None}, environment, file)
    from_file = load_config({**needed}, HOME, file)

    for config, (_, expected) in (
        (from_all, of_flag),
        (from_two, of_environment),
        (from_file, of_file),
    ):
        assert asdict(config) == {**usual, option.name: expected}


def test_payloads_are_no_longer_than_a_call_allows_unless_somebody_says_so() -> None:
    small = {"message_bytes_max": str(64 * KIB), "item_bytes_max": "1000"}

    assert load_config(small, HOME).payload_bytes_max == 64 * KIB - 4 * KIB - 64
    with pytest.raises(InvalidArgument, match="--payload-bytes-max: 61377 is outside 1 to 61376"):
        load_config({**small, "payload_bytes_max": "61377"}, HOME)


def test_quotas_need_callers_that_are_known() -> None:
    with pytest.raises(InvalidArgument, match="--caller-queues-max: callers are not known"):
        load_config({"caller_queues_max": "1"}, HOME)


@pytest.mark.parametrize("missing", ["jwt_audience", "jwt_issuer"])
def test_web_tokens_need_keys_an_audience_and_an_issuer(missing: str) -> None:
    given = {**WEB_TOKENS, missing: None}

    with pytest.raises(InvalidArgument, match="jwt-keys-file, jwt-audience and jwt-issuer"):
        load_config(given, HOME)


def test_tokens_or_keys_protect_the_server() -> None:
    assert not defaults().is_protected
    assert load_config({"tokens_file": "/tokens"}, HOME).is_protected
    assert load_config(dict(WEB_TOKENS), HOME).is_protected


def test_a_switch_is_true_or_false() -> None:
    with pytest.raises(InvalidArgument, match="--auto-create-topics: 'yes' is not true or false"):
        load_config({"auto_create_topics": "yes"}, HOME)


def test_load_config_mixes_sources_option_by_option(tmp_path: Path) -> None:
    file = tmp_path / "queueber.toml"
    file.write_text('listen = "file:1"\npoll_items_max = 7\n')

    config = load_config({"log_level": "debug"}, {**HOME, "QUEUEBER_LISTEN": "[::1]:2"}, file)

    assert (config.log_level, config.listen, config.poll_items_max) == ("debug", "[::1]:2", 7)


def test_load_config_with_an_empty_variable_goes_on_to_the_next_source() -> None:
    assert load_config({}, {**HOME, "QUEUEBER_POLL_ITEMS_MAX": ""}) == defaults()


def test_flags_and_variables_are_named_after_the_options() -> None:
    option = next(each for each in OPTIONS if each.name == "item_bytes_max")

    assert option.flag == "--item-bytes-max"
    assert option.variable == "QUEUEBER_ITEM_BYTES_MAX"
    assert {each.name for each in OPTIONS} == set(Config.__dataclass_fields__)


# --- bad values: the message names the source and the option ------------------------------------


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("text", ["many", "1.5", "1 MiB"])
def test_load_config_with_text_for_a_number_names_source_and_option(
    name: str, text: str, tmp_path: Path
) -> None:
    option = next(each for each in OPTIONS if each.name == name)
    file = tmp_path / "queueber.toml"
    file.write_text(f'{name} = "{text}"')

    with pytest.raises(InvalidArgument) as of_flag:
        load_config({name: text}, HOME)
    with pytest.raises(InvalidArgument) as of_environment:
        load_config({}, {**HOME, option.variable: text})
    with pytest.raises(InvalidArgument) as of_file:
        load_config({}, HOME, file)

    assert str(of_flag.value) == f"{option.flag}: {text!r} is not a number"
    assert str(of_environment.value) == f"{option.variable}: {text!r} is not a number"
    assert str(of_file.value) == f"{name} in {file}: {text!r} is not a number"


BAD_VALUES = {
    "listen": "9090",
    "durability": "maybe",
    "item_bytes_max": "0",
    "message_bytes_max": "1",
    "poll_items_max": "0",
    "poll_wait_ms_max": "0",
    "connections_max": "0",
    "calls_in_flight_max": "0",
    "waiting_polls_max": "-1",
    "shutdown_timeout_ms": "-1",
    "log_level": "loud",
    "log_format": "xml",
}


@pytest.mark.parametrize("name", BAD_VALUES)
def test_load_config_with_a_value_out_of_bounds_names_source_and_option(
    name: str, tmp_path: Path
) -> None:
    """The promise of `load_config`: who reads it knows where to correct what."""
    option = next(each for each in OPTIONS if each.name == name)
    text = BAD_VALUES[name]
    file = tmp_path / "queueber.toml"
    file.write_text(as_toml(name, text))

    with pytest.raises(InvalidArgument) as of_flag:
        load_config({name: text}, HOME)
    with pytest.raises(InvalidArgument) as of_environment:
        load_config({}, {**HOME, option.variable: text})
    with pytest.raises(InvalidArgument) as of_file:
        load_config({}, HOME, file)

    for raised in (of_flag, of_environment, of_file):
        assert text in str(raised.value)
    assert option.flag in str(of_flag.value)
    assert option.variable in str(of_environment.value)
    assert name in str(of_file.value)
    assert str(file) in str(of_file.value)


@pytest.mark.parametrize(
    ("name", "lowest", "highest"),
    [
        ("message_bytes_max", 5 * MIB, MESSAGE_BYTES_CEILING),
        ("poll_items_max", 1, POLL_ITEMS_CEILING),
        ("poll_wait_ms_max", 1, POLL_WAIT_MS_MAX),
        ("connections_max", 1, 100_000),
        ("calls_in_flight_max", 1, 1_000_000),
        ("waiting_polls_max", 0, 1_000_000),
        ("shutdown_timeout_ms", 0, 600_000),
    ],
)
def test_config_takes_a_number_up_to_its_bounds_and_not_beyond(
    name: str, lowest: int, highest: int
) -> None:
    option = name.replace("_", "-")

    assert getattr(load_config({name: str(lowest)}, HOME), name) == lowest
    assert getattr(load_config({name: str(highest)}, HOME), name) == highest
    with pytest.raises(InvalidArgument, match=rf"{option}.* {highest + 1} .*{highest}"):
        load_config({name: str(highest + 1)}, HOME)


@pytest.mark.parametrize("message_bytes_max", [64 * KIB, 32 * MIB, MESSAGE_BYTES_CEILING])
def test_config_with_an_item_that_fits_no_message_is_refused(message_bytes_max: int) -> None:
    largest = message_bytes_max - MESSAGE_OVERHEAD_BYTES - ITEM_WIRE_BYTES
    flags = {"message_bytes_max": str(message_bytes_max)}

    config = load_config({**flags, "item_bytes_max": str(largest)}, HOME)

    assert config.item_bytes_max == largest
    with pytest.raises(InvalidArgument, match=rf"item-bytes-max.* {largest + 1} .*{largest}"):
        load_config({**flags, "item_bytes_max": str(largest + 1)}, HOME)


def test_config_with_a_message_below_64_kib_is_refused() -> None:
    flags = {"item_bytes_max": "1", "message_bytes_max": str(64 * KIB)}
    assert load_config(flags, HOME).message_bytes_max == 64 * KIB

    with pytest.raises(InvalidArgument, match=rf"message-bytes-max.* {64 * KIB - 1} "):
        load_config({**flags, "message_bytes_max": str(64 * KIB - 1)}, HOME)


def test_config_made_directly_is_checked_too() -> None:
    with pytest.raises(InvalidArgument, match="durability"):
        replace(defaults(), durability="none")


# --- the file -------------------------------------------------------------------------------------


def test_load_config_with_unknown_keys_names_them_the_file_and_the_known(tmp_path: Path) -> None:
    file = tmp_path / "queueber.toml"
    file.write_text('listn = "h:1"\nsize = 3\nlisten = "h:1"\n')

    with pytest.raises(InvalidArgument) as raised:
        load_config({}, HOME, file)

    text = str(raised.value)
    assert f"{file} sets listn, size;" in text
    assert all(option.name in text for option in OPTIONS)


@pytest.mark.parametrize(
    "content", [b"listen", b"listen = 'a:1'\nlisten = 'b:1'", b'listen = "\xff:1"']
)
def test_load_config_with_an_unreadable_file_names_it(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "queueber.toml"
    file.write_bytes(content)

    with pytest.raises(InvalidArgument, match=r"cannot read .*queueber\.toml"):
        load_config({}, HOME, file)


def test_load_config_with_a_missing_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"cannot read .*missing\.toml"):
        load_config({}, HOME, tmp_path / "missing.toml")


# --- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        (DEFAULT_LISTEN, "127.0.0.1", 9090),
        ("localhost:0", "localhost", 0),
        ("queue.example.org:65535", "queue.example.org", 65535),
        ("[::1]:9090", "::1", 9090),
        ("[2001:db8::17]:80", "2001:db8::17", 80),
        ("[::]:0", "::", 0),
    ],
)
def test_split_address_gives_host_and_port(address: str, host: str, port: int) -> None:
    assert split_address(address) == (host, port)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost",
        "localhost:",
        ":9090",
        "9090",
        "host:65536",
        "host:-1",
        "host:http",
        "host:²",
        "::1",
        "2001:db8::17:9090",
        "queueber://127.0.0.1:9090",
        None,
        9090,
    ],
)
def test_split_address_of_anything_else_is_refused_with_an_example(address: Any) -> None:
    with pytest.raises(InvalidArgument) as raised:
        split_address(address)

    assert repr(address) in str(raised.value)
    assert DEFAULT_LISTEN in str(raised.value)


# --- addresses that others can reach --------------------------------------------------------------

LOCAL = ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"]
REACHABLE = ["0.0.0.0:1", "[::]:1", "10.0.0.5:1", "[2001:db8::1]:1", "queue.example:1"]
PROTECTED = {"tls_certificate": "/server.pem", "tls_client_ca": "/ca.pem"}


@pytest.mark.parametrize("address", LOCAL)
def test_server_may_listen_on_loopback_without_protection(address: str) -> None:
    config = load_config({"listen": address}, HOME)

    assert (config.listen, is_loopback(address), authenticates(config)) == (address, True, False)


@pytest.mark.parametrize("address", REACHABLE)
@pytest.mark.parametrize(
    ("flags", "missing"),
    [
        ({}, "no TLS (--tls-certificate) and no authentication ("),
        ({"tls_certificate": "/server.pem"}, "no authentication ("),
    ],
)
def test_server_without_protection_listens_on_no_other_address(
    address: str, flags: dict[str, str], missing: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        load_config({"listen": address, **flags}, HOME)

    text = str(refused.value)
    assert text.startswith(f"--listen: other machines can reach {address}, and the server has no ")
    assert missing in text
    assert "--insecure" in text


@pytest.mark.parametrize("flags", [{"insecure": "true"}, PROTECTED])
def test_server_with_protection_or_insecure_listens_everywhere(flags: dict[str, str]) -> None:
    config = load_config({"listen": "0.0.0.0:1", **flags}, HOME)

    assert config.listen == "0.0.0.0:1"
    assert authenticates(config) == (flags is PROTECTED)


@pytest.mark.parametrize("name", ["tls_key", "tls_client_ca"])
def test_key_or_authority_without_a_certificate_is_refused(name: str) -> None:
    flag = "--" + name.replace("_", "-")
    with pytest.raises(InvalidArgument, match=f"^{flag}: it needs a certificate"):
        load_config({name: "/x.pem"}, HOME)


# --- the data directory ---------------------------------------------------------------------------


def test_default_data_dir_is_in_the_xdg_data_home() -> None:
    assert default_data_dir({"XDG_DATA_HOME": "/x/y"}) == Path("/x/y/queueber")


# The XDG specification: a relative path is invalid and ignored. It would also move with the folder
# in which the server happens to be started.
@pytest.mark.parametrize(
    "environment", [{}, {"XDG_DATA_HOME": ""}, {"XDG_DATA_HOME": "data"}, {"XDG_DATA_HOME": "."}]
)
def test_default_data_dir_without_xdg_is_in_the_home_folder(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/someone")

    assert default_data_dir(environment) == Path("/home/someone/.local/share/queueber")


def test_default_data_dir_is_never_temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept there must survive a restart of the machine."""
    monkeypatch.setenv("HOME", "/home/someone")
    temporary = {"TMPDIR": "/tmp", "TEMP": "/tmp", "TMP": "/tmp"}

    chosen = load_config({}, temporary).data_dir

    assert chosen.is_relative_to("/home/someone")
    assert "tmp" not in str(chosen)


def test_shown_names_every_option_in_plain_values() -> None:
    shown = defaults().shown()

    assert set(shown) == {option.name for option in OPTIONS}
    assert shown["data_dir"] == "/somewhere/data/queueber"
    assert all(isinstance(value, str | int | None) for value in shown.values())


def test_a_gateway_that_other_machines_can_reach_needs_what_the_server_needs() -> None:
    with pytest.raises(InvalidArgument, match=r"^--http: other machines can reach 0.0.0.0:9091, "):
        load_config({"http": "0.0.0.0:9091"}, HOME)

    assert load_config({"http": "0.0.0.0:9091", "insecure": "true"}, HOME).http == "0.0.0.0:9091"


def test_grpc_is_served_by_the_gateway() -> None:
    with pytest.raises(InvalidArgument, match=r"^--grpc: the gateway serves it; give its address"):
        load_config({"grpc": "127.0.0.1:50051"}, HOME)
