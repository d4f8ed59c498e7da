# SPDX-License-Identifier: MIT
"""What a check of a GPU brings home. A GPU may be had for minutes only, so all is written as it comes: whatever ends the check, what it found until then
is there. Nothing begins that has no time left."""
import gzip, io, json, os, tarfile, time

TRACES_MOST = 12 << 20  # bytes of all traces that are kept


class Evidence:
    def __init__(self, folder, name, seconds=None, **head):
        self.folder, self.name, self.found = folder, name, dict(head)
        self.ends = time.monotonic() + seconds if seconds else float("inf")
        if folder:
            folder.mkdir(parents=True, exist_ok=True)

    def left(self):
        return self.ends - time.monotonic()

    def limit(self, seconds):
        """For a program that ought to take less; at most what is left."""
        return max(1, min(seconds, self.left()))

    def put(self, section, name, value):
        self.found.setdefault(section, {})[name] = value
        if not self.folder:
            return
        path = self.folder / (self.name + ".json")
        part = path.with_suffix(".part")
        part.write_text(json.dumps(self.found, indent=1) + "\n")
        os.replace(part, path)

    def keep(self, path, name):
        """A trace, among the others."""
        if not self.folder or not path.exists():
            return
        everything = self.folder / "traces.tar"
        packed = gzip.compress(path.read_bytes(), 6, mtime=0)
        if len(packed) + (everything.stat().st_size if everything.exists() else 0) > TRACES_MOST:
            return
        member = tarfile.TarInfo(name + ".bin.gz")
        member.size = len(packed)
        with tarfile.open(everything, "a") as file:
            file.addfile(member, io.BytesIO(packed))
