"""What every stage costs, counted and by closed forms, and the report of it as files."""
