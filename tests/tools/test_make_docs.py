"""tools/make_docs must write what LAYERS and the command say, and notice when the page says otherwise."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import tool

make_docs = tool.load("make_docs")

PASSES = """[
  {"name": "fold", "summary": "evaluates constants", "because": "first | makes the rest smaller", "optional": true},
  {"name": "fuse", "summary": "joins chains", "because": "after precision", "optional": false}
]"""


class MakeDocs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = pathlib.Path(folder.name) / "page.md"
        self.binary = pathlib.Path(folder.name) / "fullbore"
        self.answer(PASSES)
        self.page.write_text("before\n<!-- begin floors -->\nstale\n<!-- end floors -->\nbetween\n"
                             "<!-- begin passes -->\nstale\n<!-- end passes -->\nafter\n")

    def answer(self, text, status=0):
        self.binary.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
        self.binary.chmod(0o755)

    def run_tool(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
            status = make_docs.main(["--page", str(self.page), *arguments])
        return status, errors.getvalue()

    def test_writes_both_parts_and_nothing_else(self):
        self.assertEqual(self.run_tool("--binary", str(self.binary))[0], 0)
        page = self.page.read_text()
        for part in ["before\n", "between\n", "after\n", "0 | base ", "device [kernel_ir", "apps/",
                     "p0 --> p1 --> p2 --> p3 --> p4 --> p5", "| 1 | `fold` | evaluates constants | first \\| makes"]:
            self.assertIn(part, page)
        self.assertNotIn("stale", page)

    def test_check_notices_a_stale_page_and_leaves_it_alone(self):
        before = self.page.read_text()
        self.assertEqual(self.run_tool("--check", "--binary", str(self.binary))[0], 1)
        self.assertEqual(self.page.read_text(), before)
        self.run_tool("--binary", str(self.binary))
        self.assertEqual(self.run_tool("--check", "--binary", str(self.binary))[0], 0)
        self.answer(PASSES.replace("fuse", "merge"))
        self.assertEqual(self.run_tool("--check", "--binary", str(self.binary))[0], 1)
        self.assertEqual(self.run_tool("--check")[0], 0)  # without a binary the passes are not judged

    def test_answers_every_operator_of_aten(self):
        self.page.write_text(self.page.read_text() + "<!-- begin aten -->\n<!-- end aten -->\n")
        self.assertEqual(self.run_tool()[0], 0)
        self.assertIn("| `mm` | `matmul` |  |", self.page.read_text())
        table = lambda answers, names="mm\nnonzero\n": make_docs.aten(names, answers, lambda name: name == "matmul")
        good = "mm | matmul |\nnonzero | - | its length depends on data"
        self.assertIn("| `nonzero` | no | its length depends on data |", table(good))
        for answers, message in [("mm | matmul |", "nonzero of core_aten.txt is not answered"),
                                 (good.replace("matmul", "matmull"), "declares matmull()"),
                                 (good + "\nmn | matmul |", "mn is not in core_aten.txt"),
                                 (good + "\nmm | matmul |", "once for a name"),
                                 ("mm | - |\n" + good[12:], "neither a function nor a reason")]:
            with self.assertRaises(make_docs.DocsError) as caught:
                table(answers)
            self.assertIn(message, str(caught.exception))

    def test_parts_may_stand_in_pages_of_their_own(self):
        other = self.page.with_name("other.md")
        floors, passes = self.page.read_text().split("between\n")
        self.page.write_text(floors)
        other.write_text(passes)
        both = ("--page", str(other), "--binary", str(self.binary))
        self.assertEqual(self.run_tool("--check", *both)[0], 1)
        self.assertEqual(self.run_tool(*both)[0], 0)
        self.assertIn("0 | base ", self.page.read_text())
        self.assertIn("| 1 | `fold` |", other.read_text())
        self.assertEqual(self.run_tool("--check", *both)[0], 0)
        other.write_text(self.page.read_text() + other.read_text())
        self.assertIn("it is in 2", self.run_tool(*both)[1])

    def test_a_broken_command_or_page_is_an_error(self):
        self.answer("[]", status=3)
        self.assertIn("failed", self.run_tool("--binary", str(self.binary))[1])
        self.answer('[{"name": "fold"}]')
        self.assertIn("no `summary`", self.run_tool("--binary", str(self.binary))[1])
        self.answer("not json")
        self.assertEqual(self.run_tool("--binary", str(self.binary))[0], 2)
        self.page.write_text("no markers\n")
        self.assertEqual(self.run_tool()[0], 2)


if __name__ == "__main__":
    unittest.main()
