"""C candidates: read, judged, compiled in a cell, and repeated under sanitizers."""
