"""Small models in JAX, read from checkpoints."""
