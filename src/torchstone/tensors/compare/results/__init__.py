"""What a comparison found, and how it is told."""
