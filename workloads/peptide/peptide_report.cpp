#include "workloads/peptide/peptide_report.h"

#include <algorithm>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/base/text.h"
#include "workloads/peptide/spectrum_arguments.h"

namespace fullbore {

using namespace peptide;  // NOLINT: the words of these reports

namespace {

std::string_view loss_text(NeutralLoss loss) {
  if (loss == NeutralLoss::none) return "";
  return loss == NeutralLoss::water ? "-H2O" : "-NH3";
}

/// "b2", "y6++", "b4-H2O"; without a number "b", the name of a column.
std::string ion_text(const Ion& ion, bool with_number) {
  return fmt::format(
      "{}{}{}{}", ion_type_name(ion.type), with_number ? std::to_string(ion.number) : "",
      ion.charge > 1 ? std::string(static_cast<size_t>(ion.charge), '+') : "", loss_text(ion.loss));
}

/// Names of the residues, a modified terminus with its first one.
std::vector<std::string> residue_texts(const IonTable& table) {
  std::vector<std::string> texts;
  std::string ahead;
  for (const int32_t id : table.ids) {
    ahead += table.alphabet.name(id);
    if (!table.alphabet.is_residue(id)) continue;
    texts.push_back(ahead);
    ahead.clear();
  }
  return texts;
}

}  // namespace

std::string ions_report(const IonTable& table) {
  const std::vector<std::string> residues = residue_texts(table);
  const size_t n = residues.size();
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> columns;
  for (const Ion& ion : theoretical_ions(table.alphabet, table.ids, table.options)) {
    const std::string name = ion_text(ion, /*with_number=*/false);
    size_t column = 0;
    while (column < names.size() && names[column] != name) ++column;
    if (column == names.size()) {
      names.push_back(name);
      columns.emplace_back(n);
    }
    // y ions count from the other end: y_1 stands beside the last residue.
    const auto number = static_cast<size_t>(ion.number);
    columns[column][ion.type == IonType::y ? n - number : number - 1] =
        fmt::format("{:.5f}", ion.mz);
  }
  size_t width = 0;
  for (const std::string& residue : residues) width = std::max(width, residue.size());
  const double mass = neutral_mass(table.alphabet, table.ids);
  std::string text =
      fmt::format("{}: {:.5f} Da, {}+ at m/z {:.6f}\n\n", table.alphabet.text(table.ids), mass,
                  table.precursor_charge,
                  precursor_mz(mass, table.precursor_charge, table.alphabet.constants()));
  std::string line = fmt::format("{:>3} {:{}} {:>3}", "b", "", width, "y");
  for (const std::string& name : names) line += fmt::format(" {:>11}", name);
  text += line + "\n";
  for (size_t i = 0; i < n; ++i) {
    line = fmt::format("{:>3} {:{}} {:>3}", i + 1, residues[i], width, n - i);
    for (const auto& column : columns) line += fmt::format(" {:>11}", column[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string ions_json(const IonTable& table) {
  const double mass = neutral_mass(table.alphabet, table.ids);
  nlohmann::ordered_json json = {
      {"sequence", table.alphabet.text(table.ids)},
      {"residues", residue_texts(table)},
      {"masses", table.alphabet.mass_table() == MassTable::full ? "full" : "reference"},
      {"mass", mass},
      {"charge", table.precursor_charge},
      {"precursor_mz", precursor_mz(mass, table.precursor_charge, table.alphabet.constants())},
      {"ions", nlohmann::ordered_json::array()}};
  for (const Ion& ion : theoretical_ions(table.alphabet, table.ids, table.options)) {
    nlohmann::ordered_json one = {{"ion", ion_text(ion, /*with_number=*/true)},
                                  {"type", ion_type_name(ion.type)},
                                  {"number", ion.number},
                                  {"charge", ion.charge},
                                  {"loss", nullptr},
                                  {"mz", ion.mz}};
    if (ion.loss != NeutralLoss::none) one["loss"] = loss_text(ion.loss).substr(1);
    json["ions"].push_back(std::move(one));
  }
  return json_text(json);
}

std::string conversion_report(const Conversion& conversion) {
  const PreparationCounts& counts = conversion.counts;
  std::string text = fmt::format(
      "{}: {} of {} spectra, {} ({}, {} spectra/s)\n", conversion.cache, counts.kept, counts.read,
      bytes_text(static_cast<double>(conversion.cache_bytes)), duration_text(conversion.seconds),
      count_text(static_cast<double>(counts.read) / std::max(conversion.seconds, 1e-9)));
  for (size_t i = 0; i < kDropReasons; ++i) {
    if (counts.dropped[i] == 0) continue;
    text += fmt::format("{:>12} dropped: {}\n", counts.dropped[i],
                        drop_reason_text(static_cast<DropReason>(i), conversion.options));
  }
  if (counts.kept < counts.read)
    text += fmt::format("{:>12} {}\n", "listed in", conversion.left_out);
  for (const std::string& note : reading_notes(counts, conversion.options)) text += note + "\n";
  return text;
}

std::string conversion_json(const Conversion& conversion) {
  const PreparationCounts& counts = conversion.counts;
  nlohmann::ordered_json dropped;
  for (size_t i = 0; i < kDropReasons; ++i)
    dropped[std::string(drop_reason_name(static_cast<DropReason>(i)))] = counts.dropped[i];
  return json_text(nlohmann::ordered_json{{"cache", conversion.cache},
                                          {"bytes", conversion.cache_bytes},
                                          {"read", counts.read},
                                          {"kept", counts.kept},
                                          {"dropped", dropped},
                                          {"centroided", counts.profiles},
                                          {"without_single_charge", counts.ambiguous},
                                          {"left_out", conversion.left_out},
                                          {"seconds", conversion.seconds}});
}

}  // namespace fullbore
