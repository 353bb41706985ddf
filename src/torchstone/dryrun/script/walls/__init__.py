"""What keeps a program from the user's files, the network and other processes."""
