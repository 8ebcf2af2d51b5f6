#include "workloads/long_context/benchmark_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "fullbore/base/error.h"
#include "fullbore/base/json.h"
#include "fullbore/base/text.h"

namespace fullbore::long_context {
namespace {

using enum AnswerMetric;

/// How the question follows the text.
enum class Form : uint8_t { question, summary, examples, code, continued };

struct TaskRow {
  std::string_view name;
  AnswerMetric metric;
  int64_t room;  ///< tokens, as the benchmark has it
  Form form;
  bool first_line = false;
};

// Tasks, measures and rooms: LongBench's and InfiniteBench's own evaluation programs.
constexpr std::array<TaskRow, 21> kLongBench = {{
    {"narrativeqa", f1, 128, Form::question},
    {"qasper", f1, 128, Form::question},
    {"multifieldqa_en", f1, 64, Form::question},
    {"multifieldqa_zh", f1_characters, 64, Form::question},
    {"hotpotqa", f1, 32, Form::question},
    {"2wikimqa", f1, 32, Form::question},
    {"musique", f1, 32, Form::question},
    {"dureader", rouge_l_characters, 128, Form::question},
    {"gov_report", rouge_l, 512, Form::summary},
    {"qmsum", rouge_l, 512, Form::question},
    {"multi_news", rouge_l, 512, Form::summary},
    {"vcsum", rouge_l_characters, 512, Form::summary},
    {"trec", classification, 64, Form::examples, true},
    {"triviaqa", f1, 32, Form::examples, true},
    {"samsum", rouge_l, 128, Form::examples, true},
    {"lsht", classification, 64, Form::examples, true},
    {"passage_count", count, 32, Form::question},
    {"passage_retrieval_en", retrieval, 32, Form::question},
    {"passage_retrieval_zh", retrieval_chinese, 32, Form::question},
    {"lcc", code_similarity, 64, Form::code},
    {"repobench-p", code_similarity, 64, Form::code},
}};
constexpr std::array<TaskRow, 12> kInfiniteBench = {{
    {"passkey", first_integer, 6, Form::continued},
    {"number_string", first_integer, 12, Form::continued},
    {"kv_retrieval", word, 50, Form::continued},
    {"longbook_sum_eng", rouge_l_sum, 1200, Form::summary},
    {"longbook_qa_eng", f1, 40, Form::question},
    {"longbook_choice_eng", choice, 40, Form::question},
    {"longdialogue_qa_eng", word, 40, Form::continued},
    {"longbook_qa_chn", f1_characters, 40, Form::question},
    {"code_debug", choice, 5, Form::question},
    {"code_run", last_integer, 5, Form::continued},
    {"math_calc", correct_prefix, 30000, Form::continued},
    {"math_find", first_number, 3, Form::continued},
}};
constexpr int64_t kStatementRoom = 128;

template <size_t N>
const TaskRow* find_row(const std::array<TaskRow, N>& rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &TaskRow::name);
  return found == rows.end() ? nullptr : &*found;
}
template <size_t N>
std::vector<std::string> names(const std::array<TaskRow, N>& rows) {
  std::vector<std::string> result;
  for (const TaskRow& row : rows) result.emplace_back(row.name);
  return result;
}

std::string lettered(const std::vector<std::string>& options) {
  std::string text;
  for (size_t i = 0; i < options.size(); ++i)
    text += fmt::format("({}) {}\n", static_cast<char>('A' + i), options[i]);
  return text;
}

/// Short enough for models that were never taught to follow instructions: they continue a form.
std::string ask(Form form, const std::string& input, const std::vector<std::string>& options) {
  switch (form) {
    case Form::question:
      return fmt::format("\n\nQuestion: {}\n{}Answer:", input, lettered(options));
    case Form::summary: return "\n\nSummary:";
    case Form::examples: return "\n" + input;
    case Form::code: return input;
    case Form::continued: return "\n" + input;
  }
  return {};
}

void read_longbench(JsonRecord& record, BenchmarkItem& item) {
  std::string input;
  std::string dataset;
  record.read("context", item.context);
  record.read("input", input);
  record.read("answers", item.references);
  record.read("dataset", dataset);
  record.read_if_any("all_classes", item.options);
  std::vector<std::string> id;
  std::vector<std::string> language;
  record.read_if_any("_id", id);
  record.read_if_any("language", language);
  if (!record.ok()) return;
  // LongBench-E, of the same tasks at three lengths, has names of its own.
  const std::string task =
      dataset.ends_with("_e") ? dataset.substr(0, dataset.size() - 2) : dataset;
  const TaskRow* row = find_row(kLongBench, task);
  if (row == nullptr)
    return record.fail(fmt::format("the field 'dataset' is '{}', no task of LongBench.{}",
                                   dataset.substr(0, 40),
                                   did_you_mean(task.substr(0, 40), names(kLongBench))));
  if (item.references.empty()) return record.fail("the field 'answers' is empty");
  if (row->metric == classification && item.options.empty())
    return record.fail(fmt::format("'{}' needs the field 'all_classes'", task));
  item.id = id.empty() ? "" : id.front();
  item.task = dataset;
  if (!language.empty()) item.groups = {{"language", language.front()}};
  item.metric = row->metric;
  item.room = row->room;
  item.first_line = row->first_line;
  item.question = ask(row->form, input, {});
}

void read_longbench_v2(JsonRecord& record, BenchmarkItem& item) {
  std::string question;
  std::string difficulty;
  std::string length;
  std::string domain;
  std::string answer;
  record.read("_id", item.id);
  record.read("domain", domain);
  record.read("difficulty", difficulty, {"easy", "hard"});
  record.read("length", length, {"short", "medium", "long"});
  record.read("question", question);
  item.options.assign(4, "");
  for (size_t i = 0; i < 4; ++i)
    record.read(fmt::format("choice_{}", static_cast<char>('A' + i)), item.options[i]);
  record.read("answer", answer, {"A", "B", "C", "D"});
  record.read("context", item.context);
  if (!record.ok()) return;
  item.task = "multiple choice";
  item.groups = {{"difficulty", difficulty}, {"length", length}, {"domain", domain}};
  item.references = {answer};
  item.metric = stated_choice;
  item.room = kStatementRoom;
  item.question =
      fmt::format("\n\nQuestion: {}\n{}State the letter as in \"The correct answer is (X)\".\n",
                  question, lettered(item.options));
}

/// "user: ...\nassistant: ..." of a conversation; what is none stands as it is.
std::string conversation_text(const std::string& prompt) {
  const Result<nlohmann::json> parsed = parse_json(prompt);
  if (!parsed.ok() || !parsed.value().is_array()) return prompt;
  const nlohmann::json& messages = parsed.value();
  std::string text;
  for (const nlohmann::json& message : messages) {
    if (!message.is_object()) return prompt;
    const auto role = message.find("role"), content = message.find("content");
    if (role == message.end() || content == message.end() || !role->is_string() ||
        !content->is_string())
      return prompt;
    text += fmt::format("{}: {}\n", role->get_ref<const std::string&>(),
                        content->get_ref<const std::string&>());
  }
  return text;
}

void read_mrcr(JsonRecord& record, BenchmarkItem& item) {
  constexpr int64_t kAnswerRoom = 1024;
  std::string prompt, answer, marker;
  std::vector<std::string> needles;
  record.read("prompt", prompt);
  record.read("answer", answer);
  record.read("random_string_to_prepend", marker);
  record.read_if_any("n_needles", needles);
  if (!record.ok()) return;
  if (answer.empty()) return record.fail("the field 'answer' is empty");
  item.task = "mrcr";
  if (!needles.empty()) item.groups = {{"needles", needles.front()}};
  item.context = conversation_text(prompt);
  item.question = "assistant: ";
  item.references = {answer};
  item.options = {marker};
  item.metric = marked_sequence;
  item.room = kAnswerRoom;
}

void read_infinitebench(JsonRecord& record, const std::string& task, BenchmarkItem& item) {
  const TaskRow& row = *find_row(kInfiniteBench, task);
  std::string input;
  std::vector<std::string> id;
  record.read("context", item.context);
  record.read("input", input);
  record.read("answer", item.references);
  record.read_if_any("options", item.options);
  record.read_if_any("id", id);
  if (!record.ok()) return;
  if (item.references.empty()) return record.fail("the field 'answer' is empty");
  if (row.metric == choice) {
    if (item.options.empty() || item.options.size() > 26)
      return record.fail(fmt::format("the field 'options' has {} of them; 1 to 26 were expected",
                                     item.options.size()));
    // The answer is an option in words; its letter is as good.
    const auto right = std::ranges::find(item.options, item.references.front());
    if (right == item.options.end())
      return record.fail("the field 'answer' is none of the 'options'");
    item.references = {std::string(1, static_cast<char>('A' + (right - item.options.begin()))),
                       item.references.front()};
  }
  item.id = id.empty() ? "" : id.front();
  item.task = task;
  item.metric = row.metric;
  item.room = row.room;
  item.question =
      ask(row.form, input, row.metric == choice ? item.options : std::vector<std::string>{});
}

/// "data/passkey.jsonl.gz" is of the task passkey.
std::string task_of(const std::string& path) {
  const std::string file = std::filesystem::path(path).filename().string();
  return file.substr(0, file.find('.'));
}

}  // namespace

