# SPDX-License-Identifier: MIT
import torch

__version__ = torch.__version__
cuda = "13.0"
git_version = "0" * 40
