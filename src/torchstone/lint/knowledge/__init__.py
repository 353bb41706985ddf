"""What several rules know: lists of torch's own functions, and questions too special for a Scene."""
