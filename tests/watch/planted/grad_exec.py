import torch

exec("torch.set_grad_enabled(False)", {"torch": torch})  # <- grad-mode: True -> False
