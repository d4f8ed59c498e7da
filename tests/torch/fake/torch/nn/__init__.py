# SPDX-License-Identifier: MIT
from torch.nn.modules.module import Module
from torch.nn.modules.layers import Linear, ModuleList, ReLU, Sequential  # noqa: F401
