# SPDX-License-Identifier: MIT
"""What changed over the nights of a job: the test of each place against its baseline.

The value of a place is its GPU time per rank and step (CPU time if the job has no GPU). Its baseline
is the last WINDOW nights that were not slower themselves. A place is slower in a night if its value
exceeds the median of the baseline by PERCENT % and by DEVIATIONS robust deviations. One slow night
is a suspicion; CONFIRMED in a row are a regression. Nights that were slower stay out of the baseline
until somebody accepts them.

Where the runs have steps, values of nights compare, and a regression must be significant as well:
the nights since which a place is slower are tested against its baseline (Student's t, one-sided),
and p is adjusted for all places that were tested in that night (Holm 1979). The duration of a step
is one figure of the whole job, so it is tested alone, as in `diff`."""
import numpy as np
from pperf_parts.history import STEPS

WINDOW, NIGHTS_MIN, PERCENT, DEVIATIONS, FLOOR, CONFIRMED, ALPHA = 14, 7, 3.0, 3.0, 0.002, 2, 0.01
RENAMED_FACTOR = 2  # a renamed place has at most this multiple of the time


def parent_of(path):
    """The path without its last name. A / in a name is written \\/."""
    at = path.rfind("/")
    while at > 0 and path[at - 1] == "\\":
        at = path.rfind("/", 0, at)
    return path[:max(at, 0)]


# ---- places that were renamed ----

def pairs_of(gone, new, places, current):
    """(old, new) columns of places that the same parent lost and gained in one night: those that kept
    their last name because only the parent was renamed, then the only one of a kind."""
    for column in sorted(new, key=lambda c: (len(places[c][0]), places[c])):
        path, kind = places[column]
        parent = current.get(parent_of(path), parent_of(path))
        same = [c for c in gone if places[c][1] == kind and parent_of(places[c][0]) == parent]
        kept = [c for c in same if places[c][0][len(parent):] == path[len(parent_of(path)):]]
        rivals = [c for c in new if places[c][1] == kind and parent_of(places[c][0]) == parent_of(path)]
        if kept or len(same) == len(rivals) == 1:
            old = (kept or same)[0]
            gone.remove(old)
            current[path] = places[old][0]
            yield old, column


def join_renamed(nights, places, matrix):
    """Continues the values of a renamed place under its new name. Returns the renamings."""
    here = ~np.isnan(matrix)
    first, last = here.argmax(axis=0), len(nights) - 1 - here[::-1].argmax(axis=0)
    renamed = []
    for n in np.unique(first[first > 0]):
        gone = [c for c in np.flatnonzero(last == n - 1) if here[n - 1, c] and c]
        new = [c for c in np.flatnonzero(first == n) if here[n, c] and c]
        for old, column in list(pairs_of(gone, new, places, {})) if gone else []:
            if not 1 / RENAMED_FACTOR <= matrix[n, column] / matrix[n - 1, old] <= RENAMED_FACTOR:
                continue
            renamed.append({"night": nights[n], "from": places[old][0], "to": places[column][0]})
            matrix[:n, column], matrix[:, old] = matrix[:n, old], np.nan
            first[column], last[old], here = first[old], -1, ~np.isnan(matrix)
    return renamed


# ---- the test ----

def upper_tail(t, freedom):
    """P(T > t) of Student's t for whole numbers of degrees of freedom (Abramowitz and Stegun 26.7.3)."""
    p = np.ones_like(t)
    for df in np.unique(freedom):
        of = freedom == df
        angle = np.arctan2(t[of], np.sqrt(df))
        sine, cosine = np.sin(angle), np.cos(angle)
        term = sine * (cosine if df % 2 else 1)
        area = np.zeros_like(angle)
        for k in range(df % 2, df - 1, 2):
            area += term
            term = term * cosine ** 2 * (k + 1) / (k + 2)
        area = (2 / np.pi) * (angle + area) if df % 2 else area
        p[of] = (1 - area) / 2
    return np.clip(p, 0, 1)


