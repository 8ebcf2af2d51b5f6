#include "workloads/latentwire/attribute_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "fullbore/data/split_mix.h"

namespace fullbore::latentwire {
namespace {

constexpr std::array<const char*, 6> kFields = {"owner", "city", "color", "object", "price", "day"};
constexpr std::array<const char*, 16> kOwners = {"Al",  "Bo",  "Da",  "El",  "Fi",  "Ga",
                                                 "Ha",  "Jo",  "bin", "dor", "fen", "lo",
                                                 "mar", "nis", "ra",  "vek"};
constexpr std::array<const char*, 16> kCities = {"Kar",  "Lun",   "Mor",  "Nor",  "Ost",  "Pel",
                                                 "Quin", "Sil",   "burg", "dale", "ford", "gate",
                                                 "holm", "mouth", "ton",  "wick"};
constexpr std::array<const char*, 16> kColors = {
    "red",  "blue",   "green",  "black",  "white", "brown", "gray",  "pink",
    "gold", "silver", "purple", "orange", "teal",  "amber", "ivory", "lime"};
constexpr std::array<const char*, 16> kObjects = {
    "lamp",  "door",  "chair", "table", "clock", "spoon", "knife",  "plate",
    "shelf", "brush", "crate", "drum",  "flute", "kite",  "ladder", "bucket"};
constexpr std::array<const char*, 7> kDays = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                              "Friday", "Saturday", "Sunday"};
constexpr uint64_t kLeastPrice = 10, kPrices = 90, kNames = 64;
constexpr uint64_t kRowPrime = 0x100000001B3U, kDocumentPrime = 7919;

/// Another rule than SplitMix64::below(), which takes all 64 bits: the corpus is defined by this one.
uint64_t below(SplitMix64& draws, uint64_t n) { return ((draws.bits() >> 32) * n) >> 32; }

std::string name_of(std::span<const char* const, 16> halves, uint64_t index) {
  return std::string(halves[index / 8]) + halves[8 + index % 8];
}

uint64_t values_of(uint64_t field) {
  constexpr std::array<uint64_t, kFields.size()> kValues = {
      kNames, kNames, kColors.size(), kObjects.size(), kPrices, kDays.size()};
  return kValues[field];
}

std::string value_of(uint64_t field, uint64_t index) {
  switch (field) {
    case 0: return name_of(kOwners, index);
    case 1: return name_of(kCities, index);
    case 2: return kColors[index];
    case 3: return kObjects[index];
    case 4: return std::to_string(kLeastPrice + index);
    default: return kDays[index];
  }
}

std::string question_about(const std::string& field) {
  return fmt::format("Question: What is the {}?\n", field);
}

}  // namespace

std::string AttributeRow::context() const {
  std::string text = "Context:";
  for (const Attribute& each : attributes)
    text += fmt::format(" The {} is {}.", each.field, each.value);
  return text + "\n";
}

std::string AttributeRow::question() const { return question_about(attributes[asked].field); }

AttributeRow attribute_row(uint64_t key, uint64_t index) {
  SplitMix64 draws(key * kRowPrime + index);
  draws.bits();
  const uint64_t count = 3 + below(draws, 4);
  std::vector<uint64_t> fields;
  while (fields.size() < count) {
    const uint64_t field = below(draws, kFields.size());
    if (std::ranges::find(fields, field) == fields.end()) fields.push_back(field);
  }
  AttributeRow row;
  for (const uint64_t field : fields)
    row.attributes.push_back({kFields[field], value_of(field, below(draws, values_of(field)))});
  row.asked = below(draws, count);
  return row;
}

std::vector<std::vector<AttributeRow::Attribute>> all_attributes() {
  std::vector<std::vector<AttributeRow::Attribute>> all(kFields.size());
  for (uint64_t field = 0; field < kFields.size(); ++field)
    for (uint64_t index = 0; index < values_of(field); ++index)
      all[field].push_back({kFields[field], value_of(field, index)});
  return all;
}

std::string attribute_document(uint64_t key, uint64_t index, int64_t pairs) {
  const AttributeRow row = attribute_row(key, index);
  SplitMix64 draws(kDocumentPrime * key + index);
  std::string text = row.context();
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const size_t asked = pair == 0 ? row.asked : below(draws, row.attributes.size());
    const AttributeRow::Attribute& attribute = row.attributes[asked];
    text +=
        fmt::format("{}{} {}\n", question_about(attribute.field), kAnswerAnchor, attribute.value);
  }
  return text;
}

}  // namespace fullbore::latentwire
