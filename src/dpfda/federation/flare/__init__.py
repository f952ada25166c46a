"""NVIDIA FLARE as the network between a coordinator and its sites: the only room that imports nvflare.

FLARE carries bytes here and nothing else. There are no jobs, no administrators, no commands, no streams and no files: a
study asks its own server process over a Unix socket, the server asks the sites' client processes over mutual TLS, each
client asks its silo process over a Unix socket, and answers come back the same way.

| module | runs where | what it does |
|---|---|---|
| `pinned` | both ends | the one version of FLARE that was read, and the handlers that it is known to have |
| `plain` | both ends | FLARE's log-in messages as plain JSON; nothing is ever decoded as objects |
| `gate` | both ends | who may say what: every message is looked at before anything of it is decoded |
| `tls` | both ends | TLS with the consortium's CA alone, and handshakes that cannot block others |
| `guard` | both ends | puts the above into FLARE, takes the rest out, and checks that each change took |
| `templates`, `settings`, `launch` | both ends | the files that FLARE insists on, written at every start; processes |
| `client` | site | FLARE's client: log-in, heart-beat, `hello`, and questions handed to the silo |
| `supervisor` | site | keeps client and silo running |
| `server` | coordinator | FLARE's server: who is connected, open rounds |
"""
