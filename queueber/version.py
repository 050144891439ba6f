"""The version, read from the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("queueber")
except PackageNotFoundError:  # run from a source tree that was not installed
    VERSION = "0+unknown"
