"""One module per command of `dpfda`."""
