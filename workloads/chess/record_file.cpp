#include "workloads/chess/record_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/text.h"
#include "fullbore/data/json_reader.h"
#include "fullbore/data/text_lines.h"
#include "workloads/chess/corpus_line.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/policy_reward.h"

namespace fullbore::chess {
namespace {

const std::vector<std::string> kFields = {"task", "prompt", "completion", "fen",
                                          "move", "top",    "answer"};

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

/// Reads one object; error() is "" as long as nothing is wrong.
class RecordParser {
 public:
  /// `is_answered`: there is a field "answer", which otherwise there is not.
  RecordParser(std::string_view line, bool is_answered)
      : reader_(line), is_answered_(is_answered) {}

  Result<ChessRecord> record() {
    if (!expect("record", JsonKind::kObject)) return failure();
    reader_.begin_object();
    std::string key;
    while (error_.empty() && reader_.next_key(key)) field(key);
    if (error_.empty()) reader_.finish();
    if (error_.empty() && !reader_.failed()) check();
    if (!error_.empty() || reader_.failed()) return failure();
    return std::move(record_);
  }
  std::string take_answer() { return std::move(answer_); }

 private:
  Failure failure() const { return Failure{error_.empty() ? reader_.error() : error_}; }
  void fail(const std::string& message) {
    if (error_.empty() && !reader_.failed())
      error_ = fmt::format("byte {}: {}", reader_.offset(), message);
  }
  bool expect(std::string_view field, JsonKind wanted) {
    const JsonKind kind = reader_.peek();
    if (kind == JsonKind::kNothing) {
      reader_.skip();  // says what is no JSON
      return false;
    }
    if (kind == wanted) return true;
    fail(fmt::format("'{}' is {}; {} was expected", field, json_kind_name(kind),
                     json_kind_name(wanted)));
    return false;
  }
  void read_text(const std::string& field, std::string& text) {
    if (expect(field, JsonKind::kString)) reader_.read_string(text);
  }

  void field(const std::string& key) {
    if (std::find(kFields.begin(), kFields.end(), key) == kFields.end() ||
        (key == "answer" && !is_answered_))
      return fail(fmt::format("there is no field '{}' of a record.{}", excerpt(key),
                              did_you_mean(key, kFields)));
    if (!seen_.insert(key).second) return fail(fmt::format("'{}' stands twice", key));
    if (key == "task") return read_text(key, task_);
    if (key == "prompt") return read_text(key, record_.prompt);
    if (key == "completion") return read_text(key, record_.completion);
    if (key == "fen") return read_text(key, record_.fen);
    if (key == "move") return read_text(key, record_.move);
    if (key == "answer") return read_text(key, answer_);
    if (!expect(key, JsonKind::kArray)) return;
    reader_.begin_array();
    while (error_.empty() && reader_.next_element()) ranked_move();
  }

  void ranked_move() {
    constexpr size_t kMost = 512;  // more than there are legal moves
    if (record_.top.size() == kMost) return fail("'top' has more moves than a position has");
    RankedMove move;
    if (!expect("top[]", JsonKind::kArray)) return;
    reader_.begin_array();
    if (!reader_.next_element()) return fail("'top[]' is [move, pawns]");
    read_text("top[].move", move.move);
    if (!error_.empty() || !reader_.next_element()) return fail("'top[]' is [move, pawns]");
    std::string_view number;
    if (!expect("top[].pawns", JsonKind::kNumber) || !reader_.skip(number)) return;
    const std::optional<double> eval = parse_number(number);
    if (!eval)
      return fail(fmt::format("'top[].pawns' is {}; a finite number was expected", number));
    move.eval = *eval;
    if (reader_.next_element()) return fail("'top[]' is [move, pawns]");
    record_.top.push_back(std::move(move));
  }

  void check() {
    for (const char* needed : {"task", "prompt", "completion", "fen"})
      if (!seen_.contains(needed)) return fail(fmt::format("there is no field '{}'", needed));
    if (is_answered_ && !seen_.contains("answer")) return fail("there is no field 'answer'");
    if (task_ != "P" && task_ != "A")
      return fail(fmt::format("'task' is '{}'; P or A was expected", excerpt(task_)));
    record_.task = task_ == "P" ? ChessTask::policy : ChessTask::arbiter;
    const char* other = record_.task == ChessTask::policy ? "move" : "top";
    const char* own = record_.task == ChessTask::policy ? "top" : "move";
    if (seen_.contains(other)) return fail(fmt::format("a record of {} has no '{}'", task_, other));
    if (!seen_.contains(own)) return fail(fmt::format("there is no field '{}'", own));
    const Result<PolicyTruth> truth = policy_truth(record_.fen, record_.top);
    if (!truth.ok()) return fail(fmt::format("'fen', 'top': {}", truth.error()));
    if (record_.task == ChessTask::arbiter && !is_move_text(record_.move))
      return fail(
          fmt::format("'move' is '{}'; a move such as e2e4 was expected", excerpt(record_.move)));
    const std::string begin = beginning_of_prompt(record_, record_.fen);
    if (!record_.prompt.starts_with(begin) &&
        !record_.prompt.starts_with(beginning_of_prompt(record_, expanded_fen(record_.fen))))
      fail(fmt::format("'prompt' does not begin with '{}'", begin));
  }

