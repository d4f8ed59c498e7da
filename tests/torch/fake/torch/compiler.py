# SPDX-License-Identifier: MIT
_compiling = False  # a test may say otherwise


def is_compiling():
    return _compiling
