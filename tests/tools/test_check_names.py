"""tools/check_names must name a type that two files define under one name, and no other."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tool

check_names = tool.load("check_names")


class CheckNames(unittest.TestCase):
    def violations(self, *texts, folder="workloads/mine"):
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            (root / folder).mkdir(parents=True)
            for number, text in enumerate(texts):
                (root / folder / f"{number}.h").write_text(text)
            return check_names.check(root)[0]

    @staticmethod
    def within(space, text):
        return f"namespace {space} {{\n{text}\n}}  // namespace {space}\n"

    def test_a_name_of_one_namespace_is_one_type(self):
        text = self.within("fullbore", "struct A {\n};")
        self.assertEqual(self.violations(text, self.within("fullbore", "class A final : public B {\n};")),
                         ["workloads/mine/1.h:2: fullbore::A is defined in workloads/mine/0.h:2 too"])
        self.assertEqual(self.violations(text, self.within("fullbore::mine", "struct A {\n};")), [])
        self.assertEqual(self.violations(text, "struct A {\n};\n"), [])

    def test_nobody_else_means_what_is_unnamed_or_within_a_class(self):
        hidden = self.within("fullbore", "namespace {\nstruct A {\n};\n}  // namespace")
        self.assertEqual(self.violations(hidden, hidden), [])
        inner = self.within("fullbore", "struct B {\n  struct A {};\n};")
        self.assertEqual(self.violations(inner, self.within("fullbore", "struct A {\n};")), [])
        self.assertEqual(self.violations(inner, self.within("fullbore", "struct B::A {\n};")), [])

    def test_declarations_and_specialisations_define_nothing_anew(self):
        text = self.within("fullbore", "class A;\nenum class C : int;\ntemplate <>\nstruct D<int> {\n};")
        self.assertEqual(self.violations(text, text), [])
        text = self.within("fullbore", "enum class C : int {\n};")
        self.assertEqual(len(self.violations(text, text)), 1)

    def test_tests_are_programs_of_their_own(self):
        text = self.within("fullbore", "struct A {\n};")
        self.assertEqual(self.violations(text, text, folder="workloads/mine/tests"), [])


if __name__ == "__main__":
    unittest.main()
