#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fullbore/base/tensor_memory.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/config.h"

namespace fullbore::energy_flow {

/// A graph's program on a trained State, and the memory of its batch inputs.
class BatchProgram {
 public:
  /// Within what engine.memory_budget leaves: MemoryError.
  BatchProgram(const Graph& graph, State& state, const Config& config,
               const std::shared_ptr<Arena>& arena = nullptr);

  /// Elements of input `input` from element `at` on, T being their type.
  template <class T>
  void fill(size_t input, std::span<const T> values, size_t at = 0) {
    std::memcpy(memory_[input].get() + at * sizeof(T), values.data(), values.size_bytes());
  }
  /// Row `row` of input `input`, of `count` numbers, f32.
  void set(size_t input, int64_t row, const float* from, int64_t count);
  void run() { program_.run(inputs_); }
  /// All of it, T being the type of its elements.
  template <class T>
  std::vector<T> result(std::string_view name) const {
    return program_.read_result<T>(program_.output(name));
  }
  int64_t number(std::string_view name) const { return result<int64_t>(name)[0]; }

 private:
  Program program_;
  std::vector<TensorMemory> memory_;
  std::vector<const void*> inputs_;
};

}  // namespace fullbore::energy_flow
