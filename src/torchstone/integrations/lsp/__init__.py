"""The way in for editors: a Language Server Protocol server over `check`."""
