"""The paper's experiments, for the published method and for the default one: `dpfda reproduce`.

| module | what |
|---|---|
| `configs/*.toml` | one experiment each: axes, budgets, repetitions, and what `--quick` changes |
| `catalogue` | configurations to cells |
| `cells`, `published_runs`, `adaptive_runs`, `real_data` | the Monte Carlo runs of one cell |
| `compute`, `store` | several processes, progress, resuming |
| `results`, `trends` | squared errors, and statistics of them |
| `claims/` | the paper's sentences, each with what was measured and a verdict |
| `figures/`, `document` | figures, tables and RESULTS.md |
"""
