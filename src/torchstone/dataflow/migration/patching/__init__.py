"""Puts wrappers where programs look a function up, and takes every one of them out again."""
