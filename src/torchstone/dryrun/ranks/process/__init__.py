"""What stands inside of the process of a played rank."""
