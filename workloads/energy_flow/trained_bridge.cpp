#include "workloads/energy_flow/trained_bridge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"
#include "fullbore/train/sampling.h"
#include "workloads/energy_flow/beam_search.h"
#include "workloads/energy_flow/energy_job.h"
#include "workloads/energy_flow/energy_keys.h"
#include "workloads/energy_flow/surface_mapper.h"
#include "workloads/energy_flow/text_decoder.h"

namespace fullbore::energy_flow {
namespace {

constexpr double kFirstTemperature = 0.7;
constexpr double kCooling = 0.1;
constexpr double kLeastTemperature = 0.1;

constexpr const char* kMap = "map";
constexpr const char* kEncode = "encode";
constexpr const char* kFlow = "flow";
constexpr const char* kAdapt = "adapt";
constexpr const char* kStep = "step";

int64_t surface_cells(const Config& config) {
  const EnergyKeys::Lattice& lattice = energy_keys(config).lattice;
  return lattice.width * lattice.height;
}

Graph trace_map(const Config& config, int64_t batch) {
  Trace trace(kMap, false);
  const EnergyKeys::Model& model = energy_keys(config).model;
  const Tensor embedding = trace.batch("embedding", {DType::f32, {batch, model.embedding_width}});
  const MapperWeights weights =
      declare_mapper(trace, model.embedding_width, surface_cells(config), model.train_mapper);
  trace.result("result", cast(map_to_surface(weights, embedding), DType::f32));
  return trace.finish();
}

Graph trace_encode(const Config& config, const TextTokens& form, int64_t batch) {
  Trace trace(kEncode, false);
  const Tensor tokens =
      trace.batch("tokens", {DType::i32, {batch, energy_keys(config).bridge.tokens}});
  trace.result("result", cast(encode_texts(trace, config, form, tokens).surface, DType::f32));
  return trace.finish();
}

// A sample's share of the capacity is that of training, and it ends by itself: results do not depend on companions as
// long as nothing overflows.
Graph trace_flow(const Config& config, int64_t batch) {
  Trace trace(kFlow, false);
  const int64_t cells = surface_cells(config);
  LatticeOptions lattice = lattice_options(config);
  const int64_t parts =
      config.engine.accumulate * std::max<int64_t>(1, config.engine.parallel_microbatches);
  const int64_t trained = std::max<int64_t>(1, config.train.batch_size / parts);
  lattice.capacity = std::max(batch * cells, lattice.capacity / trained * batch);
  lattice.stop.per_sample = true;
  const Tensor start = trace.batch("surface", {DType::f32, {batch, cells}});
  trace.result("result", cast(trained_flows(trace, config, lattice, start).surface, DType::f32));
  return trace.finish();
}

Graph trace_adapt(const Config& config, const TextTokens& form, int64_t batch) {
  Trace trace(kAdapt, false);
  const Tensor surface = trace.batch("surface", {DType::f32, {batch, surface_cells(config)}});
  trace.result("result",
               cast(adapt_surface(trace, surface, decoder_sizes(config, form)), DType::f32));
  return trace.finish();
}

Graph trace_step(const Config& config, const TextTokens& form, int64_t rows, int64_t length) {
  Trace trace(kStep, false);
  const DecoderSizes sizes = decoder_sizes(config, form);
  const Tensor tokens = trace.batch("tokens", {DType::i32, {rows}});
  const Tensor from = trace.batch("rows", {DType::i32, {rows}});
  const Tensor position = trace.batch("position", {DType::i64, {}});
  const Tensor temperature = trace.batch("temperature", {DType::f32, {}});
  const Tensor memory = trace.batch("memory", {DType::f32, {rows, sizes.memory}});
  const Tensor logits = decode_step(trace, memory, {tokens, from, position, length}, sizes);
  trace.result("result", log_softmax(logits / temperature));
  return trace.finish();
}

std::vector<float> result_of(BatchProgram& program) {
  program.run();
  return program.result<float>("result");
}

double squared_distance(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - b[i];
    sum += difference * difference;
  }
  return sum;
}

}  // namespace

