#include "fullbore/ckpt/manifest.h"

#include <fmt/format.h>

#include <charconv>

#include "fullbore/base/hash.h"
#include "fullbore/ckpt/flat_json.h"

namespace fullbore {
namespace {

constexpr int kFormat = 1;
constexpr std::string_view kZeros = "0000000000000000";
// How the text ends: its own checksum, then this.
constexpr std::string_view kEnd = "\"\n}\n";

bool parse_hash(const JsonValue& value, uint64_t& hash) {
  const std::string& text = value.text;
  if (value.kind != JsonValue::Kind::kText || text.size() != kZeros.size()) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  return error == std::errc() && end == text.data() + text.size();
}

/// A file of the folder itself, whatever the manifest's author had in mind.
bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
}

}  // namespace

std::string encode_manifest(const Manifest& manifest) {
  std::string text = fmt::format("{{\n  \"format\": {},\n  \"files\": {{", kFormat);
  std::string_view comma;
  for (const auto& [name, entry] : manifest) {
    text += fmt::format("{}\n    {}: {{\"bytes\": {}, \"xxhash64\": \"{}\"}}", comma,
                        quoted_json(name), entry.bytes, hash_hex(entry.hash));
    comma = ",";
  }
  text += fmt::format("\n  }},\n  \"xxhash64\": \"{}{}", kZeros, kEnd);
  text.replace(text.size() - kEnd.size() - kZeros.size(), kZeros.size(), hash_hex(hash_text(text)));
  return text;
}

Result<Manifest> parse_manifest(std::string_view text) {
  if (text.size() < kZeros.size() + kEnd.size() || !text.ends_with(kEnd))
    return Failure{fmt::format("{} bytes that do not end like a manifest", text.size())};
  const size_t place = text.size() - kEnd.size() - kZeros.size();
  std::string unsigned_text(text);
  unsigned_text.replace(place, kZeros.size(), kZeros);
  const std::string found = hash_hex(hash_text(unsigned_text));
  if (found != text.substr(place, kZeros.size()))
    return Failure{fmt::format("its checksum is {}, {} was expected", found,
                               quoted_json(text.substr(place, kZeros.size())))};
  // The checksum holds: what follows is of another version, or was made by hand.
  const Result<FlatJson> json = parse_flat_json(text);
  if (!json.ok()) return Failure{json.error()};
  const auto format = json.value().find({"format"});
  if (format == json.value().end() || format->second.text != std::to_string(kFormat))
    return Failure{fmt::format(
        "format {} is not known; {} is: written by a newer Fullbore",
        format == json.value().end() ? "" : format->second.text.substr(0, 40), kFormat)};
  Manifest manifest;
  for (const auto& [path, value] : json.value()) {
    if (path.size() != 3 || path[0] != "files") continue;
    ManifestEntry& entry = manifest[path[1]];
    const bool is_bytes = path[2] == "bytes" && value.kind == JsonValue::Kind::kUnsigned;
    if (is_bytes) entry.bytes = value.number;
    const bool is_hash = path[2] == "xxhash64" && parse_hash(value, entry.hash);
    if (!is_file_name(path[1]) || (!is_bytes && !is_hash))
      return Failure{fmt::format("the entry '{}' is malformed", path[1].substr(0, 80))};
  }
  return manifest;
}

}  // namespace fullbore
