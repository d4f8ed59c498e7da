# SPDX-License-Identifier: MIT
from torch.nn.modules import module  # noqa: F401
