"""From values to alerts, and from alerts to episodes."""
