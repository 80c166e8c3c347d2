import torch

names = ["b", "a"]
names.sort(
    key=lambda name: (
        torch.set_grad_enabled(False),  # <- grad-mode: True -> False
        name,
    )[1]
)
