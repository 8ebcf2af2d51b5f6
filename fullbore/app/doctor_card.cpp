#include "fullbore/app/doctor_card.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <utility>

#include "fullbore/app/output.h"
#include "fullbore/base/error.h"
#include "fullbore/device/registry.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCard = "cuda";

void print_row(const std::string& name, const std::string& text) {
  print_output("  {:<12} {}\n", name, text);
}

template <class Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json settings_json(const CardSettings& settings) {
  return {{"index", settings.index},
          {"name", settings.name},
          {"clock_mhz", json_of(settings.clock_mhz)},
          {"most_clock_mhz", json_of(settings.most_clock_mhz)},
          {"memory_mhz", json_of(settings.memory_mhz)},
          {"most_memory_mhz", json_of(settings.most_memory_mhz)},
          {"persistence", json_of(settings.persistence)},
          {"limit_watts", json_of(settings.limit_watts)},
          {"most_watts", json_of(settings.most_watts)},
          {"held_by", json_of(settings.held_by)},
          {"commands", settings.commands()}};
}

}  // namespace

CardDiagnosis diagnose_card() {
  CardDiagnosis card;
  try {
    const std::shared_ptr<Device> device = open_device(kCard);
    card.hardware = device->facts().hardware;
    card.free_bytes = own_memory_bytes(kCard).value_or(-1);
    try {
      card.peaks = refresh_machine(*device);
    } catch (const Error& error) {
      card.no_peaks = error.what();
    }
  } catch (const Error& error) {
    card.hardware = error.what();
  }
  Result<std::vector<CardSettings>> settings = read_card_settings();
  if (settings.ok())
    card.settings = std::move(settings).value();
  else
    card.no_settings = settings.error();
  return card;
}

void print_card(const CardDiagnosis& card) {
  if (card.peaks) {
    const MachinePeaks& peaks = card.peaks->peaks;
    print_output("Measured peaks of the card\n");
    print_row("fp32", fmt::format("{:.1f} TFLOP/s  ({})", peaks.fp32_flops / 1e12,
                                  card.peaks->fp32_method));
    print_row("tf32", fmt::format("{:.1f} TFLOP/s  ({})", peaks.tf32_flops / 1e12,
                                  card.peaks->tf32_method));
    print_row("bf16", fmt::format("{:.1f} TFLOP/s  ({})", peaks.bf16_flops / 1e12,
                                  card.peaks->bf16_method));
    print_row("memory",
              fmt::format("{:.1f} GB/s  (copies, read and written)", peaks.bytes_per_second / 1e9));
  } else if (!card.no_peaks.empty()) {
    print_output("Measured peaks of the card\n");
    print_row("none", card.no_peaks);
  }
  const bool is_usable = card.free_bytes >= 0;
  if (card.settings.empty() && (!is_usable || card.no_settings.empty())) return;
  print_output("Settings of cards\n");
  if (!card.no_settings.empty()) print_row("unknown", card.no_settings);
  for (const CardSettings& settings : card.settings) {
    const std::string name = fmt::format("gpu{}", settings.index);
    print_row(name, settings.name);
    for (const std::string& text : settings.texts()) print_row("", text);
    for (const std::string& command : settings.commands()) print_row("to change", command);
  }
}

void add_card(Json& json, const CardDiagnosis& card) {
  json["card"] = card.hardware;
  json["card_free_bytes"] = card.free_bytes;
  json["card_peaks"] = Json();
  if (card.peaks)
    json["card_peaks"] = {{"fp32_flops", card.peaks->peaks.fp32_flops},
                          {"tf32_flops", card.peaks->peaks.tf32_flops},
                          {"bf16_flops", card.peaks->peaks.bf16_flops},
                          {"bytes_per_second", card.peaks->peaks.bytes_per_second}};
  Json settings = Json::array();
  for (const CardSettings& each : card.settings) settings.push_back(settings_json(each));
  json["card_settings"] = settings;
}

}  // namespace fullbore
