"""Mathematics on tensors that knows nothing of style."""
