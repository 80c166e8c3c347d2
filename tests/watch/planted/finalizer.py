import torch


class Guard:
    def __del__(self):
        torch.set_grad_enabled(False)  # <- grad-mode: True -> False


guard = Guard()
del guard
