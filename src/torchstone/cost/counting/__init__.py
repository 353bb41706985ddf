"""One pass over a model, operator by operator: on meta tensors or on real ones."""
