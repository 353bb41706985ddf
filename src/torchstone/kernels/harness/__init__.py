"""What runs in the processes that the Verifier starts: the referee and the candidate's cell."""