std::vector<std::string> infinitebench_tasks() { return names(kInfiniteBench); }
std::vector<std::string> longbench_tasks() { return names(kLongBench); }

Result<BenchmarkReader> BenchmarkReader::open(const std::string& path, Benchmark benchmark,
                                              const std::string& task) {
  std::string chosen = task;
  if (benchmark == Benchmark::infinitebench) {
    if (chosen.empty()) chosen = task_of(path);
    if (find_row(kInfiniteBench, chosen) == nullptr)
      throw UsageError(fmt::format("{}: '{}' is no task of InfiniteBench.{} The tasks are {}", path,
                                   chosen, did_you_mean(chosen, infinitebench_tasks()),
                                   fmt::join(infinitebench_tasks(), ", ")));
  }
  Result<JsonRecords> records = JsonRecords::open(path);
  if (!records) return Failure{records.error()};
  return BenchmarkReader(std::move(records).value(), benchmark, std::move(chosen));
}

Result<bool> BenchmarkReader::next(BenchmarkItem& item) {
  std::string_view json;
  Result<bool> more = records_.next(json);
  if (!more || !more.value()) return more;
  item = {};
  JsonRecord record(json);
  if (benchmark_ == Benchmark::infinitebench)
    read_infinitebench(record, task_, item);
  else if (benchmark_ == Benchmark::mrcr)
    read_mrcr(record, item);
  else if (record.has("choice_A"))
    read_longbench_v2(record, item);
  else
    read_longbench(record, item);
  if (!record.ok()) return records_.failure(record.error());
  ++items_;
  return true;
}

}  // namespace fullbore::long_context
