"""The auditor: attacks the real release path and compares what it finds with what is claimed.

It never asks how a silo works, only what comes out. A passed audit is no proof: the proofs are in docs/proofs/. It finds
mistakes between proof and code, and `broken.py` shows which ones it would find.
"""
