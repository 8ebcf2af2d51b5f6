#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/atomic_file.h"
#include "fullbore/base/text.h"
#include "fullbore/base/threads.h"
#include "fullbore/monitor/console.h"
#include "workloads/chess/answer_report.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/record_file.h"
#include "workloads/chess/record_recipes.h"

namespace fullbore::chess {
namespace {

/// Baselines are of the first so many records: those of more differ by a fraction of a per cent.
constexpr size_t kBaselineRecords = 10'000;

struct PrepareArguments {
  std::string recipe = "endgames", truth = "search", format = "short", engine, cache, out, held_out;
  int64_t records = 60'000, processes = 0, threads = 0;
  uint64_t seed = 1;
  double held_out_share = 0.05, arbiter_share = 1.0 / 3;
  bool force_prefix = false, force = false, json = false;
};

/// Records on their way to the file that they belong in.
class RecordWriter {
 public:
  RecordWriter(const std::string& out, const std::string& held_out, double share)
      : share_(share), out_(AtomicFile::create(out).take_or_throw()) {
    if (!held_out.empty()) held_out_.emplace(AtomicFile::create(held_out).take_or_throw());
  }
  Status write(const ChessRecord& record) {
    if (first_.size() < kBaselineRecords) first_.push_back(record);
    const bool is_apart = held_out_ && is_held_out(record.fen, share_);
    held_out_records_ += is_apart;
    return (is_apart ? *held_out_ : out_).write(record_line(record) + '\n');
  }
  void commit() {
    if (held_out_) held_out_->commit().take_or_throw();
    out_.commit().take_or_throw();
  }
  const std::vector<ChessRecord>& first() const { return first_; }
  int64_t held_out_records() const { return held_out_records_; }

