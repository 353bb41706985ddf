"""The candidate's side: models are made and called, and everything they do is watched."""
