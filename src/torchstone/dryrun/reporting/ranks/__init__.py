"""What came of playing all ranks, in words and pictures."""
