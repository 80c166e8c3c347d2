import torch

torch.set_default_device("meta")  # <- default-device: not set -> meta
