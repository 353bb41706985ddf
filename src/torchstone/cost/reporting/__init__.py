"""What people see of a cost: the first screen, tables, pictures."""
