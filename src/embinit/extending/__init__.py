"""New tokens and new tokenizers for a pre-trained model."""
