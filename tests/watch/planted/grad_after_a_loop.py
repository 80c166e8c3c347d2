import torch


def count():
    total = 0
    for number in range(3000):
        total += number
    torch.set_grad_enabled(False)  # <- grad-mode: True -> False
    return total


TOTAL = count()
