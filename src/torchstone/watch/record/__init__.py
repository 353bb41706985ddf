"""What is kept and said: the run file, evidence, log lines."""
