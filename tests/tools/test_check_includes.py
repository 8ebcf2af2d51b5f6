"""tools/check_includes must name the header of the standard library that a file uses and does not include."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tool

check_includes = tool.load("check_includes")


class CheckIncludes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def violations(self, text, **headers):
        folder = self.root / "fullbore" / "base"
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in headers.items():
            (folder / f"{name}.h").write_text(content)
        (folder / "a.cpp").write_text(text)
        return check_includes.check(self.root)[0]

    def test_what_is_used_is_included(self):
        self.assertEqual(self.violations("#include <vector>\nstd::vector<int> a;\n"), [])
        self.assertEqual(self.violations("int a;\nstd::vector<int> b;\n"),
                         ["fullbore/base/a.cpp:2: std::vector needs #include <vector>"])

    def test_one_line_for_each_header(self):
        found = self.violations("std::sort(a);\nstd::ranges::sort(b);\nstd::string c;\n")
        self.assertEqual(found, ["fullbore/base/a.cpp:1: std::sort needs #include <algorithm>",
                                 "fullbore/base/a.cpp:3: std::string needs #include <string>"])

    def test_our_headers_bring_theirs(self):
        use = '#include "fullbore/base/b.h"\nstd::map<int, int> a;\n'
        far = {"b": '#pragma once\n#include "fullbore/base/c.h"\n'}
        self.assertEqual(self.violations(use, **far, c="#pragma once\n#include <map>\n"), [])
        self.assertEqual(self.violations(use, **far, c='#pragma once\n#include "fullbore/base/b.h"\n'),
                         ["fullbore/base/a.cpp:2: std::map needs #include <map>"])

    def test_headers_count_too(self):
        self.assertEqual(self.violations("", b="#pragma once\nstd::span<int> a;\n"),
                         ["fullbore/base/b.h:2: std::span needs #include <span>"])

    def test_comments_and_texts_use_nothing(self):
        self.assertEqual(self.violations('// std::vector\n/* std::map\n std::set */ f("std::span", R"(std::list)");\n'),
                         [])

    def test_a_longer_name_is_another(self):
        self.assertEqual(self.violations("std::string_view_like a; mystd::vector b; std::map_like c;\n"), [])


if __name__ == "__main__":
    unittest.main()
