# SPDX-License-Identifier: MIT
"""A stand-in for PyTorch, for tests: tensors of one number, and around them what PyTorch shows to those that watch it.

Operators, backward nodes and memory pass through libtorch_cpu, libtorch_python, libc10 and libc10_cuda of ours (../*.cc). The environment says
what this PyTorch is like: FAKE_LAYOUT, FAKE_REPORT, FAKE_DYNAMO (skip_code, strategy or none), FAKE_CALL=other, FAKE_INIT_FAILS, FAKE_IMPORT_FAILS,
FAKE_VERSION, FAKE_TENSORS=no.
"""
import os, sys, types

__version__ = os.environ.get("FAKE_VERSION", "2.9.0+fake")

from torch import _C
from torch._tensor import Tensor, empty, float32, is_grad_enabled, linear, neg, no_grad, ones, relu, tensor  # noqa: F401

if os.environ.get("FAKE_TENSORS") == "no":
    del Tensor, ones, tensor
if os.environ.get("FAKE_IMPORT_FAILS"):
    raise ImportError("this PyTorch cannot be imported")


def _eval_frame():
    """torch._C._dynamo.eval_frame; `skipped` is ours: the code that is not to be compiled."""
    module = types.ModuleType("torch._C._dynamo.eval_frame")
    module.skipped = []
    kind = os.environ.get("FAKE_DYNAMO", "strategy")
    if kind == "skip_code":
        module.skip_code = module.skipped.append
    elif kind == "strategy":
        module._FrameAction = types.SimpleNamespace(SKIP="skip", DEFAULT="default")
        module._FrameExecStrategy = lambda current, recursive: (current, recursive)
        module.set_code_exec_strategy = lambda code, strategy: module.skipped.append(code) if strategy == ("skip", "default") else None
    return module


_C._dynamo = types.ModuleType("torch._C._dynamo")
_C._dynamo.eval_frame = _eval_frame()
sys.modules["torch._C._dynamo"] = _C._dynamo
sys.modules["torch._C._dynamo.eval_frame"] = _C._dynamo.eval_frame

from torch import autograd, compiler, cuda, nn, optim, utils, version  # noqa: E402, F401
