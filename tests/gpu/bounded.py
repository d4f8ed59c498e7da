# SPDX-License-Identifier: MIT
"""Runs a program within a time limit that holds whatever the program does. A program that hangs in
the GPU's driver cannot be killed, and its children may keep its output open: neither is waited for."""
import collections, os, subprocess, tempfile, time

KILL_S = 5  # for the program to be gone after SIGKILL
Ended = collections.namedtuple("Ended", "returncode stdout stderr seconds")


class TooLong(Exception):
    """The program did not end in time. `stdout`, `stderr`: what it printed until then."""

    def __init__(self, command, seconds, stdout, stderr, stacks=""):
        super().__init__("%s did not end within %d s; it printed: %s" % (command[:120], seconds, (stdout + stderr).decode(errors="replace")[-800:]))
        self.stdout, self.stderr, self.stacks = stdout, stderr, stacks


def bounded(arguments, cwd, env, seconds, look=None):
    """Returns an Ended. `look`: called with the process id of a program that takes too long, before it
    is killed; its result is in TooLong.stacks."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        process = subprocess.Popen([str(a) for a in arguments], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        late, stacks = False, ""
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            late, stacks = True, look(process.pid) if look else ""
            process.kill()
            try:
                process.wait(KILL_S)
            except subprocess.TimeoutExpired:
                stacks += "\nSIGKILL does not end it"
        took = time.monotonic() - begin
        # From the beginning of each file, whatever the position that a child shares.
        said = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in (out, err)]
        if late:
            raise TooLong(" ".join(map(str, arguments)), seconds, *said, stacks=stacks)
        return Ended(process.returncode, *said, round(took, 2))
