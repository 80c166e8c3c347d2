import torch


class Fast(torch.nn.Linear):
    pass


torch.nn.Linear = Fast  # <- patch.torch.nn.Linear: *
torch.optim.Adam.step = lambda self: None  # <- patch.torch.optim.Adam.step: *
torch.nn.LSTM.to = lambda self, *a: self  # <- patch.torch.nn.LSTM.to: *
