import random
from random import seed as reseed

import numpy as np
import torch
from numpy.random import seed as numpy_seed


def seed_everything(number):
    random.seed(number)  # <- seed-python: not seeded -> seed 42
    np.random.seed(number)  # <- seed-numpy: * -> seed 42
    torch.manual_seed(number)  # <- seed-torch: * -> 42


seed_everything(42)
drawn = np.random.rand(3), random.random(), torch.rand(2)
numpy_seed(7)  # <- seed-numpy: not seeded -> seed 7
reseed(8)  # <- seed-python: not seeded -> seed 8
