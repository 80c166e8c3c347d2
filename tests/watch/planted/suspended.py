import torch


def batches():
    with torch.no_grad():  # <- grad-mode: True -> False
        yield 1


left = batches()
first = next(left)
