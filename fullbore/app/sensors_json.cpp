#include "fullbore/app/sensors_json.h"

#include <cmath>

namespace fullbore {

nlohmann::ordered_json sensors_json(std::span<const SensorReading> readings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const SensorReading& each : readings) {
    json[each.name] = {{"unit", each.unit}};
    if (each.missing.empty())
      json[each.name]["value"] =
          std::isnan(each.value) ? nlohmann::ordered_json() : nlohmann::ordered_json(each.value);
    else
      json[each.name]["missing"] = each.missing;
  }
  return json;
}

}  // namespace fullbore
