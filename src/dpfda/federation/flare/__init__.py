"""NVIDIA FLARE 2.9 as a transport: the only place that imports nvflare.

| module | runs where | what it does |
|---|---|---|
| `controller`, `flare_transport` | coordinator's job process | run the method's one loop through broadcasts |
| `executor` | site's job process | hands messages to `federation.site.Site` |
| `launcher`, `guard`, `site_main`, `site_worker` | site's processes | keep everything else of FLARE out |
| `provision`, `job`, `session` | coordinator's command line | kits, job folder, server process, submission |
"""
