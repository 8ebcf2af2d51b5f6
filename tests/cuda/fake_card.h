#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "fullbore/device/device.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace fullbore::cuda {

/// The path of its library.
std::string fake_driver();

/// Tests on the fake driver: each finds one card as new, and has to give back all that it takes.
class FakeCard : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  /// What the driver tells, and does wrong. Back to what it was when the test ends.
  static FakeCuda& fake();
  /// The card that failed works again, as for a new process.
  static void restart();
  /// The same, of a card that holds nothing and has no settings.
  static void reset();
  static std::shared_ptr<Device> open(const std::string& name = "cuda");
};

/// Sets a variable of the environment as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool was_set_;
};

/// The message of the error that `action` throws, of type Expected; "" if it throws none.
template <class Expected, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Expected& error) {
    return error.what();
  }
  return "";
}

}  // namespace fullbore::cuda
