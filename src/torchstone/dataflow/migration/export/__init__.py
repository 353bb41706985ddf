"""A plan for engines that run on more than one machine."""
