"""The model: its dimensions, its parts, its weights, and a session that holds it."""
