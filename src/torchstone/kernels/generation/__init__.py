"""A kernel from a language model: designer, coder and verifier take turns."""
