"""Who leads a review: the deterministic planner, a language model, or an outside agent."""
