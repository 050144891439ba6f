"""Histories of topics: what calls publish and read, and the rules that they keep."""
