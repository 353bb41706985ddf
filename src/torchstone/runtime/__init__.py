"""What more than one tool needs to run a model: meta tensors, module paths, devices, targets."""
