"""The paper's experiments, for the published method and for the default one: `dpfda reproduce`.

| module | what |
|---|---|
| `configs/*.toml` | one experiment each: axes, budgets, repetitions, and what `--quick` changes |
| `catalogue` | configurations to cells |
| `cells`, `lanes`, `adaptive_runs`, `real_data` | the Monte Carlo engine |
| `running`, `store` | two processes, progress, resuming |
| `trends`, `claims*` | statistics, and the paper's sentences held against them |
| `pictures*`, `document` | figures, tables and RESULTS.md |
"""
