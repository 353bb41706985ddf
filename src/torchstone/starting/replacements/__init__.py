"""What takes the place of parts of installed libraries that would be fetched."""
