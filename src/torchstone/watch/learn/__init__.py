"""The normal range of every signal, learned on a rolling window."""
