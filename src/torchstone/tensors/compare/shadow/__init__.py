"""A step followed operator by operator: what is computed in low precision, again in high precision."""
