"""Write the Python code of queueber/gateway/grpc/sluice.proto, which is committed.

    python scripts/generate_grpc.py            writes sluice_pb2.py and sluice_pb2.pyi
    python scripts/generate_grpc.py --check    says which of them are not current, and fails

So installing the gateway needs no compiler. The code of the calls themselves is not generated:
there are four, and the gateway reads their messages as bytes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "queueber" / "gateway" / "grpc"
PROTO = FOLDER / "sluice.proto"


def generated() -> dict[Path, str]:
    """What the files must hold."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [
                sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO.parent}",
                f"--python_out={folder}", f"--pyi_out={folder}", PROTO.name,
            ],
            check=True,
        )  # fmt: skip
        return {FOLDER / made.name: made.read_text() for made in sorted(Path(folder).iterdir())}


def main() -> int:
    is_check = "--check" in sys.argv[1:]
    stale = []
    for target, text in generated().items():
        if not target.exists() or target.read_text() != text:
            stale.append(target)
            if not is_check:
                target.write_text(text)
    for target in stale:
        sys.stdout.write(f"{target.name}: {'not current' if is_check else 'written'}\n")
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
