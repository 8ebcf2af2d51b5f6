#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/data/text_lines.h"

namespace fullbore::long_context {

/// The objects of a file one by one: of JSON lines, a line each; or of one JSON list, however it is
/// broken into lines. Memory stays at one object.
class JsonRecords {
 public:
  static Result<JsonRecords> open(const std::string& path);

  /// The next object's text, for another to parse, valid until the next call; false at the end.
  /// Failure names file and line.
  Result<bool> next(std::string_view& json);
  /// "file:line: " and the message, for the line where the object began.
  Failure failure(std::string_view message) const { return lines_.failure(line_, message); }

 private:
  explicit JsonRecords(TextLines lines) : lines_(std::move(lines)) {}
  Result<bool> next_in_list(std::string_view& json);
  bool take_from_line();

  TextLines lines_;
  bool begun_ = false;
  bool is_list_ = false;
  bool list_ended_ = false;
  uint64_t line_ = 0;      ///< where the object began
  std::string_view rest_;  ///< of the current line, of a list
  std::string object_;     ///< of a list: what there is of it
  int64_t depth_ = 0;
  bool in_text_ = false;
  bool escaped_ = false;
};

/// The fields of one object by their names. The first thing that is wrong stays in error(), and what
/// is read after it changes nothing.
class JsonRecord {
 public:
  /// The text must outlive it.
  explicit JsonRecord(std::string_view json);

  bool has(const std::string& name) const { return fields_.contains(name); }
  void read(const std::string& name, std::string& text);
  /// A list of texts and numbers, or one of them; of a number, how it is written.
  void read(const std::string& name, std::vector<std::string>& texts);
  /// The same, but the field may be null or missing: then there are none.
  void read_if_any(const std::string& name, std::vector<std::string>& texts);
  /// A text that is one of these.
  void read(const std::string& name, std::string& text, const std::vector<std::string>& choices);
  void fail(std::string message);

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  const std::string_view* find(const std::string& name);

  std::map<std::string, std::string_view> fields_;
  std::string error_;
};

}  // namespace fullbore::long_context
