"""What a review writes and remembers: its folder, its documents, the user's own state, kept results."""
