#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "fullbore/base/result.h"

namespace fullbore {

/// Takes one field out of lines of JSON. Every failure names the file, the line and the field.
class JsonLinesReader {
 public:
  JsonLinesReader(std::string path, std::string field)
      : path_(std::move(path)), field_(std::move(field)) {}

  /// Appends the text of the field; of a line of nothing but white space, nothing. Failure: no JSON
  /// object, the field is missing (what there is instead is named) or is no text.
  Status append_document(std::string_view line, uint64_t line_number, std::string& text);

 private:
  Failure missing(std::string_view line, uint64_t line_number) const;

  std::string path_;
  std::string field_;
  std::string key_;
  std::string value_;
};

}  // namespace fullbore
