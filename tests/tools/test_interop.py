#!/usr/bin/env python3
"""tools/interop: its comparisons are listed without the packages that they need, unknown ones are named."""
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def interop(*arguments):
    return subprocess.run([sys.executable, "-S", str(ROOT / "tools/interop"), *arguments], capture_output=True, text=True)


class Interop(unittest.TestCase):
    def test_comparisons_are_listed(self):
        done = interop()
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual(listed, sorted(p.stem for p in (ROOT / "tools/interops").glob("*.py")))
        self.assertTrue(all(len(line.split()) > 3 for line in done.stdout.splitlines()), done.stdout)

    def test_an_unknown_one_is_named(self):
        done = interop("tokenisers")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no comparison 'tokenisers'. Known: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
