"""Figures of the reproduced experiments."""
