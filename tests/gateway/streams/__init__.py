"""Tests of streams over HTTP, beyond what the public suite has."""