  JsonReader reader_;
  bool is_answered_;
  std::string answer_;
  ChessRecord record_;
  std::string task_;
  std::set<std::string> seen_;
  std::string error_;
};

/// What to do about one line of a file, whichever of the two kinds it is.
class LineTaker {
 public:
  LineTaker(const CorpusOptions& options, const std::function<Status(ChessRecord&&)>& take)
      : options_(options), take_(take) {}

  /// `where`: "file:line: ".
  Status line(std::string_view line, const std::function<std::string()>& where) {
    if (is_blank(line)) return success();
    std::optional<ChessRecord> record;
    std::string problem;
    if (line.starts_with('{')) {
      Result<ChessRecord> parsed = parse_record_line(line);
      if (parsed.ok())
        record = std::move(parsed).value();
      else
        problem = parsed.error();
    } else {
      Result<std::optional<ChessRecord>> parsed = parse_corpus_line(line, options_, counts_);
      if (parsed.ok())
        record = std::move(parsed).value();
      else
        problem = parsed.error();
    }
    if (!problem.empty()) {
      const std::string message = where() + problem;
      if (!options_.skip_malformed) return Failure{message};
      if (counts_.malformed++ == 0) counts_.first_malformed = message;
    } else if (record) {
      ++counts_.records;
      return take_(std::move(*record));
    }
    return success();
  }
  CorpusCounts counts() { return std::move(counts_); }

 private:
  const CorpusOptions& options_;
  const std::function<Status(ChessRecord&&)>& take_;
  CorpusCounts counts_;
};

}  // namespace

std::string record_line(const ChessRecord& record) {
  nlohmann::ordered_json json;
  json["task"] = record.task == ChessTask::policy ? "P" : "A";
  json["prompt"] = record.prompt;
  json["completion"] = record.completion;
  json["fen"] = record.fen;
  if (record.task == ChessTask::arbiter) {
    json["move"] = record.move;
  } else {
    json["top"] = nlohmann::ordered_json::array();
    for (const RankedMove& each : record.top)
      json["top"].push_back(nlohmann::ordered_json::array({each.move, each.eval}));
  }
  return json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

Result<ChessRecord> parse_record_line(std::string_view line) {
  return RecordParser(line, false).record();
}

Result<AnsweredRecord> parse_answered_line(std::string_view line) {
  RecordParser parser(line, true);
  Result<ChessRecord> record = parser.record();
  if (!record.ok()) return Failure{record.error()};
  return AnsweredRecord{std::move(record).value(), parser.take_answer()};
}

Result<CorpusCounts> read_records(const std::string& path, const CorpusOptions& options,
                                  const std::function<Status(ChessRecord&&)>& take) {
  Result<InputBytes> opened = InputBytes::open(path);
  if (!opened.ok()) return Failure{opened.error()};
  TextLines lines(std::move(opened).value());
  LineTaker taker(options, take);
  for (;;) {
    const Result<bool> more = lines.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) return taker.counts();
    const Status taken = taker.line(lines.line(), [&] { return lines.failure("").message; });
    if (!taken.ok()) return Failure{taken.error()};
  }
}

Result<CorpusCounts> parse_records(std::string_view text, const std::string& name,
                                   const CorpusOptions& options,
                                   const std::function<Status(ChessRecord&&)>& take) {
  LineTaker taker(options, take);
  for (uint64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const Status taken =
        taker.line(text.substr(0, end), [&] { return fmt::format("{}:{}: ", name, number); });
    if (!taken.ok()) return Failure{taken.error()};
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return taker.counts();
}

Result<std::vector<ChessRecord>> read_all_records(const std::string& path,
                                                  const CorpusOptions& options) {
  std::vector<ChessRecord> records;
  const Result<CorpusCounts> read =
      read_records(path, options, [&](ChessRecord&& record) -> Status {
        records.push_back(std::move(record));
        return success();
      });
  if (!read.ok()) return Failure{read.error()};
  if (records.empty()) return Failure{fmt::format("{}: there is no record", path)};
  return records;
}

}  // namespace fullbore::chess
