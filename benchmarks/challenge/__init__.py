"""User-level private mean curves as a task that others can enter; README.md has the rules."""
