// A library with the calls of NVIDIA's management library that Fullbore makes, whose devices say what a test has scripted.
#include "tests/fake_nvml/fake_nvml.h"

#include <cstdlib>
#include <cstring>

namespace {
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;

FakeNvml from_environment();
FakeNvml state = from_environment();

template <typename Value>
int answer(Value* place, Value value) {
  if (state.lost != 0) return state.lost;
  *place = value;
  return 0;
}
int answer_if_known(unsigned* place, unsigned value) {
  return value == 0 ? kNotSupported : answer(place, value);
}
constexpr int kMemoryClock = 2;

/// Of a process that a test only starts: FULLBORE_FAKE_NVML="settings" has a card whose settings are not the best.
FakeNvml from_environment() {
  FakeNvml made;
  const char* const text = std::getenv("FULLBORE_FAKE_NVML");
  if (text == nullptr || std::strcmp(text, "settings") != 0) return made;
  made.reasons = 0x24;
  made.clock_mhz = 1410;
  made.most_clock_mhz = 1980;
  made.memory_mhz = made.most_memory_mhz = 3201;
  made.persistence = 0;
  made.limit_milliwatts = 600'000;
  made.most_milliwatts = 700'000;
  return made;
}
}  // namespace

extern "C" {
FakeNvml* fake_nvml() { return &state; }

int nvmlInit_v2() { return state.initialize; }
int nvmlShutdown() {
  ++state.shut_downs;
  return 0;
}
const char* nvmlErrorString(int code) {
  switch (code) {
    case kNotSupported: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 15: return "GPU is lost";
    default: return "Unknown Error";
  }
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = state.devices;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = &state;
  return index < state.devices ? 0 : 2;
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* rates) { return answer(rates, state.load); }
int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 1ULL << 34;
  return answer(memory + 2, state.used_bytes);
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  return answer(celsius, state.celsius);
}
int nvmlDeviceGetPowerUsage(void*, unsigned* power) { return answer(power, state.milliwatts); }
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* energy) {
  return answer(energy, state.millijoules);
}
int nvmlDeviceGetClockInfo(void*, int type, unsigned* mhz) {
  return answer_if_known(mhz, type == kMemoryClock ? state.memory_mhz : state.clock_mhz);
}
int nvmlDeviceGetMaxClockInfo(void*, int type, unsigned* mhz) {
  return answer_if_known(mhz, type == kMemoryClock ? state.most_memory_mhz : state.most_clock_mhz);
}
int nvmlDeviceGetName(void*, char* text, unsigned bytes) {
  std::strncpy(text, "Fake card", bytes);
  return state.lost;
}
int nvmlDeviceGetPersistenceMode(void*, int* is_on) {
  return state.persistence < 0 ? kNotSupported : answer(is_on, state.persistence);
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  return answer_if_known(milliwatts, state.limit_milliwatts);
}
int nvmlDeviceGetPowerManagementLimitConstraints(void*, unsigned* least, unsigned* most) {
  *least = 0;
  return answer_if_known(most, state.most_milliwatts);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  return answer(bits, state.reasons);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  if (const int code = answer(count, state.processes); code != 0) return code;
  return state.processes > 0 ? kInsufficientSize : 0;
}
}
