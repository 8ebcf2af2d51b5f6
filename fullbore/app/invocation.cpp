#include "fullbore/app/invocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "fullbore/base/text.h"

namespace fullbore {
namespace {

std::vector<std::string>& kept() {
  static std::vector<std::string> words = {"fullbore"};
  return words;
}

bool is_control(char c) { return (c >= 0 && c < ' ') || c == 0x7f; }

std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "%+,-./:=@_";
  const auto is_plain = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  if (std::ranges::none_of(word, is_control)) return "'" + replace_all(word, "'", "'\\''") + "'";
  std::string text = "$'";
  for (const char c : word) {
    if (is_control(c))
      text += fmt::format("\\{:03o}", static_cast<int>(c));
    else
      text += (c == '\'' || c == '\\') ? std::string{'\\', c} : std::string{c};
  }
  return text + "'";
}

}  // namespace

const std::vector<std::string>& command_line() { return kept(); }

void keep_command_line(int argc, const char* const* argv) {
  if (argc > 0) kept().assign(argv, argv + argc);
}

std::string shell_command(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + quoted(word);
  return line;
}

}  // namespace fullbore
