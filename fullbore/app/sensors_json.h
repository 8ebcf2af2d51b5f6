#pragma once
#include <nlohmann/json.hpp>
#include <span>

#include "fullbore/monitor/sensor.h"

namespace fullbore {

/// By name: {"unit", "value"} or {"unit", "missing"}.
nlohmann::ordered_json sensors_json(std::span<const SensorReading> readings);

}  // namespace fullbore
