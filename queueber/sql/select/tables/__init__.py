"""Readers of the tables of SELECT: pages of the client as rows."""
