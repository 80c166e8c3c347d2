import torch

torch.use_deterministic_algorithms(True, warn_only=True)  # <- deterministic: False -> True, deterministic-warn-only: False -> True
