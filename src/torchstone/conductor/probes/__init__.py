"""Properties of the user's own code, checked by running it: recorded steps and live modules.

`harvest/` runs a script of the project for a few steps and keeps what happened; `checks/` holds one
file per property; `templates.py` has the edits that repair a line; `run.py` puts them together.
"""
