"""Files, notebooks and diffs become parsed, name-resolved source; nothing is ever executed."""
