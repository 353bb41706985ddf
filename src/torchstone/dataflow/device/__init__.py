"""What a device does: its times, and how many kernels it starts."""
