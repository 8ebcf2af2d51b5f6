"""The campaign that compares the time of the tests that two builds share, on programs of tests that are scripts."""

import json
import pathlib
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tool

campaign = tool.load("campaign")
same_tests = campaign.load("same_tests")

# A program of tests. `TESTS` maps "Suite.Name" to what the test does: seconds of processor time, "fails", "skips" or "dies".
SCRIPT = """#!{python}
import json, os, sys, time
TESTS = {tests!r}
if sys.argv[1] == "--gtest_list_tests":
    suites = {{}}
    for name in TESTS:
        suite, _, test = name.partition(".")
        suites.setdefault(suite, []).append(test)
    print("Running main() from a test")
    for suite, names in suites.items():
        print(suite + "." + ("  # TypeParam = int" if suite == "Typed" else ""))
        for name in names:
            print("  " + name + "  # GetParam() = 1")
    sys.exit(0)
flags = dict(line.split("=", 1) for line in open(sys.argv[1].split("=", 1)[1]).read().split())
report = {{"testsuites": []}}
for name in flags["--gtest_filter"].split(":"):
    what = TESTS[name]
    if what == "dies":
        os.write(1, b"last words")
        os._exit(1)
    if isinstance(what, float):
        while time.process_time() < what:
            pass
    suite, _, test = name.partition(".")
    entry = {{"name": test, "result": "SKIPPED" if what == "skips" else "COMPLETED"}}
    if what == "fails":
        entry["failures"] = [{{"failure": "planted"}}]
    report["testsuites"].append({{"name": suite, "testsuite": [entry]}})
json.dump(report, open(flags["--gtest_output"].removeprefix("json:"), "w"))
"""


class SameTests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, build, name, tests):
        path = self.folder / build / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SCRIPT.format(python=sys.executable, tests=tests))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run_campaign(self, **settings):
        context = campaign.Context(1, self.folder / "new", {"old": str(self.folder / "old"), **settings})
        context.progress = lambda text: None
        result = same_tests.run(context)
        self.assertEqual(context.settings, {}, "every setting is known")
        json.dumps(result)
        return result

    def test_tests_are_found_where_they_went(self):
        self.program("old", "test_house", {"A.One": 0.2, "Typed/0.Two/1": 0.2, "A.Gone": 9.0, "A.DISABLED_Off": 9.0})
        self.program("new", "test_room", {"A.One": 0.1, "A.New": 9.0, "A.DISABLED_Off": 9.0})
        self.program("new", "test_other_room", {"Typed/0.Two/1": 0.1})
        result = self.run_campaign()
        self.assertEqual(result["failures"], [])
        self.assertEqual((result["tries"], result["listed"], result["left_out"]), (2, {"old": 3, "new": 3}, []))
        self.assertEqual({(group["old"], group["new"]) for group in result["programs"]},
                         {("test_house", "test_room"), ("test_house", "test_other_room")})
        self.assertLess(result["ratio"], 0.8)

    def test_slower_ones_fail(self):
        self.program("old", "test_room", {"A.One": 0.2})
        self.program("new", "test_room", {"A.One": 0.6})
        failures = self.run_campaign()["failures"]
        self.assertEqual(len(failures), 1)
        self.assertIn("of the time", failures[0])
        self.assertEqual(self.run_campaign(limit="9")["failures"], [])

    def test_what_does_not_pass_on_both_sides_is_left_out(self):
        self.program("old", "test_room", {"A.One": 0.1, "A.Two": "fails", "A.Three": 0.1})
        self.program("new", "test_room", {"A.One": 0.1, "A.Two": 0.1, "A.Three": "skips"})
        result = self.run_campaign(limit="9")
        self.assertEqual((result["tests"], result["left_out"]), (1, ["A.Three", "A.Two"]))

    def test_a_name_of_two_programs_is_left_out(self):
        for build in ("old", "new"):
            self.program(build, "test_room", {"A.One": 0.1, "A.Twice": 0.1})
        self.program("new", "test_other_room", {"A.Twice": 0.1})
        self.assertEqual(self.run_campaign(limit="9")["tests"], 1)

    def test_a_program_that_dies_is_named(self):
        self.program("old", "test_room", {"A.One": 0.1})
        self.program("new", "test_room", {"A.One": "dies"})
        with self.assertRaisesRegex(RuntimeError, "test_room ended with 1 .*last words"):
            self.run_campaign()

    def test_builds_without_tests(self):
        self.program("new", "test_room", {"A.One": 0.1})
        with self.assertRaisesRegex(campaign.Skip, "no bin/test_"):
            self.run_campaign()
        self.program("old", "test_room", {"A.Other": 0.1})
        with self.assertRaisesRegex(campaign.Skip, "in common"):
            self.run_campaign()
        with self.assertRaisesRegex(campaign.Skip, "turns=0"):
            self.run_campaign(turns="0")


if __name__ == "__main__":
    unittest.main()
