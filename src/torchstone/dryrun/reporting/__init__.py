"""Records of runs become a Report."""
