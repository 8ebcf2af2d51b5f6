#include "workloads/chess/pgn_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fullbore/base/excerpt.h"
#include "fullbore/data/utf8.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/san.h"

namespace fullbore::chess {
namespace {

constexpr std::string_view kSpace = " \t\v\f";
constexpr std::string_view kWordEnds = " \t\v\f{}()[];$!?";
constexpr size_t kMostCommentBytes = 4096;  // that are looked at

void skip_space(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
}

std::string as_utf8(std::string_view text) {
  if (decode_utf8(text, [](char32_t) {}) == text.size()) return std::string(text);
  std::string found;
  for (const char byte : text) append_utf8(found, static_cast<unsigned char>(byte));
  return found;
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stopped != text.data() + text.size() || !(std::abs(value) < 1e7))
    return {};
  return value;
}

// "1:02:03.4" in seconds.
std::optional<double> clock_of(std::string_view text) {
  double seconds = 0;
  for (int part = 0; part < 4; ++part) {
    const size_t colon = text.find(':');
    const std::optional<double> value = number(text.substr(0, colon));
    if (!value || *value < 0) return {};
    seconds = 60 * seconds + *value;
    if (colon == std::string_view::npos) return seconds;
    text.remove_prefix(colon + 1);
  }
  return {};
}

// "0.35", "-1.2,18", "#-3".
std::optional<double> evaluation_of(std::string_view text) {
  text = text.substr(0, text.find(','));
  if (!text.starts_with('#')) return number(text);
  const std::optional<double> moves = number(text.substr(1));
  if (!moves || std::abs(*moves) > 999) return {};
  return std::signbit(*moves) ? -1000 - *moves : 1000 - *moves;
}

// The value of "[%name value]" in a comment; empty without it.
std::string_view annotation(std::string_view comment, std::string_view name) {
  const size_t begin = comment.find(name);
  if (begin == std::string_view::npos) return {};
  comment.remove_prefix(begin + name.size());
  skip_space(comment);
  return comment.substr(0, comment.find_first_of("] \t"));
}

bool is_result(std::string_view word) {
  return word == "1-0" || word == "0-1" || word == "1/2-1/2" || word == "1/2" || word == "*";
}

// "12." and "12..." in front of a move, with which they may be one word.
std::string_view without_number(std::string_view word) {
  const size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  const size_t dots = std::min(word.find_first_not_of('.', digits), word.size());
  return digits == word.size() || dots > digits ? word.substr(dots) : word;
}

}  // namespace

std::string_view PgnGame::tag(std::string_view name) const {
  for (const auto& [each, value] : tags)
    if (each == name) return value;
  return {};
}

Result<PgnReader> PgnReader::open(const std::string& path) {
  Result<FileLines> lines = FileLines::open(path);
  if (!lines) return Failure{lines.error()};
  return PgnReader(std::move(lines).value());
}

void PgnReader::reset(PgnGame& game) {
  game = PgnGame();
  game.start = position_ = start_position();
  comment_.clear();
  tag_bytes_ = 0;
  variations_ = 0;
  in_comment_ = has_movetext_ = ended_ = false;
}

void PgnReader::report(PgnGame& game, const std::string& problem) {
  if (game.problem.empty())
    game.problem = fmt::format("{}:{}: {}", lines_.path(), lines_.number(), problem);
}

bool PgnReader::begins_game(const PgnGame& game, std::string_view text) const {
  if (!text.starts_with('[')) return false;
  if (text.starts_with("[Event \"")) return has_movetext_ || !game.tag("Event").empty();
  return has_movetext_ && !in_comment_ && variations_ == 0;
}

Result<bool> PgnReader::next(PgnGame& game) {
  reset(game);
  while (true) {
    if (!pending_) {
      const Result<bool> more = lines_.next();
      if (!more) return Failure{more.error()};
      if (!more.value()) break;
    }
    pending_ = false;
    std::string_view text = lines_.line();
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (lines_.number() == 1) {
      if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
        return Failure{
            fmt::format("{}: is UTF-16; games are read as UTF-8 or Latin-1", lines_.path())};
      if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    }
    if (begins_game(game, text) || (ended_ && text.find_first_not_of(kSpace) != text.npos)) {
      pending_ = true;
      finish(game);
      return true;
    }
    if (text.starts_with('%')) continue;
    read_line(game, text);
  }
  if (game.line == 0) return false;
  finish(game);
  return true;
}

void PgnReader::finish(PgnGame& game) {
  if (in_comment_) report(game, "a comment was left open");
  if (variations_ > 0) report(game, "a variation was left open");
}

