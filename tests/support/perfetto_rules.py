# SPDX-License-Identifier: MIT
"""Decodes a Perfetto trace and checks the rules of its trace processor:

  - the file is a sequence of packets without a byte between them
  - every track is described before it is used, and so is its parent
  - a sequence of packets begins with its clock, and each time adds to the time before
  - begins and ends of slices are in pairs, in time order on each track
  - names are ids of interned names, in packets that say that they need them
  - a counter value is on a track of a counter
  - a flow that ends has begun
  - a CPU sample has a stack of its sequence, and a frame has a function and a mapping
"""
import collections, gzip

# frames: (function, library or file, offset), the outermost first. mode: 0 if it was not on a core. count: CPU time of the process so far.
Sample = collections.namedtuple("Sample", "at tid frames mode count")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """The fields of a message: {number: [value, ...]}."""
    at, found = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            assert key & 7 == 2, key
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            assert len(value) == size
        found.setdefault(key >> 3, []).append(value)
    return found


class Checker:
    def __init__(self):
        self.tracks, self.sequences = {}, {}
        self.open, self.last, self.flows, self.ended = {}, {}, set(), set()
        self.slices = []    # (track, name, category, begin, end)
        self.counters = {}  # {track: [value, ...]}
        self.samples, self.stacks = [], {}  # stacks: by sequence, by field of InternedData

    def descriptor(self, message):
        track = fields(message)
        uuid, = track[1]
        assert uuid and uuid not in self.tracks and track.get(5, [next(iter(self.tracks), None)])[0] in {*self.tracks, None}, track
        thread = fields(track[4][0]) if 4 in track else {}
        assert not thread or (1 in thread and 2 in thread), thread
        name = (thread.get(5) or track.get(2) or [b""])[0].decode()
        self.tracks[uuid] = {"name": name, "parent": track.get(5, [0])[0], "is_counter": 8 in track, "process": fields(track[3][0]) if 3 in track else None}

    def begin(self, packet, number):
        """A sequence: its track, time so far, names and categories."""
        defaults = fields(packet[59][0])
        clocks = {clock[1][0]: clock for clock in map(fields, fields(packet[6][0])[1])}
        assert packet[13][0] & 1 and number not in self.sequences, packet
        assert clocks[64][3] == [1] and clocks[64][2] == clocks[6][2] == [0] and defaults[58] == [64], (clocks, defaults)
        self.sequences[number] = [fields(defaults[11][0])[11][0], 0, {}, {}]

    def intern(self, sequence, message):
        data = fields(message)
        for number, table in ((1, sequence[3]), (2, sequence[2])):
            for entry in data.get(number, []):
                entry = fields(entry)
                assert entry[1][0] not in table
                table[entry[1][0]] = entry[2][0].decode("utf-8")

    def intern_stacks(self, number, message):
        tables = self.stacks.setdefault(number, {field: {} for field in (5, 6, 7, 17, 19)})
        for field, entries in fields(message).items():
            for entry in map(fields, entries if field in tables else []):
                assert entry[1][0] not in tables[field], entry
                tables[field][entry[1][0]] = entry

    def sample(self, packet, number, message):
        sample, (functions, frames, stacks, paths, mappings) = fields(message), (self.stacks[number][field] for field in (5, 6, 7, 17, 19))
        shown = [(functions[frame[2][0]][2][0].decode(), paths[mappings[frame[3][0]][7][0]][2][0].decode(), frame[4][0])
                 for frame in (frames[frame] for frame in stacks[sample[4][0]][2])]
        assert packet[13] == [2] and sample[1] == [0] and sample[2][0] and shown, sample
        assert not self.samples or self.samples[-1].at <= packet[8][0], "not in the order of time"
        self.samples.append(Sample(packet[8][0], sample[3][0], shown, sample[5][0], sample[6][0]))

    def event(self, packet, sequence, message):
        event = fields(message)
        sequence[1] += packet[8][0]
        kind, (track, at, names, categories) = event[9][0], sequence
        assert packet[13][0] & 2 and 11 not in event, packet
        assert track in self.tracks and at >= self.last.get(track, 0), (event, at, self.last.get(track))
        self.last[track] = at
        if kind in (1, 3):
            name, category = names[event[10][0]], categories[event[3][0]]
        if kind == 1:
            self.open.setdefault(track, []).append((name, category, at))
        elif kind == 2:
            self.slices.append((track, *self.open[track].pop(), at))
        elif kind == 4:
            assert self.tracks[track]["is_counter"], event
            self.counters.setdefault(track, []).append(event[30][0] if 30 in event else event[44][0])
        self.flows |= set(event.get(47, []))
        for flow in event.get(48, []):
            assert flow in self.flows, flow
            self.ended.add(flow)


def check(data):
    """Returns a Checker with what the file has."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    checker, whole = Checker(), fields(data)
    assert set(whole) == {1}, set(whole)
    for packet in whole[1]:
        packet = fields(packet)
        number = packet[10][0]
        assert number and len(packet.get(12, [])) <= 1, packet
        if 59 in packet:
            checker.begin(packet, number)
        if 12 in packet and number in checker.sequences:
            checker.intern(checker.sequences[number], packet[12][0])
        elif 12 in packet:
            checker.intern_stacks(number, packet[12][0])
        if 66 in packet:
            checker.sample(packet, number, packet[66][0])
        if 60 in packet:
            checker.descriptor(packet[60][0])
        if 11 in packet:
            checker.event(packet, checker.sequences[number], packet[11][0])
    assert not any(checker.open.values()), "slices without an end"
    return checker
