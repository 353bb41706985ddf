"""Multi-head latent attention language model."""
