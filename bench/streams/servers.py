"""The other servers of Durable Streams, each with its defaults and its data on disk."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.peers.peer import Server, Unavailable
from bench.peers.processes import (
    LOOPBACK,
    data_folder,
    free_ports,
    port_answers,
    process_ids,
    running_on_a_port,
    running_process,
)
from bench.streams.programs import cargo_folder, npm_folder

_NODE_VERSION, _RUST_VERSION = "0.3.7", "0.1.5"
_PRISMA_VERSION, _BUN_VERSION = "0.1.11", "1.3.6"
NODE_FOLDER = f"durable-streams-node-{_NODE_VERSION}"
RUST_FOLDER = f"durable-streams-rust-{_RUST_VERSION}"
PRISMA_FOLDER = f"prisma-streams-{_PRISMA_VERSION}"
_BUN_MACHINES = {"x86_64": "x64", "aarch64": "aarch64"}


class NodeReference:
    name = "Node reference"
    durability = "yes, fdatasync of the stream's file"
    notes = "file-backed; compression off, as the generator asks for none"
    library = ""
    packages: Sequence[str] = ()

    def version(self) -> str:
        self._folder()
        if shutil.which("node") is None:
            raise Unavailable(f"{self.name} needs node, which is missing")
        return _NODE_VERSION

    def _folder(self) -> Path:
        package = f"@durable-streams/server@{_NODE_VERSION}"
        return npm_folder(NODE_FOLDER, [package])

    def running(self, folder: Path) -> AbstractContextManager[Server]:
        return running_on_a_port(folder, "node", self._command)

    def _command(self, port: int, data_dir: Path) -> list[str]:
        module = self._folder() / "node_modules/@durable-streams/server/dist/index.js"
        data = data_dir / "data"
        data.mkdir()
        options = {"port": port, "host": LOOPBACK, "dataDir": str(data), "compression": False}
        program = data_dir / "serve.mjs"
        program.write_text(
            f"import {{ DurableStreamTestServer }} from {json.dumps(module.as_uri())}\n"
            f"await new DurableStreamTestServer({json.dumps(options)}).start()\n"
        )
        return ["node", str(program)]


class RustServer:
    name = "Rust server"
    durability = "yes, fdatasync of a shared log (`wal`)"
    notes = "built without optimisation at link time"
    library = ""
    packages: Sequence[str] = ()

    def version(self) -> str:
        self._program()
        return _RUST_VERSION

    def _program(self) -> Path:
        folder = cargo_folder(RUST_FOLDER, "durable-streams", _RUST_VERSION)
        return folder / "bin/durable-streams-server"

    def running(self, folder: Path) -> AbstractContextManager[Server]:
        return running_on_a_port(
            folder,
            "rust",
            lambda port, data_dir: [
                str(self._program()), "--port", str(port), "--data-dir", str(data_dir / "data"),
            ],
        )  # fmt: skip


class PrismaStreams:
    name = "Prisma Streams"
    durability = "yes, SQLite with `synchronous = FULL`"
    notes = f"on Bun {_BUN_VERSION}; objects in a local directory"
    library = ""
    packages: Sequence[str] = ()

    def version(self) -> str:
        self._folder()
        return _PRISMA_VERSION

    def _bun(self) -> str:
        machine = _BUN_MACHINES.get(platform.machine())
        if machine is None:
            raise Unavailable(f"there is no Bun for {platform.machine()}")
        return f"@oven/bun-linux-{machine}"

    def _folder(self) -> Path:
        packages = [f"@prisma/streams-server@{_PRISMA_VERSION}", f"{self._bun()}@{_BUN_VERSION}"]
        return npm_folder(PRISMA_FOLDER, packages)

    @contextmanager
    def running(self, folder: Path) -> Iterator[Server]:
        (port,) = free_ports(1)
        modules = self._folder() / "node_modules"
        command = [
            str(modules / self._bun() / "bin/bun"),
            str(modules / "@prisma/streams-server/src/server.ts"),
            "--object-store", "local", "--no-auth",
        ]  # fmt: skip
        with data_folder(folder, "prisma") as data_dir:
            data = data_dir / "data"
            data.mkdir()
            settings = {"DS_ROOT": str(data), "DS_HOST": LOOPBACK, "PORT": str(port)}
            with running_process(
                command, data_dir, lambda: port_answers(port),
                environment={**os.environ, **settings},
            ) as root:  # fmt: skip
                yield Server(str(port), lambda: process_ids(root))


class NoServer:
    """Answers at once and keeps nothing: what the generator itself can do."""

    name = "no storage (the generator's limit)"
    durability = "no: keeps nothing"
    notes = "a loop over sockets in Python, which is a limit as well"
    library = ""
    packages: Sequence[str] = ()

    def version(self) -> str:
        return "-"

    def running(self, folder: Path) -> AbstractContextManager[Server]:
        return running_on_a_port(
            folder,
            "nothing",
            lambda port, _: [sys.executable, "-m", "bench.streams.no_storage", str(port)],
        )
