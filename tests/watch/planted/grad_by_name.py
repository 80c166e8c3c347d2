import torch

SETTINGS = {"set_grad_enabled": False}
for name, value in SETTINGS.items():
    getattr(torch, name)(value)  # <- grad-mode: True -> False
