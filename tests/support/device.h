#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/registry.h"
#include "fullbore/runtime/state.h"

namespace fullbore::testing_support {

inline std::shared_ptr<Device> cpu_device(int threads) { return open_device("cpu", threads); }

/// The values of an entry, written back when it ends: for (float& x : Edited<float>(state, "w")) x = 1;
template <class T>
class Edited {
 public:
  Edited(State& state, std::string name)
      : state_(state), name_(std::move(name)), values_(state.read<T>(name_)) {}
  ~Edited() { state_.write(name_, values_); }
  Edited(const Edited&) = delete;
  Edited& operator=(const Edited&) = delete;

  auto begin() { return values_.begin(); }
  auto end() { return values_.end(); }
  size_t size() const { return values_.size(); }
  T& operator[](size_t i) { return values_[i]; }

 private:
  State& state_;
  std::string name_;
  std::vector<T> values_;
};

}  // namespace fullbore::testing_support