TrainedBridge::TrainedBridge(const std::string& run_or_checkpoint, const Sizes& sizes)
    : sizes_(sizes),
      encoded_(static_cast<size_t>(sizes.cached)),
      written_(static_cast<size_t>(sizes.cached)) {
  const OpenedCheckpoint checkpoint = open_checkpoint(run_or_checkpoint);
  path_ = checkpoint.folder.path();
  config_ = stored_config(checkpoint);
  if (config_.model.name != "energy_flow" && config_.model.name != "energy_bridge")
    throw UsageError(
        fmt::format("{} is of a {} model, not of model.name=energy_flow or energy_bridge", path_,
                    config_.model.name));
  if (!has_bridge(config_))
    throw UsageError(
        fmt::format("{} has no text bridge: it was trained with bridge.encoder=none", path_));
  choose_processor(config_);
  choose_caches(config_);
  cells_ = surface_cells(config_);
  form_.emplace(parse_tokenizer(checkpoint.record.tokenizer, path_).take_or_throw(),
                energy_keys(config_).bridge.tokens, path_);
  if (sizes_.length == 0) sizes_.length = std::min(kTextPlaces, form_->length() + 1);
  const TextTokens tokens = text_tokens(*form_);
  std::map<std::string, Graph> graphs;
  graphs.emplace(kMap, trace_map(config_, sizes_.batch));
  graphs.emplace(kEncode, trace_encode(config_, tokens, sizes_.batch));
  graphs.emplace(kAdapt, trace_adapt(config_, tokens, sizes_.batch));
  graphs.emplace(kStep, trace_step(config_, tokens, rows(), sizes_.length));
  if (has_lattice()) graphs.emplace(kFlow, trace_flow(config_, sizes_.batch));
  std::vector<StateEntry> entries;
  for (const auto& [name, graph] : graphs)
    for (StateEntry& entry : trained_entries(checkpoint, graph)) {
      const bool known = std::ranges::any_of(
          entries, [&](const StateEntry& other) { return other.name == entry.name; });
      if (!known) entries.push_back(std::move(entry));
    }
  state_ = std::make_unique<State>(
      trained_state(checkpoint, config_, entries, open_job_device(config_)));
  const auto arena = std::make_shared<Arena>(state_->device());
  for (const auto& [name, graph] : graphs)
    parts_.emplace(name, std::make_unique<BatchProgram>(graph, *state_, config_, arena));
  const auto version = static_cast<uint64_t>(checkpoint.record.step) + 1;
  encoded_.set_version(version);
  written_.set_version(version);
}

TrainedBridge::~TrainedBridge() = default;

void TrainedBridge::encode_batch(std::span<const std::string* const> texts,
                                 std::vector<float>& surfaces) {
  std::vector<int32_t> rows;
  for (const std::string* text : texts) {
    rows.resize(rows.size() + static_cast<size_t>(form_->length()));
    const Result<bool> cut =
        form_->fill(*text, std::span(rows).last(static_cast<size_t>(form_->length())));
    if (!cut.ok()) throw DataError(fmt::format("text '{}': {}", text->substr(0, 60), cut.error()));
  }
  // Rows that are left over hold the texts of the batch before.
  part(kEncode).fill<int32_t>(0, rows);
  const std::vector<float> all = result_of(part(kEncode));
  const auto cells = static_cast<std::ptrdiff_t>(cells_);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(i) * cells;
    encoded_.put(text_key(*texts[i]), {from, from + cells});
  }
  surfaces.insert(surfaces.end(), all.begin(),
                  all.begin() + static_cast<std::ptrdiff_t>(texts.size()) * cells);
}

