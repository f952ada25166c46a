"""The default method: `rounds.py` has its two functions, `constants.py` its numbers, docs/method.md its steps."""
