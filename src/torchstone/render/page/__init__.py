"""The parts of an HTML page, from top to bottom, and the style sheet and scripts they share."""
