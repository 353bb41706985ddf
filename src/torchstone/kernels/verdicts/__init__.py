"""A verdict and its words: what every gate said, likely causes, the report."""
