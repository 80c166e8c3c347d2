import torch


def prepare():
    for _ in range(2):
        torch.autograd.set_grad_enabled(mode=False)  # <- grad-mode: True -> False


prepare()
