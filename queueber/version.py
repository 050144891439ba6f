"""The version; a package that is built takes it from here."""

VERSION = "0.1.0"
