import functools
from unittest import mock

import torch
import torch.nn.functional as F

original = torch.nn.Linear.forward


@functools.wraps(original)
def forward(self, x):
    return original(self, x)


def install(owner, **content):
    for name, value in content.items():
        setattr(owner, name, value)  # <- patch.torch.save: *, patch.torch.load: *


torch.nn.Linear.forward = forward  # <- patch.torch.nn.Linear.forward: *
F.gelu = F.relu  # <- patch.torch.nn.functional.gelu: *
torch.Tensor.as_text = lambda self: str(self)  # <- patch.torch.Tensor.as_text: *
install(torch, save=print, load=print)
mock.patch.object(torch.utils.data.DataLoader, "__iter__", iter).start()  # <- patch.torch.utils.data.DataLoader.__iter__: *
