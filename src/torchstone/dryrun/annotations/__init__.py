"""Annotations of shapes: those that the user wrote are checked, missing ones are written."""
