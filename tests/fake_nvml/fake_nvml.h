#pragma once

/// What the devices of the fake NVML tell. A test loads the library by its path too, and changes this by fake_nvml().
struct FakeNvml {
  int initialize = 0;  ///< what nvmlInit_v2 returns
  unsigned devices = 1;
  int lost =
      0;  ///< not 0: every question is answered by this code, as when a device falls off the bus
  unsigned load = 0;
  unsigned long long used_bytes = 0;
  unsigned celsius = 0;
  unsigned milliwatts = 0;
  unsigned long long millijoules = 0;
  unsigned long long reasons = 0;
  unsigned processes = 0;
  int shut_downs = 0;
  // Settings. Less than 0, or 0 MHz: not supported.
  unsigned clock_mhz = 0, most_clock_mhz = 0, memory_mhz = 0, most_memory_mhz = 0;
  int persistence = -1;
  unsigned limit_milliwatts = 0, most_milliwatts = 0;
};
