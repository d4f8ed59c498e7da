# SPDX-License-Identifier: MIT
"""Merges the parts that `pperf-report part` writes: ranks, trees, steps, findings and SQL over any
number of traces, and a history of runs. Needs DuckDB and numpy (pip install 'pperf[query]')."""


class PartsError(Exception):
    """What is wrong with the parts or the arguments, in one sentence."""
