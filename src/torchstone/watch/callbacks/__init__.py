"""Watches for training frameworks, one file each; a file is loaded when its framework is used."""
