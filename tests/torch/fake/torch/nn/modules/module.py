# SPDX-License-Identifier: MIT
"""torch.nn.Module, as far as it can be told apart from outside."""
import os
from torch._tensor import Tensor


class Module:
    _compiled_call_impl = None

    def __init__(self):
        self.__dict__["_modules"], self.__dict__["_parameters"] = {}, {}

    def __setattr__(self, name, value):
        if isinstance(value, Module):
            self._modules[name] = value
        elif isinstance(value, Tensor) and value.requires_grad:
            self._parameters[name] = value
        else:
            self.__dict__[name] = value

    def __getattr__(self, name):
        for found in (self.__dict__.get("_modules", {}), self.__dict__.get("_parameters", {})):
            if name in found:
                return found[name]
        raise AttributeError(name)

    def named_children(self):
        yield from self._modules.items()

    def children(self):
        yield from self._modules.values()

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            yield from child.named_modules(memo, prefix + "." * bool(prefix) + name, remove_duplicate)

    def modules(self):
        for _, module in self.named_modules():
            yield module

    def parameters(self):
        for module in self.modules():
            yield from module._parameters.values()

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)  # type: ignore[misc]
        else:
            return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def _other_call(self, *args, **kwargs):
        return self._call_impl(*args, **kwargs)

    __call__ = _other_call if os.environ.get("FAKE_CALL") == "other" else _wrapped_call_impl
