#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "fullbore/data/bpe_trainer.h"
#include "fullbore/text/data_report.h"
#include "fullbore/text/text_commands.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_progress.h"
#include "fullbore/text/trained_text_model.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

/// What every subcommand that reads a text asks for.
struct TextArguments {
  std::string source;
  std::string field = "text";
  std::string tokenizer = "character";
  int64_t threads = 0;

  Config config() const {
    Config config;
    config.data.path = source;
    text_keys(config).data.field = field;
    text_keys(config).data.tokenizer = tokenizer;
    config.engine.threads = threads;
    return config;
  }
};

void add_source(Command command, TextArguments& arguments) {
  command
      .add_option("SOURCE", arguments.source,
                  "UTF-8 file, folder, pattern (\"books/*.txt\"), *.jsonl, or - for standard input")
      .required();
  command
      .add_option("--field", arguments.field,
                  "Of each line of *.jsonl: the one that holds the text")
      .shows_default();
  command.add_option("--threads", arguments.threads, "0: all processors there are")
      .between(0, 1024);
}

void add_tokenizer(Command command, TextArguments& arguments) {
  command
      .add_option("--tokenizer", arguments.tokenizer,
                  "character, byte, bpe:<folder or tokenizer.json>, or ranks:<family>:<file>")
      .shows_default();
}

TextSources sources_of(const TextArguments& arguments) {
  std::string path = arguments.source;
  if (path == "-")
    path = keep_standard_input(token_cache_folder(arguments.config())).take_or_throw();
  return find_text(path, arguments.field).take_or_throw();
}

/// "play.tokens" for "texts/play.txt": beside the user, not beside the text.
std::string default_output(const TextArguments& arguments, const char* extension) {
  const std::string stem = fs::path(arguments.source).stem().string();
  const bool nameless =
      arguments.source == "-" || stem.empty() || stem.find_first_of("*?[.") != std::string::npos;
  return (nameless ? "text" : stem) + extension;
}

void refuse_to_overwrite(const std::string& path, bool force) {
  if (!force && fs::exists(path))
    throw UsageError(fmt::format("{} is there already; --force replaces it", path));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// --- tokenize ------------------------------------------------------------------------------------

struct TokenizeArguments : TextArguments {
  std::string out;
  int64_t shard_tokens = 0;
  bool force = false;
};

ExitCode run_tokenize(const TokenizeArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const std::string out =
      arguments.out.empty() ? default_output(arguments, ".tokens") : arguments.out;
  refuse_to_overwrite(out, arguments.force);
  const TextSources sources = sources_of(arguments);
  const auto tokenizer = make_tokenizer(arguments.tokenizer, sources);
  Console console;
  const ContentHash content = hash_text_sources(sources).take_or_throw();
  TokenizeOptions options;
  options.workers = worker_count(arguments.config());
  options.shard_tokens = arguments.shard_tokens;
  options.progress = text_progress(console);
  const std::vector<std::string> paths =
      tokenize_text(sources, content, *tokenizer, out, options).take_or_throw();
  console.clear();
  const TokenCorpus corpus = TokenCorpus::open(paths).take_or_throw();
  const double seconds = seconds_since(start);
  print_output("{}{}: {} tokens of {} ({}), {} document{}, {:.3f} bytes per token; {} at {}/s\n",
               paths.front(), paths.size() > 1 ? " to " + paths.back() : "", corpus.size(),
               tokenizer->vocabulary_size(), tokenizer->kind(), corpus.documents(),
               corpus.documents() == 1 ? "" : "s",
               static_cast<double>(corpus.text_bytes()) / static_cast<double>(corpus.size()),
               duration_text(seconds), bytes_text(static_cast<double>(content.bytes()) / seconds));
  return ExitCode::kOk;
}

void add_tokenize(Command data) {
  Command command = data.add_subcommand("tokenize", "Write a text's tokens to a file");
  auto arguments = std::make_shared<TokenizeArguments>();
  add_source(command, *arguments);
  add_tokenizer(command, *arguments);
  command.add_option("--out", arguments->out, "Token shard; default: SOURCE's name, .tokens");
  command
      .add_option("--shard-tokens", arguments->shard_tokens,
                  "Begin another file at the first document end after so many; 0: never")
      .between(int64_t{0}, int64_t{1} << 60);
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
Training does this by itself and keeps the result in a cache; do it by hand to move tokens to
another machine, or to look at them. A token shard holds all that training needs: tokens (16 or 32
bits), the ends of documents and files, the tokenizer, checksums. After each document stands the
tokenizer's end-of-document token, where it has one.

Example:
  fullbore data tokenize books/ --tokenizer bpe:learned/ --out books.tokens
  zcat dump.gz | fullbore data tokenize - --tokenizer byte --out dump.tokens
  fullbore train configs/default.yaml data.path=books.tokens)");
  command.runs([arguments] { return run_tokenize(*arguments); });
}

// --- inspect -------------------------------------------------------------------------------------

struct InspectArguments {
  std::string shards;
  int64_t document = -1;
  int64_t tokens = 0;
  bool json = false;
};

