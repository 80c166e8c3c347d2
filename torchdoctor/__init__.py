"""The doctor for PyTorch environments and failures."""

__version__ = "0.1.0"