std::vector<float> TrainedBridge::encode(std::span<const std::string> texts) {
  const auto cells = static_cast<size_t>(cells_);
  std::vector<float> surfaces(texts.size() * cells);
  std::vector<size_t> missing;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float>* known = encoded_.get(text_key(texts[i]));
    if (known != nullptr)
      std::ranges::copy(*known, surfaces.begin() + static_cast<std::ptrdiff_t>(i * cells));
    else
      missing.push_back(i);
  }
  const auto batch = static_cast<size_t>(sizes_.batch);
  for (size_t begin = 0; begin < missing.size(); begin += batch) {
    const auto some = std::span(missing).subspan(begin, std::min(batch, missing.size() - begin));
    std::vector<const std::string*> wanted;
    for (const size_t i : some) wanted.push_back(&texts[i]);
    std::vector<float> made;
    encode_batch(wanted, made);
    for (size_t i = 0; i < some.size(); ++i)
      std::copy_n(made.begin() + static_cast<std::ptrdiff_t>(i * cells), cells,
                  surfaces.begin() + static_cast<std::ptrdiff_t>(some[i] * cells));
  }
  return surfaces;
}

std::vector<float> TrainedBridge::run_rows(const char* name, std::span<const float> rows,
                                           int64_t width) {
  std::vector<float> results;
  const auto batch = static_cast<size_t>(sizes_.batch * width);
  for (size_t begin = 0; begin < rows.size(); begin += batch) {
    const auto some = rows.subspan(begin, std::min(batch, rows.size() - begin));
    // Rows that are left over hold what the batch before had.
    part(name).fill<float>(0, some);
    const std::vector<float> made = result_of(part(name));
    const auto count = static_cast<std::ptrdiff_t>(some.size() / static_cast<size_t>(width));
    results.insert(results.end(), made.begin(), made.begin() + count * cells_);
  }
  return results;
}

std::vector<float> TrainedBridge::map(std::span<const float> embeddings) {
  return run_rows(kMap, embeddings, energy_keys(config_).model.embedding_width);
}

std::vector<float> TrainedBridge::flow(std::span<const float> surfaces) {
  FB_CHECK(has_lattice(), "{} has no lattice", path_);
  return run_rows(kFlow, surfaces, cells_);
}

std::vector<std::string> TrainedBridge::write(std::span<const float> surfaces,
                                              const WritingOptions& options) {
  const auto cells = static_cast<size_t>(cells_), batch = static_cast<size_t>(sizes_.batch);
  const size_t count = surfaces.size() / cells;
  const auto surface = [&](size_t i) { return surfaces.subspan(i * cells, cells); };
  // How a text is written is part of what it is known by.
  const uint64_t manner = hash_text(
      fmt::format("{} {} {}", options.temperature, options.correction_steps, options.seed));
  const auto key = [&](size_t i) {
    CacheKey of_surface = surface_key(surface(i));
    of_surface[0] ^= manner;
    return of_surface;
  };
  std::vector<std::string> texts(count);
  std::vector<size_t> missing;
  for (size_t i = 0; i < count; ++i) {
    const std::string* known = written_.get(key(i));
    known != nullptr ? void(texts[i] = *known) : missing.push_back(i);
  }
  for (size_t begin = 0; begin < missing.size(); begin += batch) {
    const auto some = std::span(missing).subspan(begin, std::min(batch, missing.size() - begin));
    std::vector<float> given;
    for (const size_t i : some) given.insert(given.end(), surface(i).begin(), surface(i).end());
    std::vector<std::string> made = write_batch(given, options);
    for (size_t i = 0; i < some.size(); ++i) {
      written_.put(key(some[i]), made[i]);
      texts[some[i]] = std::move(made[i]);
    }
  }
  return texts;
}

std::vector<std::string> TrainedBridge::write_batch(std::span<const float> surfaces,
                                                    const WritingOptions& options) {
  const auto cells = static_cast<size_t>(cells_);
  const size_t count = surfaces.size() / cells;
  part(kAdapt).fill<float>(0, surfaces);
  const std::vector<float> memories = result_of(part(kAdapt));
  const size_t width = memories.size() / static_cast<size_t>(sizes_.batch);
  for (int64_t row = 0; row < rows(); ++row)
    part(kStep).fill(
        4, std::span(memories).subspan(static_cast<size_t>(row / sizes_.beams) * width, width),
        static_cast<size_t>(row) * width);
  std::vector<std::string> texts = search(static_cast<int64_t>(count), options.temperature);
  if (options.correction_steps == 0) return texts;
  const std::vector<float> own = encode(texts);
  std::vector<double> errors(count);
  for (size_t i = 0; i < count; ++i)
    errors[i] = squared_distance(surfaces.subspan(i * cells, cells),
                                 std::span(own).subspan(i * cells, cells));
  for (int64_t round = 0; round < options.correction_steps; ++round)
    correct(surfaces, round, options, texts, errors);
  return texts;
}

