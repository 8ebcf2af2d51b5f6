#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/monitor/sensor.h"

namespace fullbore {

/// Of all sensors those of NVIDIA's devices alone, by the library that the environment names (SensorOptions).
std::unique_ptr<SensorSource> card_sensors();

/// What NVIDIA's devices say of this moment, of the readings of sensors: "gpu0: utilization 93 %, memory 812 of 81559 MiB,
/// 412 W, 1980 MHz, 61 C", one line for each device. What is not known is left out, and so is a device of which nothing is.
std::vector<std::string> card_lines(std::span<const SensorReading> readings);

}  // namespace fullbore
