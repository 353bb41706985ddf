"""A graph as SVG, as a picture in the report, and as a time line."""
