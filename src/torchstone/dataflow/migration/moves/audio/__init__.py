"""Signal processing: scipy.signal, and librosa where it is installed."""
