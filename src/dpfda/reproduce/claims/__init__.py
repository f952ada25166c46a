"""The numerical claims of the paper, and verdicts on each."""
