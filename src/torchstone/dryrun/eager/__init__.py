"""What eager torch says to a call that a fake tensor took part in."""
