#include "workloads/energy_flow/energy_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/monitor/console.h"
#include "workloads/energy_flow/embedding_file.h"
#include "workloads/energy_flow/embedding_summary.h"
#include "workloads/energy_flow/energy_eval.h"
#include "workloads/energy_flow/energy_picture.h"
#include "workloads/energy_flow/sentence_corpus.h"
#include "workloads/energy_flow/translate_command.h"

namespace fullbore::energy_flow {
namespace {

const std::vector<std::string> kFormats = {"efb1", "efb2", "jsonl"};

/// What was asked for, or what the name says.
EmbeddingFormat output_format(const std::string& asked, const std::string& path) {
  if (const auto format = parse_embedding_format(asked)) return *format;
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".jsonl") return EmbeddingFormat::jsonl;
  return extension == ".efb1" ? EmbeddingFormat::efb1 : EmbeddingFormat::efb2;
}

std::string size_text(const std::string& path) {
  return bytes_text(static_cast<double>(std::filesystem::file_size(path)));
}

std::string facts_text(const EmbeddingFacts& facts, EmbeddingFormat format) {
  std::vector<std::string> parts = {std::string(embedding_format_name(format))};
  if (facts.pairs) parts.emplace_back("pairs");
  if (facts.has_text) parts.emplace_back("texts");
  if (facts.has_tokens) parts.emplace_back("tokens");
  if (facts.normalized) parts.emplace_back("of unit length");
  return fmt::format("{}", fmt::join(parts, ", "));
}

EmbeddingProgress record_progress(Console& console, const char* doing) {
  return [&console, doing](int64_t records) {
    if (console.live_due())
      console.live(fmt::format("{}  {} records", doing, count_text(static_cast<double>(records))));
  };
}

// --- convert -------------------------------------------------------------------------------------

struct ConvertArguments {
  std::string input;
  std::string output;
  std::string format;
  bool pairs = false;
  bool normalize = false;
  int64_t limit = 0;
  bool force = false;
};

ExitCode run_convert(const ConvertArguments& arguments) {
  check_output_file(arguments.output);
  refuse_existing(arguments.output, arguments.force);
  Console console;
  const EmbeddingConversion conversion{.format = output_format(arguments.format, arguments.output),
                                       .pairs = arguments.pairs,
                                       .normalize = arguments.normalize,
                                       .limit = arguments.limit};
  const ConvertedEmbeddings converted =
      convert_embeddings(arguments.input, arguments.output, conversion,
                         record_progress(console, "converting"))
          .take_or_throw();
  console.clear();
  for (const std::string& note : converted.left_out) print_message("note: {}\n", note);
  print_output("{}: {} records of {} numbers ({}), {}\n", arguments.output, converted.records,
               converted.facts.width, facts_text(converted.facts, conversion.format),
               size_text(arguments.output));
  return ExitCode::kOk;
}

void add_convert(Command energy) {
  Command command = energy.add_subcommand("convert", "Write embeddings in another format");
  auto arguments = std::make_shared<ConvertArguments>();
  command.add_option("FILE", arguments->input, "EFB1, EFB2 or JSON lines, gzipped or not")
      .required();
  command.add_option("-o,--output", arguments->output, "The file to write").required();
  command
      .add_option("--format", arguments->format,
                  "By default as the name ends: .jsonl, .efb1; else efb2")
      .one_of(kFormats);
  command.add_flag("--pairs", arguments->pairs, "Records alternate: an input, then its target");
  command.add_flag("--normalize", arguments->normalize, "Scale every vector to unit length");
  command.add_option("--limit", arguments->limit, "At most so many records")
      .between(int64_t{1}, int64_t{1} << 40);
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
A line of JSON is {"text": "...", "input_ids": [...], "attention_mask": [...], "target": [...]}, of which
only "target", the vector, must be there. Texts and tokens are kept where every record has them. Vectors
must be finite and between 0.01 and 100 long.

Example:
  fullbore energy convert embeddings.jsonl -o train.efb --pairs
  fullbore energy convert train.efb -o train.jsonl)");
  command.runs([arguments] { return run_convert(*arguments); });
}

// --- inspect -------------------------------------------------------------------------------------

struct InspectArguments {
  std::string input;
  int64_t texts = 4;
  bool json = false;
};

nlohmann::ordered_json summary_json(const std::string& path, const EmbeddingSummary& summary) {
  return {
      {"file", path},
      {"format", embedding_format_name(summary.format)},
      {"records", summary.records},
      {"width", summary.width},
      {"pairs", summary.says_pairs},
      {"texts", summary.texts},
      {"token_lists", summary.token_lists},
      {"most_tokens", summary.most_tokens},
      {"most_masked", summary.most_masked},
      {"normalized", summary.says_normalized},
      {"norm",
       {{"least", summary.least_norm}, {"mean", summary.mean_norm()}, {"most", summary.most_norm}}},
      {"first_texts", summary.first_texts}};
}

