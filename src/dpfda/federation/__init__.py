"""A study across sites that share nothing but privatised messages: terms, policies, logs. Imports no federation library.

| module | what it is |
|---|---|
| `study` | the study's public terms, the frozen plan made of them, and the id derived from both |
| `policy` | what a site allows: data source, promise, total budget, acceptable terms |
| `site` | the site's border: every message in, every answer out, every line in the log |
| `audit_log` | the site's append-only, hash-chained log |
| `hardening` | the files in a start-up kit's `local/` folder that make a FLARE site safe, and the check that they do |
| `exchange` | the few fixed messages that cross besides Query and Release |
"""
