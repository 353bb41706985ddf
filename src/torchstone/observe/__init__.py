"""What a running PyTorch program does, reported to whoever subscribes."""
