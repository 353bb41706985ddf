"""Stand-ins for packages that are not installed."""