ExitCode run_inspect(const InspectArguments& arguments) {
  std::vector<std::string> paths;
  for (const TextFile& file : find_text(arguments.shards).take_or_throw().files)
    paths.push_back(file.path);
  const TokenCorpus corpus = TokenCorpus::open(paths).take_or_throw();
  const auto tokenizer = corpus.tokenizer().take_or_throw();
  if (arguments.document >= corpus.documents())
    throw UsageError(fmt::format("inspect: there is no document {}; there are {}, from 0 on",
                                 arguments.document, corpus.documents()));
  if (arguments.document >= 0 && arguments.tokens == 0)
    write_text(document_report(corpus, *tokenizer, arguments.document, 0));
  else if (arguments.document >= 0)
    print_output("{}", document_report(corpus, *tokenizer, arguments.document, arguments.tokens));
  else
    print_output(
        "{}", arguments.json ? shards_json(corpus, *tokenizer) : shards_report(corpus, *tokenizer));
  return ExitCode::kOk;
}

void add_inspect(Command data) {
  Command command = data.add_subcommand("inspect", "Check token shards and show what they hold");
  auto arguments = std::make_shared<InspectArguments>();
  command.add_option("SHARDS", arguments->shards, "Token shard, or a folder or pattern of them")
      .required();
  command.add_option("--document", arguments->document, "Show the text of this document, from 0 on")
      .between(int64_t{0}, int64_t{1} << 60);
  command
      .add_option(
          "--tokens", arguments->tokens,
          "With --document: show its first so many tokens, one a line, in place of the text")
      .between(int64_t{0}, int64_t{1} << 60);
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
Every checksum is compared: a damaged shard is named with the bytes that are damaged (exit code 3).

Example:
  fullbore data inspect books.tokens
  fullbore data inspect books.tokens --document 12 --tokens 20)");
  command.runs([arguments] { return run_inspect(*arguments); });
}

// --- stats ---------------------------------------------------------------------------------------

struct StatsArguments : TextArguments {
  bool json = false;
};

ExitCode run_stats(const StatsArguments& arguments) {
  Console console;
  const TextData text = open_text(arguments.config(), text_progress(console));
  console.clear();
  const TokenStatistics statistics = token_statistics(*text.tokens);
  print_output("{}", arguments.json ? statistics_json(text, statistics)
                                    : statistics_report(text, statistics));
  return ExitCode::kOk;
}

void add_stats(Command data) {
  Command command = data.add_subcommand("stats", "Count what a text or token shards consist of");
  auto arguments = std::make_shared<StatsArguments>();
  add_source(command, *arguments);
  add_tokenizer(command, *arguments);
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
Documents and their lengths, bytes per token (which compares tokenizers), tokens that never occur,
the entropy of single tokens (a model that has learned nothing but their frequencies has this loss),
the most frequent ones. Tokens are kept in the cache that training uses.

Example:
  fullbore data stats play.txt
  fullbore data stats "dump/*.jsonl" --field body --tokenizer bpe:learned/)");
  command.runs([arguments] { return run_stats(*arguments); });
}

// --- train-tokenizer -----------------------------------------------------------------------------

struct TrainTokenizerArguments : TextArguments {
  int64_t vocabulary = 8192;
  std::vector<std::string> special = {"<|endoftext|>"};
  std::string out;
  bool force = false;
};

ExitCode run_train_tokenizer(const TrainTokenizerArguments& arguments) {
  const std::string out =
      arguments.out.empty() ? default_output(arguments, ".json") : arguments.out;
  refuse_to_overwrite(out, arguments.force);
  const TextSources sources = sources_of(arguments);
  Console console;
  BpeTrainingOptions options;
  options.vocabulary_size = arguments.vocabulary;
  options.special_tokens = arguments.special;
  options.workers = worker_count(arguments.config());
  const TextProgress progress = text_progress(console);
  options.progress = [&](uint64_t done, uint64_t bytes) {
    if (done == bytes) console.live("merging");
    return progress(done, bytes);
  };
  const auto tokenizer = train_bpe(sources, options).take_or_throw();
  console.clear();
  if (const Status saved = save_tokenizer(*tokenizer, out); !saved.ok())
    throw DataError(saved.error());
  print_output("{}: {} tokens, {} merges\n", out, tokenizer->vocabulary_size(),
               tokenizer->vocabulary().merges.size());
  return ExitCode::kOk;
}

void add_train_tokenizer(Command data) {
  Command command = data.add_subcommand("train-tokenizer", "Learn a byte-level BPE from a text");
  auto arguments = std::make_shared<TrainTokenizerArguments>();
  add_source(command, *arguments);
  command
      .add_option("--vocabulary", arguments->vocabulary,
                  "Tokens in all: 256 bytes, special ones, and those that are learned")
      .between(256, 1 << 24)
      .shows_default();
  command
      .add_option("--special", arguments->special, "Special tokens; <|endoftext|> ends documents")
      .shows_default();
  command.add_option("--out", arguments->out, "tokenizer.json; default: SOURCE's name, .json");
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
The file is one that the Python packages tokenizers and transformers read.

Example:
  fullbore data train-tokenizer play.txt --vocabulary 4096 --out play.json
  fullbore train configs/default.yaml data.path=play.txt data.tokenizer=bpe:play.json)");
  command.runs([arguments] { return run_train_tokenizer(*arguments); });
}

}  // namespace

void add_data_command(Command root) {
  Command data = root.add_subcommand("data", "Tokenize, inspect and count texts");
  data.require_subcommand();
  add_tokenize(data);
  add_inspect(data);
  add_stats(data);
  add_train_tokenizer(data);
  data.footer(R"(
Example:
  fullbore data stats play.txt
  fullbore data tokenize books/ --tokenizer bpe:learned/ --out books.tokens
  fullbore data inspect books.tokens)");
}

}  // namespace fullbore
