"""Two or more trainings that make their steps in turns, as those of `lab ablate` do (fullbore/train/turns.h): what a busy second
costs hits all alike. A training is started with one end of a socket, reports when it is ready, and is granted steps."""

import math
import os
import socket
import statistics
import struct
import subprocess

HEAD = 3  # numbers of a report before the seconds of each step: resident bytes, samples, core


class Training:
    """A process; `words` follow `fullbore train`."""

    def __init__(self, binary, words, folder):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen([str(binary), "train", *words], cwd=folder, pass_fds=[theirs.fileno()],
                                        env={**os.environ, "FULLBORE_TURNS": str(theirs.fileno())},
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        theirs.close()
        self.seconds, self.core = [], -1
        self.take_report()

    def take_report(self):
        report = self.socket.recv(8 * 5000)
        if not report:
            raise RuntimeError(self.process.stderr.read().decode()[-300:])
        numbers = struct.unpack(f"={len(report) // 8}d", report)
        self.core = int(numbers[2])
        self.seconds += numbers[HEAD:]

    def make_steps(self, count, core):
        """Begins them on that core; -1: where it is. Returns the core on which they ended."""
        self.socket.send(struct.pack("=qq", count, core))
        self.take_report()
        return self.core

    def end(self):
        """After its last step: what it does then."""
        self.process.stderr.read()
        self.socket.close()
        return self.process.wait()


def log_ratio(binary, first, second, folder, steps, second_begins, warm_up=8):
    """How much longer a step of `second` takes than one of `first`: the median of log(seconds / seconds) over steps of the same
    number, after `warm_up` of them. Words of two trainings of so many steps; one of them is started first."""
    order = [second, first] if second_begins else [first, second]
    trainings = [Training(binary, words, folder) for words in order]
    core = -1
    for step in range(steps):
        for each in trainings if step % 2 == 0 else trainings[::-1]:
            core = each.make_steps(1, core)
    codes = [each.end() for each in trainings]
    if any(codes):
        raise RuntimeError(f"the trainings ended with {codes}")
    if second_begins:
        trainings.reverse()
    a, b = (each.seconds[warm_up:] for each in trainings)
    return statistics.median(math.log(y / x) for x, y in zip(a, b))
