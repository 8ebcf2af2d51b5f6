#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/monitor/card_settings.h"
#include "fullbore/monitor/machine.h"

namespace fullbore {

/// What the doctor finds of NVIDIA's cards. That there is none is no finding: most machines have none.
struct CardDiagnosis {
  std::string hardware;     ///< what the first one is; or why none can be used
  int64_t free_bytes = -1;  ///< of its memory; less than 0: there is none
  std::optional<Machine> peaks;
  std::string no_peaks;                ///< why they were not measured; "" where there is no card
  std::vector<CardSettings> settings;  ///< of all cards
  std::string no_settings;             ///< why none are known
};

/// Opens the card, measures its peaks (288 MiB of its memory, a second or less), and reads its settings. Changes none.
CardDiagnosis diagnose_card();
/// Rows of the measured peaks and of the settings, with the commands that would change them; nothing where there is no card.
void print_card(const CardDiagnosis& card);
/// "card", "card_free_bytes", "card_peaks" and "card_settings".
void add_card(nlohmann::ordered_json& json, const CardDiagnosis& card);

}  // namespace fullbore
