"""Time and memory of counted work on named devices, alone and under a parallel plan."""
