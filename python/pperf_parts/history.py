# SPDX-License-Identifier: MIT
def add_commands(commands):
    pass
