"""Plan, execute, interpret, design, guide, verify: each a function from typed input to typed output."""
