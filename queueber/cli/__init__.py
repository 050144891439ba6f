"""The command line."""


def main() -> None:
    import sys
    from pathlib import Path

    from queueber.app import serve
    from queueber.config import load_config
    from queueber.logs import configure_logs

    c = load_config({"listen": sys.argv[1], "data_dir": sys.argv[2]})
    configure_logs(c.log_level, c.log_format)
    serve(c, address_file=Path(sys.argv[3]))
