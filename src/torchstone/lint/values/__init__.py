"""What is known of the values of a program: one analysis along its paths, asked by all rules."""
