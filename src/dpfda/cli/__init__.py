"""The command line. `main` registers the commands by name; each lives in its own file and is imported when it is run."""
