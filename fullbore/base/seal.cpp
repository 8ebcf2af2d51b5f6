#include "fullbore/base/seal.h"

#include <fmt/format.h>

#include "fullbore/base/check.h"
#include "fullbore/base/hash.h"

namespace fullbore {
namespace {

constexpr size_t kDigits = 16;
constexpr std::string_view kName = "xxhash64";

// An object without members, and what it begins with when it has this one.
constexpr std::string_view kEmpty = "{}";
constexpr std::string_view kFirst = "{\"xxhash64\":\"";

/// How objects are laid out, and the member is in them.
struct Form {
  std::string_view member;
  std::string_view end;
};
constexpr Form kForms[] = {{",\n  \"xxhash64\": \"", "\n}\n"}, {",\"xxhash64\":\"", "}"}};

constexpr std::string_view kHead =
    "# The last line is the checksum of this file: copy it to edit it.\n";
constexpr std::string_view kTail = "# xxhash64 ";

}  // namespace

std::string seal_json(std::string_view text, uint64_t seed) {
  if (text == kEmpty) return fmt::format("{}{}\"}}", kFirst, hash_hex(hash_text(text, seed)));
  for (const Form& form : kForms)
    if (text.ends_with(form.end))
      return fmt::format("{}{}{}\"{}", text.substr(0, text.size() - form.end.size()), form.member,
                         hash_hex(hash_text(text, seed)), form.end);
  FB_CHECK(false, "no JSON object");
}

SealedJson open_sealed_json(std::string_view text, uint64_t seed) {
  for (const Form& form : kForms) {
    const size_t bytes = form.member.size() + kDigits + 1 + form.end.size();
    if (text.size() < bytes) continue;
    const size_t at = text.size() - bytes;
    const std::string_view checksum = text.substr(at + form.member.size(), kDigits);
    if (text.substr(at, form.member.size()) != form.member ||
        text.substr(text.size() - form.end.size() - 1, 1) != "\"" || !text.ends_with(form.end))
      continue;
    std::string whole(text.substr(0, at));
    whole += form.end;
    const bool holds = hash_hex(hash_text(whole, seed)) == checksum;
    return {holds ? Seal::kWhole : Seal::kBroken, std::move(whole), checksum};
  }
  if (text.size() == kFirst.size() + kDigits + 2 && text.starts_with(kFirst)) {
    const std::string_view checksum = text.substr(kFirst.size(), kDigits);
    const bool holds = seal_json(kEmpty, seed) == text;
    return {holds ? Seal::kWhole : Seal::kBroken, std::string(kEmpty), checksum};
  }
  const bool lost = text.find(kName) != std::string_view::npos;
  return {lost ? Seal::kBroken : Seal::kNone, std::string(text), {}};
}

std::string seal_yaml(std::string_view text) {
  std::string sealed(kHead);
  sealed += text;
  const std::string hash = hash_hex(hash_text(sealed));
  return sealed.append(kTail).append(hash).append("\n");
}

Seal yaml_seal(std::string_view text) {
  const size_t bytes = kTail.size() + kDigits + 1;
  const size_t body = text.size() < bytes ? 0 : text.size() - bytes;
  if (text.size() >= kHead.size() + bytes && text.starts_with(kHead) &&
      text.substr(body) == std::string(kTail) + hash_hex(hash_text(text.substr(0, body))) + "\n")
    return Seal::kWhole;
  const bool announced = text.find(kTail) != std::string_view::npos ||
                         text.find(kHead.substr(2, 30)) != std::string_view::npos;
  return announced ? Seal::kBroken : Seal::kNone;
}

}  // namespace fullbore
