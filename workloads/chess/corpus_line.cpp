#include "workloads/chess/corpus_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "fullbore/base/excerpt.h"
#include "fullbore/data/text_lines.h"
#include "workloads/chess/arbiter_reward.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/policy_reward.h"

namespace fullbore::chess {
namespace {

/// Words of a line with the places at which they stand.
struct Words {
  std::vector<std::string_view> words;
  std::vector<size_t> begins;
};

Words words_of(std::string_view line) {
  Words all;
  for (size_t at = line.find_first_not_of(' '); at != line.npos;) {
    const size_t end = std::min(line.find(' ', at), line.size());
    all.words.push_back(line.substr(at, end - at));
    all.begins.push_back(at);
    at = line.find_first_not_of(' ', end);
  }
  return all;
}

Failure wrong(const char* field, std::string_view found, std::string_view expected) {
  return Failure{fmt::format("{} is '{}'; {} was expected", field, excerpt(found), expected)};
}

/// FEN of a prompt, its board compact. Failure: the field that is wrong.
Result<std::string> checked_fen(std::string_view text, const char* field) {
  std::string fen = compact_fen(text);
  Position position;
  if (const FenError error = parse_fen(fen, position); error != FenError::kNone)
    return Failure{fmt::format("{}: {}", field, describe_fen_error(error, fen))};
  return fen;
}

constexpr size_t kFenFields = 6;

class PolicyLine {
 public:
  PolicyLine(std::string_view line, const CorpusOptions& options, CorpusCounts& counts)
      : line_(line), options_(options), counts_(counts), words_(words_of(line)) {}

  Result<std::optional<ChessRecord>> record() {
    if (const Status fields = read_fields(); !fields.ok()) return Failure{fields.error()};
    const size_t best =
        static_cast<size_t>(std::max_element(evals_.begin(), evals_.end()) - evals_.begin());
    size_t label =
        static_cast<size_t>(std::find(moves_.begin(), moves_.end(), best_) - moves_.begin());
    if (label == moves_.size()) return wrong("B:", best_, "one of the moves behind M:");
    ChessRecord record;
    record.fen = fen_;
    record.prompt =
        fmt::format("P: {}", line_.substr(words_.begins[1], completion_begin_ - words_.begins[1]));
    record.completion = line_.substr(completion_begin_);
    if (options_.legacy_black_label) {
      if (std::count(evals_.begin(), evals_.end(), evals_[best]) > 1) {
        ++counts_.ambiguous;
        return std::optional<ChessRecord>();
      }
      if (label != best) {
        ++counts_.relabelled;
        record.completion.replace(record.completion.rfind(best_), best_.size(), moves_[best]);
        label = best;
      }
    }
    std::vector<size_t> order(moves_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return a == label || b == label ? a == label && b != label : evals_[a] > evals_[b];
    });
    for (const size_t index : order)
      record.top.push_back({std::string(moves_[index]), evals_[index]});
    if (const Result<PolicyTruth> truth = policy_truth(fen_, record.top); !truth.ok())
      return Failure{fmt::format("M: {}", truth.error())};
    return std::optional(std::move(record));
  }

 private:
  std::string_view word(size_t index) const {
    return index < words_.words.size() ? words_.words[index] : std::string_view();
  }

