from torch.nn.modules import module


def spy(layer, args):
    return None


handle = module.register_module_forward_pre_hook(spy)  # <- module-hooks.forward_pre_hooks: none -> planted.hooks.spy (hooks.py:4)
