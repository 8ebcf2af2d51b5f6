#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// One file of a text: plain UTF-8, one document; or JSON lines, of which each is one.
struct TextFile {
  std::string path;
  uint64_t bytes = 0;
  bool is_json_lines = false;  ///< by its name: *.jsonl, *.ndjson
};

/// All that a text is read from, in order.
struct TextSources {
  std::string name;  ///< as it was asked for, for messages
  std::vector<TextFile> files;
  std::string field = "text";  ///< of each JSON line
  uint64_t bytes() const;
};

/// What `path` means: a file; a folder (every file below it whose name, and whose folders' names, do
/// not begin with a dot); or a pattern such as "books/*.txt". Files stand in the order of their paths;
/// of a folder or pattern, empty ones are left out. Failure: nothing is there, or nothing but empty
/// files.
Result<TextSources> find_text(const std::string& path, const std::string& field = "text");

/// Standard input as a file in `folder` (created when missing), named by its content, so that it can
/// be read again: its path. Memory does not grow with it.
Result<std::string> keep_standard_input(const std::string& folder, int input = 0,
                                        FileSystem& files = system_files());

/// xxHash64 of the bytes of one file.
struct FileHash {
  uint64_t bytes = 0;
  uint64_t hash = 0;
  bool operator==(const FileHash&) const = default;
};

/// What the text is, wherever its files lie.
struct ContentHash {
  std::vector<FileHash> files;
  std::string field;  ///< empty if no file is JSON lines
  uint64_t bytes() const;
  uint64_t hash() const;  ///< of one plain file, that of its bytes
};
Result<ContentHash> hash_text_sources(const TextSources& sources);

}  // namespace fullbore