  Status read_fields() {
    constexpr size_t kLabel = kFenFields + 1;  // behind "P:"
    if (words_.words.size() <= kLabel || word(kLabel) != "M:")
      return wrong("what stands behind the FEN", word(kLabel), "M:");
    const size_t fen_begin = words_.begins[1];
    const size_t fen_end = words_.begins[kFenFields] + word(kFenFields).size();
    Result<std::string> fen = checked_fen(line_.substr(fen_begin, fen_end - fen_begin), "FEN");
    if (!fen.ok()) return Failure{fen.error()};
    fen_ = std::move(fen).value();
    // Padded records end their prompt behind the FEN, others behind "M:".
    const bool padded = words_.begins[kLabel] > fen_end + 1;
    completion_begin_ = padded ? fen_end : words_.begins[kLabel] + 2;
    size_t at = kLabel + 1;
    for (; at < words_.words.size() && is_move_text(word(at)); ++at) moves_.push_back(word(at));
    if (word(at) != "E:") return wrong("what stands behind the moves", word(at), "E:");
    for (++at; at < words_.words.size() && word(at) != "B:"; ++at) {
      const std::optional<double> eval = parse_number(word(at));
      if (!eval) return wrong("E:", word(at), "a number");
      evals_.push_back(*eval);
    }
    if (moves_.empty() || evals_.size() != moves_.size())
      return Failure{fmt::format("E: has {} numbers for {} moves", evals_.size(), moves_.size())};
    best_ = word(at + 1);
    if (word(at) != "B:" || !is_move_text(best_)) return wrong("B:", best_, "a move such as e2e4");
    if (at + 2 != words_.words.size()) return wrong("what follows B:", word(at + 2), "nothing");
    return success();
  }

  std::string_view line_;
  const CorpusOptions& options_;
  CorpusCounts& counts_;
  Words words_;
  std::string fen_;
  size_t completion_begin_ = 0;
  std::vector<std::string_view> moves_;
  std::vector<double> evals_;
  std::string_view best_;
};

Result<std::optional<ChessRecord>> arbiter_line(std::string_view line, CorpusCounts& counts) {
  constexpr std::string_view kLetter = "A: ";
  const bool has_letter = line.starts_with(kLetter);
  const std::string_view text = line.substr(has_letter ? kLetter.size() : 0);
  std::array<size_t, 3> pluses{};
  for (size_t i = 0, from = 0; i < pluses.size(); ++i) {
    pluses[i] = text.find('+', from);
    if (pluses[i] == text.npos)
      return Failure{
          fmt::format("a line is P: and a policy record, or FEN+move+history+answer; "
                      "found '{}'",
                      excerpt(line))};
    from = pluses[i] + 1;
  }
  ChessRecord record;
  record.task = ChessTask::arbiter;
  Result<std::string> fen = checked_fen(text.substr(0, pluses[0]), "FEN");
  if (!fen.ok()) return Failure{fen.error()};
  record.fen = std::move(fen).value();
  record.move = text.substr(pluses[0] + 1, pluses[1] - pluses[0] - 1);
  if (!is_move_text(record.move)) return wrong("the move", record.move, "a move such as e2e4");
  const Words history = words_of(text.substr(pluses[1] + 1, pluses[2] - pluses[1] - 1));
  for (const std::string_view move : history.words)
    if (!is_move_text(move)) return wrong("the history", move, "moves such as e2e4");
  if (history.words.empty() || history.words.back() != record.move)
    return wrong("the history's last move", history.words.empty() ? "" : history.words.back(),
                 record.move);
  record.prompt = fmt::format("{}{}", kLetter, text.substr(0, pluses[2] + 1));
  record.completion = text.substr(pluses[2] + 1);
  const ParsedArbiterAnswer answer = parse_arbiter_answer(record.completion);
  if (!answer.format_valid) return wrong("the answer", record.completion, "FEN+reward+0|1+0|1");
  const Result<std::string> next = checked_fen(answer.answer.fen, "the answer's FEN");
  if (!next.ok()) return Failure{next.error()};
  if (!has_letter) ++counts.prefixed;
  return std::optional(std::move(record));
}

}  // namespace

bool is_move_text(std::string_view text) { return parse_uci_move(text).has_value(); }

std::string beginning_of_prompt(const ChessRecord& record, std::string_view fen) {
  if (record.task == ChessTask::policy) return fmt::format("P: {}", fen);
  return fmt::format("A: {}+{}+", fen, record.move);
}

Result<std::optional<ChessRecord>> parse_corpus_line(std::string_view line,
                                                     const CorpusOptions& options,
                                                     CorpusCounts& counts) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  if (line.starts_with("P:")) return PolicyLine(line, options, counts).record();
  return arbiter_line(line, counts);
}

}  // namespace fullbore::chess
