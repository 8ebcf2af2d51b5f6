"""Contenders as processes that obey the protocol of bench/peers/README.md."""
import atexit
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import time


LINES_OF_LOG = 20  # of what a side that ended had said


class Unavailable(Exception):
    """A side that cannot run here, with its reason and the last lines that it wrote."""

    def __init__(self, reason, log=()):
        super().__init__(reason)
        self.log = list(log)


class Side:
    """One contender, whose process runs from now on. Between its blocks it sleeps on its input."""

    def __init__(self, name, command, environment):
        self.name = name
        self.command = [str(word) for word in command]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            env={**os.environ, **environment, "BENCH_STARTED": repr(time.monotonic())}, start_new_session=True)
        atexit.register(self.end)
        self.blocks = []
        self.slow = False  # warm after two steps, and measured by single ones

    def await_ready(self, limit=None):
        """Itself, when its first step is made. Unavailable if that is not so within `limit` seconds, if there is one."""
        self.ready = self.answer(limit, "compile" if "compile" in self.name else "make its first step")
        return self

    def answer(self, limit=None, deed="answer"):
        if not select.select([self.process.stdout], [], [], limit)[0]:
            self.end()
            raise Unavailable(f"did not {deed} within {limit:.0f} s", self.last_lines())
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            last = self.last_lines()
            self.close()
            raise Unavailable(last[-1].strip() if last else f"ended with status {status}", last)
        return json.loads(line)

    def last_lines(self):
        self.errors.seek(0)
        return [text for text in self.errors.read().splitlines() if text.strip()][-LINES_OF_LOG:]

    def run(self, steps, limit=None):
        """Unavailable if the process ends, or if it takes longer than `limit` seconds."""
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return self.answer(limit)

    def warm_up(self, seconds, least=3):
        """At least so many steps. Returns the seconds that one takes in the end."""
        block = self.run(least)
        while (spent := block["steps"] * block["seconds_per_step"]) < seconds:
            block = self.run(max(1, min(1000, int((seconds - spent) / block["seconds_per_step"]) + 1)))
            seconds -= spent
        return block["seconds_per_step"]

    def processor_seconds(self):
        """Of all its threads so far, to the nanosecond."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except (OSError, IndexError):
                pass  # the thread has ended
        return total * 1e-9

    def end(self):
        """With all its children: compilers that nobody waits for any more would take the others' time."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it ended by itself
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


def await_silence(sides, limit=5.0):
    """Returns when no side does anything: idle threads of OpenMP spin for a while before they sleep, and
    would take the next side's time. False if they have not come to rest within the limit."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        before = sum(side.processor_seconds() for side in sides)
        time.sleep(0.02)
        if sum(side.processor_seconds() for side in sides) - before < 0.0005:
            return True
    return False
