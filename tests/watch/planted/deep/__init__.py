"""A package whose inner module switches gradients off."""
