"""What functions do and which paths can run: facts that rules share, worked out once below them."""
