"""A study across sites that share nothing but signed terms and privatised messages. Only `flare/` imports FLARE.

| modules | what they are |
|---|---|
| `study`, `proposal` | terms in a file, the id that follows from them; terms as the coordinator signs them |
| `folder`, `seal`, `decisions` | the site's folder: its files and no others, the site's seal, offers and decisions |
| `offers`, `approvals`, `counter`, `data_checks` | how a data steward looks at an offer, approves, declines or counters it |
| `rehearsal`, `rehearsal_main`, `rehearsing` | a study on made-up data over the real network, both ends |
| `policy`, `site_ledger`, `promise` | what a site allows, its ledger, what its owner is about to promise |
| `site`, `silo_main`, `silo_service`, `signed` | the site's border, and the silo's process around it |
| `audit_log`, `site_status`, `serving`, `checking` | the site's append-only log, what its owner sees, `dpfda site run` |
| `keys`, `enrolment`, `register`, `consortium` | keys made where they are used, enrolment, who is enrolled |
| `silence`, `metrics`, `study_metrics`, `consortium_status` | why there is no contact; counters; what a coordinator sees |
| `workspace`, `running`, `wire`, `carried`, `status` | the coordinator's folder of a study, and running it |
| `signing`, `frames`, `rounds`, `server_link`, `hello`, `held`, `quiet`, `lock`, `contact`, `preflight` | their parts |
"""