 private:
  double share_;
  AtomicFile out_;
  std::optional<AtomicFile> held_out_;
  std::vector<ChessRecord> first_;
  int64_t held_out_records_ = 0;
};

RecipeOptions recipe_options(const PrepareArguments& arguments) {
  RecipeOptions options;
  options.recipe = *parse_record_recipe(arguments.recipe);
  options.records = arguments.records;
  options.seed = arguments.seed;
  options.arbiter_share = arguments.arbiter_share;
  if (arguments.format == "published") options.format = published_format();
  if (options.format) options.format->force_prefix = arguments.force_prefix;
  return options;
}

std::unique_ptr<MoveRanker> ranker_of(const PrepareArguments& arguments) {
  EngineOptions engine;
  engine.path = arguments.engine;
  engine.processes = arguments.processes;
  engine.cache_path = arguments.cache;
  const int threads =
      arguments.threads == 0 ? available_processors() : static_cast<int>(arguments.threads);
  return open_ranker(arguments.truth, engine, threads);
}

nlohmann::ordered_json engine_json(const EngineCounts& counts) {
  return {
      {"positions", counts.positions}, {"cached", counts.cached},   {"analysed", counts.analysed},
      {"failed", counts.failed},       {"retries", counts.retries}, {"starts", counts.starts},
      {"silent", counts.silent},       {"died", counts.died},       {"refused", counts.refused}};
}

void report(const PrepareArguments& arguments, const RecordWriter& writer,
            const RecipeCounts& counts, const MoveRanker& ranker, double seconds) {
  const PolicyBaselines constant = policy_baselines(writer.first());
  const CopyBaseline copy = copy_baseline(writer.first());
  const int64_t records = counts.policy + counts.arbiter;
  if (arguments.json) {
    nlohmann::ordered_json json = {{"file", arguments.out},
                                   {"recipe", arguments.recipe},
                                   {"truth", ranker.name()},
                                   {"records", records},
                                   {"policy", counts.policy},
                                   {"arbiter", counts.arbiter},
                                   {"held_out", writer.held_out_records()},
                                   {"repeated", counts.repeated},
                                   {"unanalysed", counts.unanalysed},
                                   {"seconds", seconds},
                                   {"baselines", baseline_json(constant, copy)}};
    if (ranker.counts().positions > 0) json["engine"] = engine_json(ranker.counts());
    return write_output(json_text(json));
  }
  print_output("{}: {} records ({} P, {} A) by {} in {}: {}/s\n", arguments.out, records,
               counts.policy, counts.arbiter, ranker.name(), duration_text(seconds),
               count_text(static_cast<double>(records) / std::max(seconds, 1e-9)));
  if (!arguments.held_out.empty())
    print_output("{}: {} of them, held out\n", arguments.held_out, writer.held_out_records());
  if (counts.unanalysed > 0)
    print_output("{} positions were left out: {}\n", counts.unanalysed, counts.first_problem);
  print_output("{}", baseline_table(constant, copy));
}

ExitCode run_prepare(const PrepareArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  check_output_file(arguments.out);
  refuse_existing(arguments.out, arguments.force);
  if (!arguments.held_out.empty()) {
    check_output_file(arguments.held_out);
    refuse_existing(arguments.held_out, arguments.force);
  }
  const std::unique_ptr<MoveRanker> ranker = ranker_of(arguments);
  RecordWriter writer(arguments.out, arguments.held_out, arguments.held_out_share);
  Console console;
  const RecipeCounts counts =
      make_records(
          recipe_options(arguments), *ranker,
          [&](ChessRecord&& record) { return writer.write(record); },
          [&](int64_t records) {
            if (!console.live_due()) return;
            const double done = static_cast<double>(records),
                         all = static_cast<double>(arguments.records);
            console.live(fmt::format(
                "{} of {} records  {}/s  {} left", records, arguments.records,
                count_text(done / passed()),
                done > 0 ? duration_text(passed() * (all - done) / done) : std::string("?")));
          })
          .take_or_throw();
  console.clear();
  for (const std::string& notice : ranker->take_notices()) print_message("chess: {}\n", notice);
  writer.commit();
  report(arguments, writer, counts, *ranker, passed());
  return ExitCode::kOk;
}

}  // namespace

void add_prepare_command(Command chess) {
  Command command = chess.add_subcommand("prepare", "Write records to train on, made here");
  auto arguments = std::make_shared<PrepareArguments>();
  command
      .add_option(
          "--recipe", arguments->recipe,
          "endgames: P records of three to five pieces; games: P and A records of random games")
      .one_of({"endgames", "games"})
      .shows_default();
  command.add_option("--records", arguments->records, "How many, of both tasks")
      .between(int64_t{1}, int64_t{1'000'000'000})
      .shows_default();
  command.add_option("--seed", arguments->seed, "The same number makes the same records")
      .shows_default();
  command
      .add_option("--truth", arguments->truth,
                  "What ranks moves: search or stockfish, with :DEPTH in half-moves behind it")
      .shows_default();
  command.add_option("--engine", arguments->engine,
                     "Another program that speaks UCI, in place of Stockfish: its path");
  command.add_option("--processes", arguments->processes, "Of the engine; 0: one per processor")
      .between(int64_t{0}, int64_t{1024});
  command.add_option("--cache", arguments->cache,
                     "A file of what the engine said, read and added to");
  command.add_option("--threads", arguments->threads, "Of the search; 0: one per processor")
      .between(int64_t{0}, int64_t{1024});
  command
      .add_option("--format", arguments->format,
                  "short: for models of bytes; published: padded as the published corpora are")
      .one_of({"short", "published"})
      .shows_default();
  command.add_flag(
      "--force-prefix", arguments->force_prefix,
      "Of published P records: padding and \"M:\" belong to the prompt, not to the answer");
  command
      .add_option("--arbiter-share", arguments->arbiter_share,
                  "Of the records of games that are of task A")
      .between(0.0, 1.0);
  command.add_option("-o,--out", arguments->out, "The file of records").required();
  command.add_option("--held-out", arguments->held_out,
                     "Another file, for the positions that are held out from training");
  command
      .add_option("--held-out-share", arguments->held_out_share,
                  "Of positions, by a hash of their FEN")
      .between(0.0, 1.0)
      .shows_default();
  command.add_flag("--force", arguments->force, "Replace files that are there");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
A record is a line of JSON: task, prompt, completion and the truth that answers are scored by. It depends on recipe,
seed and truth alone, not on threads or the number of records. Stockfish is Debian's package stockfish.
What one move for all positions and a copied position reach is told at the end: a model has to beat these.

Example:
  fullbore chess prepare --records 60000 --out endgames.jsonl --held-out held_out.jsonl
  fullbore chess prepare --recipe games --truth stockfish:4 --out games.jsonl)");
  command.runs([arguments] { return run_prepare(*arguments); });
}

}  // namespace fullbore::chess
