// Calls of functions that are not in the text: the driver links its own.
#include <cstring>

#include "tests/support/ptx/machine.h"
#include "tests/support/ptx/parse.h"

namespace fullbore::ptx {
namespace {

template <class T>
T passed(Lane& lane, const Instruction& i, size_t operand) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  T result;
  std::memcpy(&result,
              lane.reach(Space::local, lane.slots()[i.slots[operand]], kBytes, kBytes, false),
              sizeof(T));
  return result;
}

void set_condition(Lane& lane, const Instruction& i) {
  lane.set_condition(passed<uint64_t>(lane, i, 0), passed<uint32_t>(lane, i, 1));
}

}  // namespace

Execute driver_function(std::string_view name) {
  return name == "cudaGraphSetConditional" ? set_condition : nullptr;
}

}  // namespace fullbore::ptx
