"""One tensor: how its values are distributed, what formats do to them, and what helps."""
