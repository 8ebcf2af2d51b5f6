#!/usr/bin/env python3
"""JSON and YAML are parsed in one place each, where depth and length are limited."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PARSERS = {
    # `Json::parse`, `nlohmann::json::sax_parse`, `json::accept`, ...; and streams, which parse too.
    r"\b(?:[Jj]son|ordered_json|basic_json)\s*::\s*(?:sax_parse|parse|accept|from_\w+)\s*\(":
        "fullbore/base/json.cpp",
    r"\bYAML::(?:Parser|Load\w*)\b": "fullbore/train/config_yaml.cpp",
}


def sources():
    for folder in ("fullbore", "models", "apps", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h"):
                yield path.relative_to(ROOT).as_posix(), path.read_text()


class JsonEntry(unittest.TestCase):
    def test_no_other_source_parses(self):
        for pattern, place in PARSERS.items():
            found = {name for name, text in sources() if re.search(pattern, text)}
            self.assertEqual(found, {place}, pattern)


if __name__ == "__main__":
    unittest.main()
