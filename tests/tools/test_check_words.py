"""tools/check_words must find a retired word wherever it is written, and leave alone what holds it by right."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tool

check_words = tool.load("check_words")
LIST = "# comment\ngadgets?  | thread group |\n(a|b)=old | new | docs fullbore/plan\n"


class CheckWords(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("tools/retired_words", LIST)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def violations(self, name, text):
        self.write(name, text)
        return check_words.check(self.root)[0]

    def test_a_word_is_found(self):
        for name in ("fullbore/plan/a.h", "docs/a.md", "configs/a.yaml", "tests/a.cpp", "tools/a"):
            with self.subTest(name=name):
                self.assertEqual(self.violations(name, "one\ntwo gadgets\n"),
                                 [f"{name}:2: 'gadgets' is called thread group today"])
                (self.root / name).unlink()

    def test_names_of_files_count(self):
        self.assertEqual(self.violations("tests/passes/gadget.ir", ""),
                         ["tests/passes/gadget.ir:1: 'gadget' in the file's name is called thread group today"])

    def test_whole_words_alone(self):
        self.assertEqual(self.violations("docs/a.md", "egadget gadgeted gadget_of Gadget\n"), [])

    def test_paths(self):
        self.assertEqual(self.violations("fullbore/planner/a.h", "a=old\n"), [])
        self.assertEqual(self.violations("fullbore/plan/a.h", "b=old\n"),
                         ["fullbore/plan/a.h:1: 'b=old' is called new today"])

    def test_what_translates_old_words_keeps_them(self):
        for name in ("fullbore/train/retired_names.cpp", "workloads/mine/mine_keys.cpp", "workloads/mine/tests/commands/older_run/run.yaml", "CHANGELOG.md"):
            self.assertEqual(self.violations(name, "gadget\n"), [])

    def test_a_malformed_list_is_told(self):
        for text in ("gadget\n", "gadget | thread group\n", "( | a |\n", " | a |\n"):
            with self.subTest(text=text), self.assertRaises(check_words.WordsError):
                check_words.words(text)


if __name__ == "__main__":
    unittest.main()
