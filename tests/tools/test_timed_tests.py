"""tools/timed_tests tells what passed, what failed, and what there was no time for."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tool

timed_tests = tool.load("timed_tests")


class TimedTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def put(self, *tests):
        lines = []
        for name, command, properties in tests:
            lines.append(f'add_test({name} sh -c "{command}")')
            if properties:
                lines.append(f"set_tests_properties({name} PROPERTIES {properties})")
        (self.folder / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")

    def run_main(self, seconds):
        output = io.StringIO()
        was, sys.argv = sys.argv, ["timed_tests", str(self.folder), str(seconds)]
        try:
            with contextlib.redirect_stdout(output):
                code = timed_tests.main()
        finally:
            sys.argv = was
        return code, output.getvalue()

    def test_all_pass(self):
        self.put(("long", "exit 0", "COST 5"), ("a.b", "exit 0", ""), ("away", "exit 77", "SKIP_RETURN_CODE 77"))
        self.assertEqual(timed_tests.tests_of(self.folder), ["a.b", "away", "long"])
        code, output = self.run_main(60)
        self.assertEqual((code, output.splitlines()[-1]), (0, "2 passed, 0 failed, 1 skipped"))

    def test_a_failure_is_shown(self):
        self.put(("good", "exit 0", ""), ("bad", "echo words; exit 3", ""))
        code, output = self.run_main(60)
        self.assertEqual((code, output.splitlines()[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("== bad", output)
        self.assertIn("words", output)

    def test_what_there_is_no_time_for_is_named(self):
        self.put(("good", "exit 0", ""), ("other", "exit 1", ""))
        code, output = self.run_main(0)
        self.assertEqual(code, 0)
        self.assertIn("NOT RUN, for 0 s were over: good, other", output)

    def test_a_test_that_ctest_does_not_find_is_a_failure(self):
        self.put(("good", "exit 0", ""))
        with contextlib.redirect_stdout(io.StringIO()):
            results = timed_tests.run_tests(self.folder, ["other"], 60, 1)
        self.assertEqual(results["other"][0], "FAILED")

    def test_no_tests_are_a_failure(self):
        self.put()
        self.assertEqual(self.run_main(60)[0], 1)


if __name__ == "__main__":
    unittest.main()
