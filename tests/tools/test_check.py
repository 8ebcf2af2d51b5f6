"""Each check of tools/check can fail, and says aloud what it leaves out."""

import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tool

check = tool.load("check")


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.addCleanup(setattr, check, "ROOT", check.ROOT)
        check.ROOT = self.root
        self.git("init", "-q", "-b", "main")
        self.write("fullbore/LAYERS", "0 base\n1 ir\n")
        self.write("tools/retired_words", "gadgets? | thread group |\n")
        for name in ("check_layers", "check_includes", "check_words"):
            shutil.copy(tool.ROOT / "tools" / name, self.root / "tools" / name)
        shutil.copy(tool.ROOT / ".clang-format", self.root)
        shutil.copy(tool.ROOT / ".clang-tidy", self.root)
        self.write("fullbore/base/a.cpp", "int a();\n")
        self.commit()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments], cwd=self.root,
                       check=True, capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a commit")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_main(self, *arguments):
        output = io.StringIO()
        was, sys.argv = sys.argv, ["check", *arguments]
        try:
            with contextlib.redirect_stdout(output):
                code = check.main()
        finally:
            sys.argv = was
        return code, output.getvalue()

    def test_clean(self):
        code, output = self.run_main("layers", "includes", "words", "links")
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count(" ok "), 4)

    def test_scripts_that_find_something_fail_it(self):
        for name, file, text in [("layers", "fullbore/base/b.h", '#include "fullbore/ir/c.h"\n'),
                                 ("includes", "fullbore/base/b.h", "std::string a;\n"),
                                 ("words", "docs/b.md", "a gadget\n")]:
            with self.subTest(name=name):
                self.write("fullbore/ir/c.h", "")
                self.write(file, text)
                code, output = self.run_main("layers", "includes", "words")
                self.assertEqual(code, 1, output)
                self.assertIn(f"check: {name} failed", output)
                self.assertIn(f"{file}:1: ", output)
                (self.root / file).unlink()

    def test_links_to_a_deleted_workload_are_left_alone(self):
        (self.root / "docs/guide").mkdir(parents=True)
        (self.root / "docs/guide/fish.md").symlink_to("../../workloads/fish/guide.md")
        self.write("docs/a.md", "[a page](guide/fish.md)\n")
        self.assertEqual(self.run_main("links")[0], 0)
        self.write("workloads/fish/other.md", "")
        code, output = self.run_main("links")
        self.assertEqual(code, 1)
        self.assertIn("docs/a.md: links to guide/fish.md, which is not there", output)

    def test_pages_that_are_too_long(self):
        self.write("README.md", "a line\n" * 100)
        self.assertEqual(self.run_main("lengths")[0], 0)
        self.write("README.md", "a line\n" * 101)
        code, output = self.run_main("lengths")
        self.assertEqual(code, 1)
        self.assertIn("README.md: 101 lines, of 100 at most", output)

    def test_a_script_that_breaks_fails_it(self):
        self.write("fullbore/LAYERS", "nonsense\n")
        self.assertEqual(self.run_main("layers")[0], 1)

    @unittest.skipUnless(shutil.which(check.FORMAT), check.FORMAT + " is not installed")
    def test_format(self):
        self.assertEqual(check.check_format().faults, [])
        self.write("fullbore/base/new.h", "int   a ( ) ;\n")
        self.assertEqual(check.check_format().faults,
                         ["fullbore/base/new.h: not formatted: clang-format-14 -i fullbore/base/new.h"])

    def test_files_of_a_folder_that_is_no_repository(self):
        self.write("build/generated.h", "")
        shutil.rmtree(self.root / ".git")
        self.assertEqual(check.files(".h", ".cpp"), ["fullbore/base/a.cpp"])

    def test_a_missing_tool_is_said_aloud(self):
        self.addCleanup(setattr, check, "FORMAT", check.FORMAT)
        self.addCleanup(setattr, check, "TIDY", check.TIDY)
        check.FORMAT, check.TIDY = "no-such-format", ["no-such-tidy"]
        code, output = self.run_main("format", "tidy")
        self.assertEqual(code, 0)
        self.assertEqual(output.count("skipped"), 2)
        self.assertEqual(output.count("is not installed"), 2)

    def test_links(self):
        self.write("docs/a.md", "# The first\n[b](b.md) [c](#the-first) [d](https://example.org) [e](b.md#of-b)\n")
        self.write("docs/b.md", "## Of `b`\n```\n[not](there.md)\n```\n")
        self.assertEqual(check.check_links().faults, [])
        self.write("docs/a.md", "[b](c.md) [b](b.md#of-c)\n")
        self.assertEqual(check.check_links().faults,
                         ["docs/a.md: links to c.md, which is not there",
                          "docs/a.md: links to b.md#of-c, and b.md has no such heading"])

    def test_changed_sources(self):
        a, b, c = (f"fullbore/base/{name}.cpp" for name in "abc")
        self.assertEqual(check.changed_sources(), ([a], 0))  # of the last commits
        self.write(b, "int b();\n")
        self.assertEqual(check.changed_sources(), ([b, a], 0))  # not added
        self.git("checkout", "-q", "-b", "branch")
        self.commit()
        self.assertEqual(check.changed_sources(), ([b], 0))
        self.write(a, "int c();\n")
        self.assertEqual(check.changed_sources(), ([a, b], 0))
        self.git("update-ref", "refs/remotes/origin/main", "branch")  # main as it is elsewhere goes before the one here
        self.assertEqual(check.changed_sources(), ([a, b], 0))
        self.write(c, "int c();\n")
        self.commit()
        self.assertEqual(check.changed_sources(), ([a, c], 0))

    def test_changed_sources_of_a_long_history(self):
        self.addCleanup(setattr, check, "MOST_OF_HISTORY", check.MOST_OF_HISTORY)
        check.MOST_OF_HISTORY = 2
        names = [f"fullbore/base/{name}.cpp" for name in "bcde"]
        for name in names:
            self.write(name, "int b();\n")
            self.commit()
        (self.root / names[3]).unlink()  # what is gone does not count
        self.commit()
        self.write(names[0], "int c();\n")
        self.assertEqual(check.changed_sources(), ([names[0], names[2], names[1]], 1))

    def test_flags(self):
        command = "/usr/bin/ccache /usr/bin/c++ -DA -I/x -O2 -Werror -Winvalid-pch -include /b/pch.hxx -MD -MT a.o -MF d -o a.o -c /a.cpp"
        self.assertEqual(check.flags(command, "/a.cpp"), ("/usr/bin/c++", ["-DA", "-I/x", "-O2"]))

    @unittest.skipUnless(any(map(shutil.which, check.TIDY)), "clang-tidy is not installed")
    def test_tidy(self):
        build = self.root / "build"
        file = self.root / "fullbore" / "base" / "a.cpp"
        self.write("build/compile_commands.json",
                   json.dumps([{"file": str(file), "command": f"/usr/bin/c++ -std=c++20 -o a.o -c {file}"}]))
        self.assertEqual(check.check_tidy(build, 40).note, "1 of 1 changed files")  # of the last commit
        self.write("fullbore/base/a.cpp", "typedef int Number;\nNumber a();\n")
        outcome = check.check_tidy(build, 40)
        self.assertIn("modernize-use-using", "".join(outcome.faults))
        self.write("fullbore/base/a.cpp", "using Number = int;\nNumber a();\n")
        outcome = check.check_tidy(build, 40)
        self.assertEqual((outcome.faults, outcome.note), ([], "1 of 1 changed files"))
        self.assertIn("NOT LOOKED AT within 0 s: fullbore/base/a.cpp", check.check_tidy(build, 0).note)

    @unittest.skipUnless(shutil.which("c++"), "there is no compiler")
    def test_alone(self):
        build = self.root / "build"
        header, source = self.root / "fullbore/base/b.h", self.root / "fullbore/base/a.cpp"
        verified = build / "base_verify_interface_header_sets/fullbore/base/b.h.cxx"
        self.write("build/compile_commands.json", json.dumps([
            {"file": str(source), "command": f"/usr/bin/c++ -std=c++20 -include /b/pch.hxx -o a.o -c {source}"},
            {"file": str(verified), "command": f"/usr/bin/c++ -std=c++20 -o b.o -c {verified}"}]))
        self.write("fullbore/base/b.h", "#pragma once\nint b();\n")
        outcome = check.check_alone(build, 40)
        self.assertEqual((outcome.faults, outcome.note), ([], "2 of 2 files"))
        self.write("fullbore/base/b.h", "#pragma once\nstd::string b();\n")
        (fault,) = check.check_alone(build, 40).faults
        self.assertIn("fullbore/base/b.h does not compile alone", fault)
        self.write("fullbore/base/a.cpp", "std::string a();\n")
        self.assertEqual(len(check.check_alone(build, 40).faults), 2)
        self.assertIn("0 of 2 files", check.check_alone(build, 0).note)

    def test_newest_sources(self):
        self.write("fullbore/base/b.cpp", "")
        self.write("fullbore/base/tests/c.cpp", "")
        self.commit()
        wanted = lambda name: name.endswith(".cpp") and check.history.is_ours(name)
        self.assertEqual(check.history.newest_first(self.root, wanted), ["fullbore/base/b.cpp", "fullbore/base/a.cpp"])
        self.write("fullbore/base/a.cpp", "int d();\n")
        self.assertEqual(check.history.newest_first(self.root, wanted), ["fullbore/base/a.cpp", "fullbore/base/b.cpp"])


if __name__ == "__main__":
    unittest.main()
