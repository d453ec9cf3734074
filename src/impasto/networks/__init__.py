"""Frozen networks: the encoder, its convolutions and the files its parameters come from."""