def holm(p):
    """p adjusted for all tests."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


class Baseline:
    """Of each place, by its last nights. `window`: values by place, NaN: none."""

    def __init__(self, window):
        ordered = np.sort(window, axis=1)
        self.count = (~np.isnan(ordered)).sum(axis=1)
        self.rows = np.arange(len(window))
        self.median = self.quantile(ordered, 0.5)
        spread = self.quantile(ordered, 0.75) - self.quantile(ordered, 0.25)
        self.deviation = np.maximum(spread / 1.349, FLOOR * self.median)
        self.window = window

    def quantile(self, ordered, q):
        at = q * np.maximum(self.count - 1, 0)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, np.maximum(self.count - 1, 0))
        return ordered[self.rows, low] + (ordered[self.rows, high] - ordered[self.rows, low]) * (at - low)

    def adjusted_p(self, of, means, nights):
        """p of the places `of`, whose mean is `means` over so many nights. Place 0 is the step."""
        p, window, count = np.full(len(of), np.nan), self.window[of], self.count[of]
        middle = np.nansum(window, axis=1) / count
        error = np.sqrt(np.nansum((window - middle[:, None]) ** 2, axis=1) / (count - 1))
        error = np.maximum(error, FLOOR * self.median[of])
        found = upper_tail((means[of] - middle) / (error * np.sqrt(1 / nights[of] + 1 / count)), count - 1)
        places = np.flatnonzero(of) > 0
        found[places] = holm(found[places])
        p[of] = found
        return p


def examine(nights, places, matrix, accepted, has_steps):
    """By night and place: the median of the baseline, the deviations from it, how many nights in a row
    it was slower (missing nights apart), and p (NaN: not tested, as of a suspicion)."""
    shape = matrix.shape
    window, at = np.full((shape[1], WINDOW), np.nan), np.zeros(shape[1], int)
    medians, deviations, p = (np.full(shape, np.nan) for _ in range(3))
    streaks, streak, total = np.zeros(shape, int), np.zeros(shape[1], int), np.zeros(shape[1])
    for n, night in enumerate(nights):
        value, here = matrix[n], ~np.isnan(matrix[n])
        base = Baseline(window)
        enough = here & (base.count >= NIGHTS_MIN)
        medians[n, enough] = base.median[enough]
        deviations[n, enough] = ((value - base.median)[enough] / base.deviation[enough])
        slower = enough & (value > base.median * (1 + PERCENT / 100)) & (value - base.median > DEVIATIONS * base.deviation)
        streak = np.where(slower, streak + 1, np.where(here, 0, streak))
        total = np.where(slower, np.where(streak == 1, 0, total) + value, total)
        streaks[n] = np.where(slower, streak, 0)
        if has_steps[n] and (streak >= CONFIRMED).any():
            found = base.adjusted_p(enough, np.where(slower, total / np.maximum(streak, 1), value), np.where(slower, streak, 1))
            p[n] = np.where(streaks[n] >= CONFIRMED, found, np.nan)
        paths = accepted.get(night, set())
        taken = np.array([None in paths or place[0] in paths for place in places]) if paths else np.zeros(shape[1], bool)
        # The level of an accepted night is the new normal. The spread of the baseline is kept.
        window[taken & slower] *= (value / base.median)[taken & slower, None]
        streak[taken], streaks[n, taken] = 0, 0
        keep = here & (~slower | taken)
        window[np.flatnonzero(keep), at[keep]] = value[keep]
        at[keep] = (at[keep] + 1) % WINDOW
    return medians, deviations, streaks, p


def descend(rows):
    """Of the places that became slower, the outermost ones, and for each the deepest place in it that
    has more than half of the excess."""
    by_path, inside, outermost = {row["path"]: row for row in rows}, {}, []
    for row in sorted(rows, key=lambda row: (len(row["path"]), row["path"])):
        above = parent_of(row["path"])
        while above and above not in by_path:
            above = parent_of(above)
        inside.setdefault(above, []).append(row)
        if not above:
            outermost.append(row)
    for row in outermost:
        place = row
        while True:
            deeper = [inner for inner in inside.get(place["path"], []) if inner["more_ns"] * 2 > place["more_ns"]]
            if not deeper:
                break
            place = max(deeper, key=lambda inner: inner["more_ns"])
        row["in"] = place["path"]
    return sorted(outermost, key=lambda row: -row["more_ns"])


class Trends:
    """All nights of a job up to one of them. `values`: places by night (NaN: absent); place 0 is the
    duration of a step. `has_steps`: by night."""

    def __init__(self, nights, places, values, has_steps, accepted):
        self.nights, self.places, self.values = nights, places, values
        self.renamed = join_renamed(nights, places, values)
        self.medians, self.deviations, self.streaks, self.p = examine(nights, places, values, accepted, has_steps)
        self.confirmed = (self.streaks >= CONFIRMED) & ~(self.p >= ALPHA)

    def row(self, n, place):
        """A place that is slower in the night with number `n`."""
        streak, value, median, p = int(self.streaks[n, place]), self.values[n, place], self.medians[n, place], self.p[n, place]
        slow = np.flatnonzero(self.streaks[:n + 1, place] > 0)
        return {"state": "regression" if self.confirmed[n, place] else "suspicion", "path": self.places[place][0], "kind": self.places[place][1],
                "since": self.nights[slow[-streak]], "nights": streak, "before_ns": round(median), "after_ns": round(value), "more_ns": round(value - median),
                "percent": round(float(100 * (value / median - 1)), 2), "deviations": round(float(self.deviations[n, place]), 1),
                "p": None if np.isnan(p) else float("%.3g" % p)}

    def rows(self, n):
        """The places that are slower in a night, as `gate` reports: the outermost, and where in them."""
        found = [self.row(n, place) for place in np.flatnonzero(self.streaks[n] > 0)]
        steps = [dict(row, **{"in": row["path"]}) for row in found if row["path"] == STEPS]
        return steps + descend([row for row in found if row["path"] != STEPS])

    def changes(self, accepted):
        """All regressions of the history, the newest first: until when each lasted, and how it ended."""
        found = {}
        for place in np.flatnonzero(self.confirmed.any(axis=0)):
            nights = np.flatnonzero(self.confirmed[:, place])
            for n in nights:
                row = self.row(n, place)
                later = np.flatnonzero(~np.isnan(self.values[n + 1:, place]))
                after = None if not len(later) else n + 1 + later[0]
                if after is not None and self.streaks[after, place] > 0:
                    continue
                taken = after is not None and {None, row["path"]} & accepted.get(self.nights[after], set()) and self.values[after, place] > 1.03 * row["before_ns"]
                row.update(until=row.pop("night", self.nights[n]), end="open" if after is None else "accepted" if taken else "over")
                found.setdefault((row["since"], row["until"], row["end"]), []).append(row)
        return [row for key in sorted(found, reverse=True) for row in
                [dict(row, **{"in": row["path"]}) for row in found[key] if row["path"] == STEPS] + descend([row for row in found[key] if row["path"] != STEPS])]
