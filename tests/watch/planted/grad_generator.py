import torch


def batches():
    yield 1
    torch.set_grad_enabled(False)  # <- grad-mode: True -> False
    yield 2


loaded = list(batches())
