import torch

guard = torch.no_grad()
guard.__enter__()  # <- grad-mode: True -> False
