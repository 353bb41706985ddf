"""Ways into other programs: one file each, loaded only by the program it is for."""
