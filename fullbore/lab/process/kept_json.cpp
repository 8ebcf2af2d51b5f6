#include "fullbore/lab/process/kept_json.h"

#include <fmt/format.h>

#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "fullbore/base/seal.h"

namespace fullbore {

Status write_kept_json(const std::string& path, const nlohmann::ordered_json& json) {
  return write_file_atomically(
      path, seal_json(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n'));
}

Result<nlohmann::json> parse_kept_json(const std::string& text, const std::string& path) {
  const SealedJson sealed = open_sealed_json(text);
  if (sealed.seal != Seal::kWhole)
    return Failure{fmt::format("{}: it is damaged: its checksum is not that of its text", path)};
  Result<nlohmann::json> parsed = parse_json(sealed.text);
  if (!parsed.ok()) return Failure{fmt::format("{}: {}", path, parsed.error())};
  return parsed;
}

}  // namespace fullbore
