"""Methods of PIL images."""
