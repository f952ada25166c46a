"""What `dpfda fit` and its relatives share: options, requests, runs, spending and the dry run."""