void PgnReader::read_line(PgnGame& game, std::string_view text) {
  while (true) {
    if (in_comment_) {
      const size_t end = text.find('}');
      if (variations_ == 0 && comment_.size() < kMostCommentBytes)
        comment_.append(text.substr(0, std::min(end, kMostCommentBytes))).push_back(' ');
      if (end == std::string_view::npos) return;
      text.remove_prefix(end + 1);
      in_comment_ = false;
      if (!game.moves.empty()) {
        PgnMove& move = game.moves.back();
        if (const auto clock = clock_of(annotation(comment_, "[%clk"))) move.clock = clock;
        if (const auto each = evaluation_of(annotation(comment_, "[%eval"))) move.evaluation = each;
      }
      comment_.clear();
    }
    skip_space(text);
    if (text.empty() || text[0] == ';') return;
    if (game.line == 0) game.line = lines_.number();
    const char first = text[0];
    if (first == '[' && !has_movetext_) {
      if (!read_tag(game, text)) return;
      continue;
    }
    const size_t end = std::min(text.find_first_of(kWordEnds), text.size());
    has_movetext_ |= end > 0 || first == '(';
    if (end > 0) {
      if (variations_ == 0) read_word(game, text.substr(0, end));
      text.remove_prefix(end);
      continue;
    }
    text.remove_prefix(1);
    if (first == '{') {
      in_comment_ = true;
    } else if (first == '(') {
      ++variations_;
    } else if (first == ')') {
      if (--variations_ < 0) report(game, "a variation ends that has not begun");
      variations_ = std::max(variations_, 0);
    } else if (first == '$') {
      text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
    } else if (first == '[' || first == ']' || first == '}') {
      report(game, fmt::format("a '{}' among the moves", first));
    }
  }
}

// [Name "value"]; false where the rest of the line cannot be read.
bool PgnReader::read_tag(PgnGame& game, std::string_view& text) {
  const std::string_view whole = text;
  text.remove_prefix(1);
  skip_space(text);
  const std::string_view name = text.substr(0, text.find_first_of(" \t\"]"));
  text.remove_prefix(name.size());
  skip_space(text);
  std::string value;
  bool closed = false;
  if (text.starts_with('"')) {
    size_t at = 1;
    for (; at < text.size(); ++at) {
      // Some writers escape nothing: a quote ends the value where a bracket follows.
      if (text[at] == '"') {
        const size_t next = text.find_first_not_of(kSpace, at + 1);
        closed = next != std::string_view::npos && text[next] == ']';
        if (closed) break;
      }
      const bool escapes =
          text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == '"' || text[at + 1] == '\\');
      if (escapes) ++at;
      value += text[at];
    }
    text.remove_prefix(std::min(at + 1, text.size()));
    skip_space(text);
  }
  if (!closed || name.empty()) {
    report(game, fmt::format("expected [Name \"value\"], found '{}'", excerpt(whole)));
    return false;
  }
  text.remove_prefix(1);
  tag_bytes_ += name.size() + value.size();
  if (game.tags.size() >= kMostTags || tag_bytes_ > kMostTagBytes) {
    report(game, "too many tags");
    return true;
  }
  game.tags.emplace_back(as_utf8(name), as_utf8(value));
  if (name != "FEN") return true;
  if (std::count(value.begin(), value.end(), ' ') == 3) value += " 0 1";  // as in EPD
  if (const FenError error = parse_fen(value, game.start); error != FenError::kNone)
    report(game, "FEN: " + describe_fen_error(error, value));
  game.has_start = true;
  position_ = game.start;
  return true;
}

void PgnReader::read_word(PgnGame& game, std::string_view word) {
  if (is_result(word)) {
    game.result = word == "1/2" ? "1/2-1/2" : word;
    ended_ = true;
    return;
  }
  word = without_number(word);
  if (!word.empty() && word.find_first_not_of(".-+#=/,") == word.npos && word != "--") return;
  if (word.empty() || !game.problem.empty()) return;
  if (word == "ep" || word == "e.p." || word == "N" || word == "D") return;  // "exd6 e.p.", "Nf3 N"
  play(game, word);
}

void PgnReader::play(PgnGame& game, std::string_view word) {
  const int32_t at = position_.full_moves;
  if (ended_) return report(game, fmt::format("'{}' stands behind the result", excerpt(word)));
  if (game.moves.size() >= kMostMoves)
    return report(game, fmt::format("more than {} half-moves", kMostMoves));
  Move move;
  const SanError error = parse_san(position_, word, move);
  if (error != SanError::kNone)
    return report(game, fmt::format("move {}: '{}' is {} in {}", at, excerpt(word),
                                    san_error_name(error), fen_text(position_)));
  make_move(position_, move);
  game.moves.push_back({move, {}, {}});
}

}  // namespace fullbore::chess
