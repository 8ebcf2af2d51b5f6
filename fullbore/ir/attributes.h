#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/base/dtype.h"

namespace fullbore {

/// The static arguments of a node, sorted by name. One generic container rather than a struct per
/// op: equality, hashing, printing, parsing and merging are written once and cannot forget a field.
class Attributes {
 public:
  using Value = std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>,
                             std::vector<double>>;
  struct Entry {
    std::string name;
    Value value;
    bool operator==(const Entry&) const = default;
  };

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);

  void set(std::string_view name, Value value);
  bool has(std::string_view name) const { return find(name) != nullptr; }

  /// The value of `name`, which must exist with type T (bool, int64_t, double, std::string, DType,
  /// std::vector<int64_t>, std::vector<double>).
  template <class T>
  const T& get(std::string_view name) const {
    const Value* value = find(name);
    FB_CHECK(value && std::holds_alternative<T>(*value), "attribute '{}' of {}", name, text());
    return std::get<T>(*value);
  }
  template <class T>
  T get_or(std::string_view name, T fallback) const {
    return has(name) ? get<T>(name) : fallback;
  }

  const std::vector<Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  /// "{axis=-1, eps=1e-05, perm=[0,2,1], weights=f[0.5,1.0]}", or "" when empty. Doubles always
  /// carry a point, an exponent, inf or nan, so that parsing gives the same alternatives back.
  std::string text() const;
  bool operator==(const Attributes&) const = default;

 private:
  const Value* find(std::string_view name) const;
  std::vector<Entry> entries_;
};

/// "1.0", "1e-05", "inf": the shortest text that reads back as the same double and as a double.
std::string double_text(double value);
/// In double quotes; quotes, backslashes and line ends within are escaped.
std::string quoted_text(std::string_view text);

}  // namespace fullbore
