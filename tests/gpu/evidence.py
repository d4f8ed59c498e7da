# SPDX-License-Identifier: MIT
"""The evidence of a check of a GPU. A GPU may be available for minutes only, so everything is written
as it comes: whatever ends the check, what it found until then is in the folder. Nothing begins for
which no time is left."""
import gzip, io, json, os, shutil, sys, tarfile, time

TRACES_MOST = 12 << 20  # bytes of all traces that are kept


class Evidence:
    def __init__(self, folder, name, seconds=None, **head):
        self.folder, self.name, self.found = folder, name, dict(head)
        self.ends = time.monotonic() + seconds if seconds is not None else float("inf")
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
        try:
            part.write_text(json.dumps(self.found, indent=1) + "\n")
            os.replace(part, path)
        except OSError as error:
            print("%s cannot be written: %s" % (path, error), file=sys.stderr, flush=True)

    def keep(self, path, name):
        """A trace, among the others. A check that is killed meanwhile leaves the others as they were."""
        if not self.folder or not path.exists():
            return
        try:
            self._keep(path, name)
        except (OSError, tarfile.TarError) as error:
            self.put("not kept", name, "%s: %s" % (type(error).__name__, error))

    def _keep(self, path, name):
        everything = self.folder / "traces.tar"
        part = everything.with_suffix(".part")
        packed = gzip.compress(path.read_bytes(), 6, mtime=0)
        if len(packed) + (everything.stat().st_size if everything.exists() else 0) > TRACES_MOST:
            return
        member = tarfile.TarInfo(name + ".bin.gz")
        member.size = len(packed)
        if everything.exists():
            shutil.copyfile(everything, part)
        with tarfile.open(part, "a") as file:
            file.addfile(member, io.BytesIO(packed))
        os.replace(part, everything)
