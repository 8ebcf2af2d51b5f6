#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

enum class JsonKind { kObject, kArray, kString, kNumber, kBoolean, kNull, kNothing };
const char* json_kind_name(JsonKind kind);  ///< "an object", "a number", ...

/// Reads JSON from front to back, keeping nothing but what it is asked for: memory does not grow with
/// what is skipped, nor the stack with its depth. Strict (RFC 8259); texts must be Unicode.
///
///   JsonReader reader(json);
///   std::string key;
///   reader.begin_object();
///   while (reader.next_key(key)) key == "text" ? reader.read_string(text) : reader.skip();
///   if (!reader.finish()) complain(reader.error());
///
/// After the first error every method returns false, peek() kNothing, and error() says what is wrong.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  /// What the next value is, by its first character.
  JsonKind peek();
  bool begin_object();
  /// The next key of the object begun last; false at its end, which closes it.
  bool next_key(std::string& key);
  bool begin_array();
  /// Whether the array begun last has another element; false at its end, which closes it.
  bool next_element();

  bool read_string(std::string& value);
  bool read_integer(int64_t& value);  ///< a number with neither fraction nor exponent
  bool read_boolean(bool& value);
  bool skip();                        ///< the next value, whatever it is
  bool skip(std::string_view& json);  ///< the same; `json` becomes how it stands in the text

  /// True if the one value has been read to its end and nothing follows.
  bool finish();
  bool failed() const { return failed_; }
  const std::string& error() const { return error_; }  ///< "byte 17: ',' or '}' was expected"
  size_t offset() const { return at_; }

 private:
  bool fail(const std::string& reason);
  void skip_space();
  bool take(char wanted);
  bool begin(char open, JsonKind kind);
  bool next_member(char close);
  bool read_text(std::string* value);
  bool read_escape(std::string* value);
  bool read_code_unit(uint32_t& unit);
  bool skip_number(bool& whole);
  bool skip_word(std::string_view word);
  bool skip_scalar();

  static constexpr size_t kMostDepth = 512;
  std::string_view text_;
  size_t at_ = 0;
  std::vector<bool> fresh_;  ///< for each open object or array: nothing of it has been read
  bool failed_ = false;
  std::string error_;
};

}  // namespace fullbore
