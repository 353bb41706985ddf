"""What a program did with its data: calls, operators, writes, and which data went where."""
