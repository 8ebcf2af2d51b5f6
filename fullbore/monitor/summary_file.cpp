#include "fullbore/monitor/summary_file.h"

#include <fmt/format.h>

#include <utility>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "fullbore/base/seal.h"

namespace fullbore {

Result<SummaryFile> read_summary(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text.ok()) return Failure{text.error()};
  const SealedJson sealed = open_sealed_json(text.value());
  Result<nlohmann::json> json = parse_json(sealed.text);
  if (!json.ok()) return Failure{fmt::format("{}: it is damaged: {}", path, json.error())};
  // Members of the versions that write a checksum: where they are, it was lost.
  const bool promised = json.value().is_object() && (json.value().contains("metric_lines") ||
                                                     json.value().contains("log_bytes"));
  if (!json.value().is_object() || sealed.seal == Seal::kBroken ||
      (sealed.seal == Seal::kNone && promised))
    return Failure{
        fmt::format("{}: it is damaged: its checksum is not '{}'", path, excerpt(sealed.checksum))};
  return SummaryFile{std::move(json).value(), sealed.seal == Seal::kWhole};
}

}  // namespace fullbore
