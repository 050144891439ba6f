"""The dashboard: what it is fed with, its files, and the page in a real browser."""
