#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/base/shape.h"

namespace fullbore {

/// One tensor of an example: type and bytes.
struct Array {
  TensorType type;
  std::vector<std::byte> bytes;

  Array() = default;
  explicit Array(TensorType t) : type(std::move(t)), bytes(static_cast<size_t>(type.bytes())) {}
  /// i32 [values.size()].
  static Array of(std::span<const int32_t> values) {
    Array array(TensorType{DType::i32, {static_cast<int64_t>(values.size())}});
    if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    return array;
  }
  /// The elements of an i32 array.
  std::span<int32_t> tokens() {
    FB_CHECK(type.dtype == DType::i32, "{} is read as i32", type.text());
    return {reinterpret_cast<int32_t*>(bytes.data()), static_cast<size_t>(type.elements())};
  }
  std::span<const int32_t> tokens() const { return const_cast<Array*>(this)->tokens(); }
};

/// The tensors of one example, in the order of Dataset::names().
using Example = std::vector<Array>;

/// Examples by number. An example is a pure function of its index: it may be asked for at any time,
/// in any order, from several threads at once. That is what lets datasets be stacked, and a run be
/// resumed at any position in no time. datasets.h has the ones there are.
class Dataset {
 public:
  static constexpr uint64_t kEndless = ~uint64_t{0};
  virtual ~Dataset() = default;

  /// Names of the tensors of every example.
  virtual const std::vector<std::string>& names() const = 0;
  virtual uint64_t size() const = 0;  ///< number of examples, or kEndless
  bool is_endless() const { return size() == kEndless; }

  virtual Example get(uint64_t index) const = 0;  ///< index < size()
  /// The types of get(index), where they can be had for less.
  virtual std::vector<TensorType> types(uint64_t index) const;
  /// Elements [begin, begin + count) of the vector get(index)[tensor], where they can be had for less:
  /// a document may be as long as a text.
  virtual Array part(uint64_t index, size_t tensor, int64_t begin, int64_t count) const;
  /// Where examples are batches: all the types that they come in. Those of example 0, unless said
  /// otherwise.
  virtual std::vector<std::vector<TensorType>> shapes() const { return {types(0)}; }
};
using DatasetPtr = std::shared_ptr<const Dataset>;

/// How long the examples of a finite source are, whose tensors must all be i32 [n], the same n within
/// an example. UsageError, "pack: ...", by the name of the decorator that asks.
std::vector<int64_t> example_lengths(const char* decorator, const Dataset& source);

}  // namespace fullbore
