"""Tests of topics over HTTP."""
