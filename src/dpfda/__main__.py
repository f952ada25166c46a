"""`python -m dpfda` is `dpfda`."""

from dpfda.cli.entry import main

main()
