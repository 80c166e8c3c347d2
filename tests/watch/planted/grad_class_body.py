import torch


class Config:
    seed = 0
    grad = torch.set_grad_enabled(False)  # <- grad-mode: True -> False
