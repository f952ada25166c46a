"""The coordinator of the default method: what it makes of the silos' releases, all of it post-processing."""