ExitCode run_inspect(const InspectArguments& arguments) {
  Console console;
  const EmbeddingSummary summary =
      summarize_embeddings(arguments.input, {}, static_cast<size_t>(arguments.texts),
                           record_progress(console, "reading"))
          .take_or_throw();
  console.clear();
  if (arguments.json) {
    write_output(json_text(summary_json(arguments.input, summary)));
    return ExitCode::kOk;
  }
  print_output("{}\n", arguments.input);
  print_output("  format    {}, {}\n", embedding_format_name(summary.format),
               size_text(arguments.input));
  print_output("  records   {}{}\n", summary.records,
               summary.says_pairs ? fmt::format(", {} pairs", summary.records / 2) : "");
  print_output("  vectors   {} numbers, length {:.4g} to {:.4g}, mean {:.4g}{}\n", summary.width,
               summary.least_norm, summary.most_norm, summary.mean_norm(),
               summary.says_normalized ? "; normalized" : "");
  print_output("  texts     {}\n", summary.texts == 0 ? "none"
                                   : summary.texts == summary.records
                                       ? "in every record"
                                       : fmt::format("in {} records", summary.texts));
  print_output("  tokens    {}\n",
               summary.token_lists == 0
                   ? "none"
                   : fmt::format("in {} records, at most {} ({} masked)", summary.token_lists,
                                 summary.most_tokens, summary.most_masked));
  for (const std::string& text : summary.first_texts) print_output("            {}\n", text);
  return ExitCode::kOk;
}

void add_inspect(Command energy) {
  Command command = energy.add_subcommand("inspect", "Say what a file of embeddings holds");
  auto arguments = std::make_shared<InspectArguments>();
  command.add_option("FILE", arguments->input, "EFB1, EFB2 or JSON lines").required();
  command.add_option("--texts", arguments->texts, "Show so many texts")
      .between(int64_t{0}, int64_t{1000})
      .shows_default();
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
Reads the whole file: what is malformed is named with its byte, or its line, and its field.

Example:
  fullbore energy inspect train.efb)");
  command.runs([arguments] { return run_inspect(*arguments); });
}

// --- generate ------------------------------------------------------------------------------------

struct GenerateArguments {
  std::string output;
  std::string format;
  int64_t pairs = 0;
  uint64_t key = 42;
  int64_t first = 0;
  int64_t width = 768;
  bool force = false;
};

EmbeddingRecord corpus_record(const std::string& text, int64_t width) {
  EmbeddingRecord record;
  record.vector = sentence_embedding(text, width);
  record.has_text = true;
  record.text = text;
  return record;
}

ExitCode run_generate(const GenerateArguments& arguments) {
  check_output_file(arguments.output);
  refuse_existing(arguments.output, arguments.force);
  const EmbeddingFormat format = output_format(arguments.format, arguments.output);
  if (format == EmbeddingFormat::efb1)
    throw UsageError("energy generate: EFB1 has no place for texts; efb2 or jsonl was expected");
  const EmbeddingFacts facts{
      .width = arguments.width, .has_text = true, .normalized = true, .pairs = true};
  Console console;
  const EmbeddingProgress progress = record_progress(console, "writing");
  EmbeddingWriter writer =
      EmbeddingWriter::create(arguments.output, format, facts, 2 * arguments.pairs).take_or_throw();
  for (int64_t i = 0; i < arguments.pairs; ++i) {
    const SentencePair pair =
        sentence_pair(arguments.key, static_cast<uint64_t>(arguments.first + i));
    for (const std::string* text : {&pair.premise, &pair.hypothesis})
      if (const Status status = writer.write(corpus_record(*text, arguments.width)); !status)
        throw DataError(status.error());
    progress(2 * (i + 1));
  }
  if (const Status status = writer.commit(); !status) throw DataError(status.error());
  console.clear();
  print_output("{}: {} pairs of key {}, {} numbers a vector ({}), {}\n", arguments.output,
               arguments.pairs, arguments.key, arguments.width, facts_text(facts, format),
               size_text(arguments.output));
  return ExitCode::kOk;
}

void add_generate(Command energy) {
  Command command = energy.add_subcommand("generate", "Write the synthetic corpus of sentences");
  auto arguments = std::make_shared<GenerateArguments>();
  command.add_option("-o,--output", arguments->output, "The file to write").required();
  command.add_option("--pairs", arguments->pairs, "Premises with a hypothesis each")
      .between(int64_t{1}, int64_t{1} << 30)
      .required();
  command.add_option("--key", arguments->key, "Another key is another corpus").shows_default();
  command.add_option("--first", arguments->first, "The number of the first pair")
      .between(int64_t{0}, int64_t{1} << 40)
      .shows_default();
  command.add_option("--width", arguments->width, "Numbers a vector")
      .between(int64_t{1}, kMostWidth)
      .shows_default();
  command
      .add_option("--format", arguments->format,
                  "efb2 or jsonl; by default as the name ends: .jsonl; else efb2")
      .one_of(kFormats);
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
Sentences such as "a quiet woman sits under the river", and a hypothesis that follows from each, may
follow, or contradicts it. Pair i of a key is the same on every machine. The vectors stand in for a
teacher's: the weighted mean of a random vector a word.

Example:
  fullbore energy generate -o train.efb --pairs 5000
  fullbore energy generate -o held-out.efb --pairs 1000 --first 5000)");
  command.runs([arguments] { return run_generate(*arguments); });
}

}  // namespace

void add_energy_command(Command root) {
  Command energy =
      root.add_subcommand("energy", "Energy flow: files of sentence embeddings, what it learned");
  energy.require_subcommand();
  add_convert(energy);
  add_inspect(energy);
  add_generate(energy);
  add_translate_command(energy);
  add_energy_eval_command(energy);
  add_energy_picture_command(energy);
  energy.footer(R"(
EFB2 is a small binary format of vectors with texts, tokens or both; records may alternate between an
input and its target. JSON lines are read and written for other programs.

Example:
  fullbore energy generate -o train.efb --pairs 5000
  fullbore energy inspect train.efb)");
}

}  // namespace fullbore::energy_flow
