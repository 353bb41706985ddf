"""Problems in the KernelBench form, one file each; they are read as data and run by the verifier."""
