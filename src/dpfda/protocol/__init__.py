"""Public values that a silo and a coordinator share: terms, plans, statistics, messages and the statement of privacy."""
