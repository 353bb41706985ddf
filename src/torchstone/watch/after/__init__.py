"""What is made of a recorded run: report, comparison, replay, live view."""
