"""Two local web pages: one for a site's data steward, one for the coordinator. Loopback, one-time link, no network.

| module | what it is |
|---|---|
| `guarding` | who may see a page: a link that works once, then a cookie; Host and Origin are checked |
| `pages` | templates and forms |
| `serving` | the short-lived process |
| `steward` | the site's pages: inbox, decision, budget, rounds, log |
| `coordinator` | the coordinator's pages: sites, proposal with forecast, rounds, result |
"""
