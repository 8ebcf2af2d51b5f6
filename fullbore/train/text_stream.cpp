#include "fullbore/train/text_stream.h"

#include <algorithm>

#include "fullbore/data/utf8.h"

namespace fullbore {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

// Could more bytes make a character of these, which are none yet?
bool is_unfinished(std::string_view bytes) {
  // Complete it with the lowest and the highest continuation bytes: one of them fits if any does.
  for (const char filler : {'\x80', '\xBF'}) {
    std::string whole(bytes);
    for (size_t added = 0; added < 3; ++added) {
      whole += filler;
      if (decode_utf8(whole, [](char32_t) {}) == whole.size()) return true;
    }
  }
  return false;
}

// Moves what is complete from `bytes` to `text`.
void move_characters(std::string& bytes, std::string& text) {
  size_t at = 0;
  while (at < bytes.size()) {
    const std::string_view rest = std::string_view(bytes).substr(at);
    const size_t valid = decode_utf8(rest, [](char32_t) {});
    text += rest.substr(0, valid);
    at += valid;
    if (valid == rest.size() || is_unfinished(rest.substr(valid))) break;
    append_utf8(text, kReplacement);
    ++at;
  }
  bytes.erase(0, at);
}

}  // namespace

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, std::string());
}

std::string TextStream::release(bool everything) {
  size_t end = text_.size();
  for (const std::string& stop : stops_) {
    const size_t found = text_.find(stop);
    if (found == std::string::npos) continue;
    end = std::min(end, found);
    stopped_ = true;
  }
  if (!stopped_ && !everything)
    for (const std::string& stop : stops_)
      for (size_t held = std::min(stop.size() - 1, text_.size()); held > 0; --held)
        if (text_.ends_with(std::string_view(stop).substr(0, held))) {
          end = std::min(end, text_.size() - held);
          break;
        }
  std::string shown = text_.substr(0, end);
  text_.erase(0, end);
  return shown;
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return "";
  bytes_ += bytes;
  move_characters(bytes_, text_);
  return release(false);
}

std::string TextStream::finish() {
  if (stopped_) return "";
  if (!bytes_.empty()) append_utf8(text_, kReplacement);
  bytes_.clear();
  return release(true);
}

}  // namespace fullbore
