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
    it was slower (missing nights apart; 0: not, or accepted), the same number where it was accepted,
    and p (NaN: not tested, as of a suspicion)."""
    shape = matrix.shape
    window, at = np.full((shape[1], WINDOW), np.nan), np.zeros(shape[1], int)
    medians, deviations, p = (np.full(shape, np.nan) for _ in range(3))
    streaks, taken_streaks = np.zeros(shape, int), np.zeros(shape, int)
    streak, total = np.zeros(shape[1], int), np.zeros(shape[1])
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
        taken_streaks[n, taken] = streaks[n, taken]
        streak[taken], streaks[n, taken] = 0, 0
        keep = here & (~slower | taken)
        window[np.flatnonzero(keep), at[keep]] = value[keep]
        at[keep] = (at[keep] + 1) % WINDOW
    return medians, deviations, streaks, taken_streaks, p


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
        self.medians, self.deviations, self.streaks, self.taken_streaks, self.p = examine(nights, places, values, accepted, has_steps)
        self.slow = self.streaks + self.taken_streaks  # also in the nights that were accepted
        self.regressed = (self.slow >= CONFIRMED) & ~(self.p >= ALPHA)
        self.confirmed = self.regressed & (self.streaks > 0)

    def extent(self):
        """What the newest night was compared with. `compared`: whether any of its places was."""
        compared = int((~np.isnan(self.medians[-1])).sum())
        return {"compared": compared > 0, "nights_before": len(self.nights) - 1, "nights_needed": NIGHTS_MIN,
                "places_compared": compared, "places_in_night": int((~np.isnan(self.values[-1])).sum())}

    def no_place_is_slower(self):
        """The verdict of a night without a regression or suspicion, in a sentence. "" if nothing was compared."""
        accepted = int((self.taken_streaks[-1] > 0).sum())
        sentence = "in the night %s no place is slower than before" % self.nights[-1]
        return "" if not self.extent()["compared"] else sentence + ", but for %d that %s accepted" % (accepted, "is" if accepted == 1 else "are") if accepted else sentence

    def not_compared(self):
        """What of the newest night could not be compared, in a sentence, or None."""
        found = self.extent()
        lacking = found["places_in_night"] - found["places_compared"]
        if found["nights_before"] < NIGHTS_MIN:
            return "nothing was compared: there are too few nights before the night %s, %d of the %d that a baseline needs" % (self.nights[-1], found["nights_before"], NIGHTS_MIN)
        if not found["compared"]:
            return "nothing was compared: no place of the night %s was there in %d nights before" % (self.nights[-1], NIGHTS_MIN)
        return "%d of %d places were not compared: they were there in fewer than %d nights before" % (lacking, found["places_in_night"], NIGHTS_MIN) if lacking else None

    def row(self, n, place):
        """A place that is slower in the night with number `n`."""
        streak, value, median, p = int(self.slow[n, place]), self.values[n, place], self.medians[n, place], self.p[n, place]
        slow = np.flatnonzero(self.slow[:n + 1, place] > 0)
        return {"state": "regression" if self.confirmed[n, place] else "suspicion", "path": self.places[place][0], "kind": self.places[place][1],
                "since": self.nights[slow[-streak]], "nights": streak, "before_ns": round(median), "after_ns": round(value), "more_ns": round(value - median),
                "percent": round(float(100 * (value / median - 1)), 2), "deviations": round(float(self.deviations[n, place]), 1),
                "p": None if np.isnan(p) else float("%.3g" % p)}

    def rows(self, n):
        """The places that are slower in a night, as `gate` reports: the outermost, and where in them."""
        found = [self.row(n, place) for place in np.flatnonzero(self.streaks[n] > 0)]
        steps = [dict(row, **{"in": row["path"]}) for row in found if row["path"] == STEPS]
        return steps + descend([row for row in found if row["path"] != STEPS])

    def end_of(self, n, place):
        """How a regression ended with the slow night `n`. None: the place was slow in its next night too."""
        if self.taken_streaks[n, place]:
            return "accepted"
        later = np.flatnonzero(~np.isnan(self.values[n + 1:, place]))
        if not len(later):
            return "open"
        return None if self.slow[n + 1 + later[0], place] else "over"

    def changes(self):
        """All regressions of the history, the newest first: the last slow night of each, and how it
        ended. An accepted night is the last of its regression."""
        found = {}
        for place in np.flatnonzero(self.regressed.any(axis=0)):
            for n in np.flatnonzero(self.regressed[:, place]):
                row, end = self.row(n, place), self.end_of(n, place)
                if not end:
                    continue
                row.update(state="regression", until=self.nights[n], end=end)
                found.setdefault((row["since"], row["until"], row["end"]), []).append(row)
        return [row for key in sorted(found, reverse=True) for row in
                [dict(row, **{"in": row["path"]}) for row in found[key] if row["path"] == STEPS] + descend([row for row in found[key] if row["path"] != STEPS])]
