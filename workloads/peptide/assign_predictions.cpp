#include "workloads/peptide/assign_predictions.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>
#include <unordered_map>

namespace fullbore::peptide {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

/// What follows the last `key`; "" if it is no number.
std::string_view number_after(std::string_view text, std::string_view key) {
  const size_t found = text.rfind(key);
  if (found == std::string_view::npos) return {};
  text.remove_prefix(found + key.size());
  return is_number(text) ? text : std::string_view();
}

std::string_view scan_number(std::string_view scan) {
  return is_number(scan) ? scan : number_after(scan, "scan=");
}

/// Without "ms_run[1]:".
std::string_view without_run(std::string_view text) {
  const size_t end = text.find("]:");
  return text.starts_with("ms_run[") && end != std::string_view::npos ? text.substr(end + 2) : text;
}

bool is_better(const Prediction& a, const Prediction& b) {
  if (std::isnan(a.score) || std::isnan(b.score)) return !std::isnan(a.score);
  return a.score > b.score;
}

/// Predictions by what one way of naming calls their spectra.
class Names {
 public:
  void add(std::string_view name, const Prediction& prediction) {
    const auto [entry, is_new] = predictions_.try_emplace(std::string(name), &prediction);
    if (!is_new && is_better(prediction, *entry->second)) entry->second = &prediction;
  }
  const Prediction* find(std::string_view name) const {
    if (name.empty()) return nullptr;
    const auto entry = predictions_.find(std::string(name));
    return entry == predictions_.end() ? nullptr : entry->second;
  }

 private:
  std::unordered_map<std::string, const Prediction*> predictions_;
};

struct AllNames {
  Names index;
  Names scan;
  Names name;
  Names number;  ///< scan or index: InstaNovo's

  explicit AllNames(const PredictionFile& file) {
    for (const Prediction& prediction : file.predictions) {
      const std::string_view text = without_run(prediction.spectrum);
      if (text.starts_with("index=") && is_number(text.substr(6))) {
        index.add(text.substr(6), prediction);
        continue;
      }
      const std::string_view by_scan = number_after(text, "scan=");
      if (!by_scan.empty()) scan.add(by_scan, prediction);
      name.add(text, prediction);
      const std::string_view last = is_number(text) ? text : number_after(text, ":");
      if (is_number(prediction.scan))
        number.add(prediction.scan, prediction);
      else if (!last.empty())
        number.add(last, prediction);
    }
  }

  const Prediction* by_name(const SpectrumName& spectrum) const {
    const Prediction* const found = name.find(spectrum.title);
    return found != nullptr ? found : name.find(spectrum.scan);
  }
};

}  // namespace

AssignedPredictions assign_predictions(const PredictionFile& file,
                                       std::span<const SpectrumName> spectra) {
  const AllNames names(file);
  const bool has_names =
      std::any_of(spectra.begin(), spectra.end(),
                  [&](const SpectrumName& spectrum) { return names.by_name(spectrum) != nullptr; });
  AssignedPredictions assigned;
  std::vector<bool> is_used(file.predictions.size(), false);
  for (size_t i = 0; i < spectra.size(); ++i) {
    const std::string index = std::to_string(spectra[i].index);
    const std::string_view scan = scan_number(spectra[i].scan);
    const Prediction* found = names.index.find(index);
    // A native id says more than its scan, which several controllers may have.
    if (found == nullptr && spectra[i].title.find("scan=") != std::string::npos)
      found = names.name.find(spectra[i].title);
    if (found == nullptr) found = names.scan.find(scan);
    if (found == nullptr) found = names.by_name(spectra[i]);
    if (found == nullptr && !has_names) found = names.number.find(scan.empty() ? index : scan);
    assigned.of_spectrum.push_back(found);
    if (found != nullptr) is_used[static_cast<size_t>(found - file.predictions.data())] = true;
  }
  assigned.unused = static_cast<size_t>(std::count(is_used.begin(), is_used.end(), false));
  return assigned;
}

}  // namespace fullbore::peptide
