"""What more than one room needs to run a model: meta tensors, module paths, devices, targets."""
