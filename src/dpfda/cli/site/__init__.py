"""Parts of `dpfda site`."""
