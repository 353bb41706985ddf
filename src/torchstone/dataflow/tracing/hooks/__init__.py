"""The functions that stand at the sites while a program is traced."""
