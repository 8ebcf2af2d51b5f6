// A library with the calls of NVIDIA's management library that Fullbore makes, whose devices say what a test has scripted.
#include "tests/fake_nvml/fake_nvml.h"

namespace {
FakeNvml state;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;

template <typename Value>
int answer(Value* place, Value value) {
  if (state.lost != 0) return state.lost;
  *place = value;
  return 0;
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
int nvmlDeviceGetClockInfo(void*, int, unsigned*) { return kNotSupported; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* bits) {
  return answer(bits, state.reasons);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, void*) {
  if (const int code = answer(count, state.processes); code != 0) return code;
  return state.processes > 0 ? kInsufficientSize : 0;
}
}
