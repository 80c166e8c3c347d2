import torch


class Registry(type):
    def __new__(cls, name, bases, content):
        torch.set_grad_enabled(False)  # <- grad-mode: True -> False
        return super().__new__(cls, name, bases, content)


class Detector(metaclass=Registry):
    pass
