#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/tensor_memory.h"
#include "fullbore/runtime/program.h"

namespace fullbore {

/// A graph's program, and the memory of its batch inputs, which are zeros at first.
class BoundProgram {
 public:
  BoundProgram(const Graph& graph, State& state, const CompileOptions& options);

  /// An input by name, T being the type of its elements; aborts when there is none.
  template <class T>
  std::span<T> input(const std::string& name) {
    const Input& found = of_name(name);
    return {reinterpret_cast<T*>(found.memory.get()), static_cast<size_t>(found.bytes) / sizeof(T)};
  }
  bool has(const std::string& name) const { return inputs_.contains(name); }
  void run() { program_.run(pointers_); }
  /// A result of the last run.
  template <class T>
  std::vector<T> result(const char* name) const {
    return program_.read_result<T>(program_.output(name));
  }

 private:
  struct Input {
    TensorMemory memory;
    int64_t bytes = 0;
  };
  const Input& of_name(const std::string& name) const;

  Program program_;
  std::map<std::string, Input> inputs_;
  std::vector<const void*> pointers_;  ///< in the order of the program's graph
};

}  // namespace fullbore