void TrainedBridge::correct(std::span<const float> surfaces, int64_t round,
                            const WritingOptions& options, std::vector<std::string>& texts,
                            std::vector<double>& errors) {
  const auto cells = static_cast<size_t>(cells_), beams = static_cast<size_t>(sizes_.beams);
  const double temperature =
      std::max(kLeastTemperature, kFirstTemperature - kCooling * static_cast<double>(round));
  std::vector<std::string> drawn = draw(temperature, options.seed + static_cast<uint64_t>(round));
  drawn.resize(texts.size() * beams);
  const std::vector<float> made = encode(drawn);
  for (size_t row = 0; row < drawn.size(); ++row) {
    const size_t text = row / beams;
    const double error = squared_distance(surfaces.subspan(text * cells, cells),
                                          std::span(made).subspan(row * cells, cells));
    if (error >= errors[text]) continue;
    errors[text] = error;
    texts[text] = drawn[row];
  }
}

std::vector<float> TrainedBridge::log_probabilities(std::span<const int32_t> tokens,
                                                    std::span<const int32_t> rows, int64_t position,
                                                    double temperature) {
  BatchProgram& step = part(kStep);
  step.fill<int32_t>(0, tokens);
  step.fill<int32_t>(1, rows);
  step.fill<int64_t>(2, std::span(&position, 1));
  const auto divisor = static_cast<float>(temperature);
  step.fill<float>(3, std::span(&divisor, 1));
  return result_of(step);
}

std::vector<std::string> TrainedBridge::search(int64_t texts, double temperature) {
  BeamSearch search({.texts = sizes_.batch,
                     .beams = sizes_.beams,
                     .length = sizes_.length,
                     .vocabulary = form_->vocabulary(),
                     .begin = form_->begin(),
                     .end = form_->end(),
                     .never = form_->never_written()});
  for (int64_t position = 0; !search.is_done(); ++position)
    search.take(log_probabilities(search.tokens(), search.parents(), position, temperature));
  std::vector<std::string> written;
  for (int64_t text = 0; text < texts; ++text)
    written.push_back(form_->text(search.best(text).tokens));
  return written;
}

std::vector<std::string> TrainedBridge::draw(double temperature, uint64_t seed) {
  const auto count = static_cast<size_t>(rows());
  const auto vocabulary = static_cast<size_t>(form_->vocabulary());
  std::vector<int32_t> tokens(count, form_->begin()), own(count);
  std::iota(own.begin(), own.end(), 0);
  std::vector<std::vector<int32_t>> drawn(count);
  std::vector<bool> ended(count, false);
  std::vector<PhiloxStream> draws;
  for (size_t row = 0; row < count; ++row) draws.emplace_back(seed, row);
  for (int64_t position = 0; position < sizes_.length; ++position) {
    std::vector<float> logs = log_probabilities(tokens, own, position, temperature);
    bool goes_on = false;
    for (size_t row = 0; row < count; ++row) {
      const auto of_row = std::span(logs).subspan(row * vocabulary, vocabulary);
      for (const int32_t token : form_->never_written())
        of_row[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
      tokens[row] = sample_token(of_row, {}, draws[row]);
      ended[row] = ended[row] || tokens[row] == form_->end();
      if (!ended[row]) drawn[row].push_back(tokens[row]);
      goes_on = goes_on || !ended[row];
    }
    if (!goes_on) break;
  }
  std::vector<std::string> texts;
  for (const std::vector<int32_t>& one : drawn) texts.push_back(form_->text(one));
  return texts;
}

}  // namespace fullbore::energy_flow
