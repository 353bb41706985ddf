"""What was counted: entries by module, phase and operator."""
