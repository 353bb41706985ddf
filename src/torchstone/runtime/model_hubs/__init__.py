"""Models by name: of transformers from their configuration, of timm."""
