"""A module that workers are given: it sets something up, and has the app from elsewhere."""

from tests.jobs.samples import app

__all__ = ["app"]
