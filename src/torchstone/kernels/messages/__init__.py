"""What processes say to each other: one dataclass for each message, and the codec that writes and reads them."""
