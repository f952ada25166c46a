"""Benchmarks: one command each, tables and pictures go to docs/."""
