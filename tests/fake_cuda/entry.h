#pragma once
#include <cstring>
#include <mutex>

#include "fullbore/device/cuda/driver/result_code.h"
#include "tests/fake_cuda/machine.h"

namespace fullbore::fake_cuda {

/// The card that the calling thread's calls are about; less than 0: none.
inline thread_local int current_card = -1;

/// The beginning of every call: holds the machine for it, counts it, and makes it fail if it has to.
class Entry {
 public:
  enum class Needs : uint8_t { nothing, context };
  explicit Entry(const char* name, Needs needs = Needs::context) : lock_(machine().mutex) {
    FakeCuda& told = machine().told;
    ++told.calls;
    const bool is_named = *told.fail_call == '\0' || std::strcmp(told.fail_call, name) == 0;
    if (told.fail_at > 0 && is_named && --told.fail_at == 0) {
      code_ = static_cast<int>(told.fail_code);
      std::strncpy(told.failed, name, sizeof told.failed - 1);
    } else if (needs == Needs::context) {
      code_ = current_card < 0 ? cuda::kInvalidContext : machine().lost;
    }
  }
  /// Not kSuccess: this is what the call returns.
  int code() const { return code_; }
  /// Of a call that orders things: is it to do nothing?
  bool is_forgotten(const char* name) const {
    FakeCuda& told = machine().told;
    ++told.orders;
    if (told.lose_at == 0 || --told.lose_at > 0) return false;
    std::strncpy(told.lost_order, name, sizeof told.lost_order - 1);
    return true;
  }
  Card& card() const { return machine().cards[current_card]; }

 private:
  std::scoped_lock<std::recursive_mutex> lock_;
  int code_ = cuda::kSuccess;
};

}  // namespace fullbore::fake_cuda
