# SPDX-License-Identifier: MIT
"""Fits one clock to another from pairs of readings: report/stats/theil_sen.c, with its results to the
bit. Times are 64-bit integers, and only differences of them become floating point."""
import numpy as np

PAIRS_MIN, DRIFT_PAIRS_MIN, PAIRS_MAX, DRIFT_PPM_MAX = 3, 16, 384, 500.0


def llround(values):
    """Rounds halves away from zero, as C does."""
    whole = np.trunc(values)
    return (whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0)).astype(np.int64)


def median(values):
    count = len(values)
    if count % 2:
        return float(np.partition(values, count // 2)[count // 2])
    low, high = np.partition(values, (count // 2 - 1, count // 2))[count // 2 - 1:count // 2 + 1]
    return float((low + high) / 2)


def median_inside(values):
    """As median(). Of many values, only those between two of a sample of them are sorted, if the median is
    there."""
    count = len(values)
    if count < 1000:
        return median(values)
    low, high = np.quantile(values[::count // 256], (0.35, 0.65), method="nearest")
    below, inside = int((values < low).sum()), values[(values >= low) & (values <= high)]
    first, second = (count - 1) // 2 - below, count // 2 - below
    if first < 0 or second >= len(inside):
        return median(values)
    chosen = np.partition(inside, (first, second))
    return float((chosen[first] + chosen[second]) / 2)


class Fit:
    """`pairs`: number of pairs; 0: no fit."""
    __slots__ = ("origin", "offset", "drift", "residual", "most", "pairs")

    def __init__(self, origin=0, offset=0, drift=0.0, residual=0, most=0, pairs=0):
        self.origin, self.offset, self.drift, self.residual, self.most, self.pairs = origin, offset, drift, residual, most, pairs

    def map(self, own):
        """Converts readings of the fitted clock."""
        own = np.asarray(own, np.int64)
        if self.drift == 0:
            return own + self.offset
        return own + self.offset + llround(self.drift * (own - self.origin).astype(np.float64))


def with_drift(other, own, drift, pairs):
    first = int(other[0] - own[0])
    rest = (other - own - first).astype(np.float64) - drift * (own - own[0]).astype(np.float64)
    fit = Fit(int(own[0]), first + int(llround(np.array([median(rest)]))[0]), drift, pairs=pairs)
    rest = np.abs((other - fit.map(own)).astype(np.float64))
    fit.residual, fit.most = int(llround(np.array([median(rest)]))[0]), int(rest.max())
    return fit


def differences(values):
    """A row for each value: how much more the next ones are, up to half of all. The first follows the
    last. So any two values are there once, and twice if half of an even number is between them."""
    following = np.lib.stride_tricks.sliding_window_view(np.concatenate([values, values[:len(values) // 2]]), len(values) // 2 + 1)
    return following[:, 1:] - following[:, :1]


def median_slope(other, own):
    """A slope does not change if both points change places."""
    apart, half = differences(own - own[0]), len(own) // 2
    slopes = differences((other - own).astype(np.float64))
    some = apart != 0
    if len(own) % 2 == 0:
        some[half:, -1] = False
    np.divide(slopes, apart, out=slopes, where=some)
    slopes = slopes[some]
    return median_inside(slopes) + 0.0 if len(slopes) else 0.0


def thinned(other, own):
    """(other, own, count): at most PAIRS_MAX of the pairs, and how many there were."""
    count, used = len(own), min(len(own), PAIRS_MAX)
    index = np.arange(used) * (count - 1) // max(used - 1, 1)
    return np.asarray(other, np.int64)[index], np.asarray(own, np.int64)[index], count


def fit_clock(other, own):
    """Fits `own` to `other`, two arrays of readings at the same times."""
    return fit_thinned(*thinned(other, own))


def fit_thinned(other, own, count):
    used = len(own)
    if used < PAIRS_MIN:
        return Fit()
    fit = with_drift(other, own, 0.0, count)
    if used < DRIFT_PAIRS_MIN:
        return fit
    slope = median_slope(other, own)
    drifting = with_drift(other, own, slope, count)
    significant = drifting.residual * 5 < fit.residual * 4
    return drifting if significant and abs(slope) * 1e6 <= DRIFT_PPM_MAX else fit
