"""Edits of a project: patches, templates, second ways."""
