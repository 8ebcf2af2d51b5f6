#include "workloads/energy_flow/energy_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fullbore {
namespace {

constexpr const char* kModel = "energy_flow";
constexpr const char* kBridge = "energy_bridge";
constexpr ConfigRange kExtent{.low = 2, .high = 4096};
constexpr ConfigRange kChannels{.low = 1, .high = 65536};
constexpr ConfigRange kNotNegative{.low = 0, .high = 1e6};
constexpr ConfigRange kShare{.low = 0, .high = 1};
constexpr ConfigRange kSteps{.low = 1, .high = 1e12};

#define FB_KEY(section, member) \
#section "." #member,         \
      [](Config & config) -> ConfigPlace { return &config.get<EnergyKeys>().section.member; }

std::vector<ConfigField> data_and_model() {
  return {
      {FB_KEY(data, pairs), {1, 1e8}, {}, "of the synthetic corpus, where data.path names no file"},
      {FB_KEY(data, validation_pairs),
       {0, 1e8},
       {},
       "of the corpus, behind those to train on; 0: no validation"},
      {FB_KEY(data, corpus_key), {0, 1e15}, {}, "another key is another corpus"},
      {FB_KEY(model, embedding_width), kChannels, {}, "numbers of a teacher's embedding"},
      {FB_KEY(model, neuron_hidden), kChannels, {}, "channels of the neuron's inner layers"},
      {FB_KEY(model, neuron_outputs), kChannels, {}, "features that the neuron gives the carrier"},
      {FB_KEY(model, carrier_hidden), {2, 65536}, {}, "units of each layer of the carrier's GRU"},
      {FB_KEY(model, carrier_layers), {1, 64}, {}, "layers of that GRU"},
      {FB_KEY(model, head_hidden), kChannels, {}, "channels within the heads of moves"},
      {FB_KEY(model, position_z_bias),
       {-1, 10},
       {},
       "absolute: bias of the place's z at first, which pushes flows towards the exit"},
      {FB_KEY(model, train_mapper), {}, {}, "the mapper to the surface learns; or stays as drawn"},
      {FB_KEY(loss, collector_weight),
       kNotNegative,
       {},
       "of the error of the embedding that is made of the surface; 0: no collector"},
      {FB_KEY(loss, text_weight), kNotNegative, {}, "of the bridge's losses beside the surface's"},
      {FB_KEY(loss, decoder_weight), kNotNegative, {}, "of the decoder's loss among these"},
  };
}

std::vector<ConfigField> bridge() {
  return {
      {FB_KEY(bridge, encoder),
       {},
       {"none", "transformer", "dilated"},
       "of texts: to surfaces; or by dilated convolutions to embeddings, which the mapper takes "
       "on"},
      {FB_KEY(bridge, tokenizer),
       {},
       {},
       "tokenizer.json, vocab.txt or a folder with one; empty: the corpus's words"},
      {FB_KEY(bridge, tokens), {2, 512}, {}, "of a text at most; what is longer is cut"},
      {FB_KEY(bridge, width), kChannels, {}, "channels of tokens"},
      {FB_KEY(bridge, layers), {1, 64}, {}, "of the transformer that reads"},
      {FB_KEY(bridge, decoder_layers), {1, 64}, {}, "of the transformer that writes"},
      {FB_KEY(bridge, heads), {1, 1024}, {}, "of attention"},
      {FB_KEY(bridge, hidden), kChannels, {}, "channels within layers, or of the convolutions"},
      {FB_KEY(bridge, memory), kChannels, {}, "numbers of a surface that the decoder reads"},
      {FB_KEY(bridge, dropout), {.low = 0, .high = 1, .high_open = true}, {}, "of the bridge"},
  };
}

std::vector<ConfigField> geometry() {
  return {
      {FB_KEY(lattice, mode),
       {},
       {"relative", "absolute"},
       "flows predict displacements and leave by both sides, or places and leave by one"},
      {FB_KEY(lattice, width), kExtent, {}, "cells"},
      {FB_KEY(lattice, height), kExtent, {}, "cells"},
      {FB_KEY(lattice, depth), kExtent, {}, "planes between input and output surfaces"},
      {FB_KEY(lattice, capacity),
       {1, 1e9},
       {},
       "flows of a batch that are active at once, at most"},
      {FB_KEY(lattice, inject_overflow),
       {},
       {"error", "truncate"},
       "where a batch begins with more flows than that: refused, or the last ones left out"},
      {FB_KEY(lattice, spawn_threshold),
       {.low = 0, .high = 10, .low_open = true},
       {},
       "of a move's length (relative) or of the gate (absolute), above which a flow has children"},
      {FB_KEY(lattice, most_spawned), {0, 64}, {}, "children of a flow in a step"},
      {FB_KEY(lattice, energy_threshold),
       kShare,
       {},
       "absolute: a flow dies where its energy, of [0, 1], is at or below it"},
      {FB_KEY(lattice, segments),
       {1, 4096},
       {},
       "of the steps: only their beginnings are kept for the gradient; less memory, more time"},
      {FB_KEY(lattice, tile_rows),
       {0, 1e9},
       {},
       "flows that are moved at a time, so that idle ones cost nothing; 0: all of the store"},
  };
}

std::vector<ConfigField> dynamics() {
  return {
      {FB_KEY(lattice, noise),
       kNotNegative,
       {},
       "standard deviation added to places in training: of [-1, 1], or in cells (absolute)"},
      {FB_KEY(lattice, final_noise), kNotNegative, {}, "what it becomes over curriculum_steps"},
      {FB_KEY(lattice, noise_on_z), {}, {}, "across the planes too"},
      {FB_KEY(lattice, displacement_scale), kNotNegative, {}, "factor of displacements at first"},
      {FB_KEY(lattice, least_displacement_scale),
       kNotNegative,
       {},
       "where it ends: after 100 steps it falls by a tenth every 10"},
      {FB_KEY(lattice, z_bias), kNotNegative, {}, "absolute: planes that moves are pushed by"},
      {FB_KEY(lattice, z_bias_per_age), kNotNegative, {}, "absolute: and per step of a flow's age"},
      {FB_KEY(lattice, curriculum_steps),
       kSteps,
       {},
       "optimiser steps until these pushes are gone"},
      {FB_KEY(lattice, project_on_stop),
       {},
       {},
       "flows that are active at the end count where they are"},
      {FB_KEY(lattice, early_stop), {}, {}, "steps end when enough flows have completed"},
      {FB_KEY(lattice, stop_threshold), kShare, {}, "share of flows that is enough"},
      {FB_KEY(lattice, stop_patience), {1, 1e6}, {}, "or so many steps without another completion"},
      {FB_KEY(lattice, stop_min_steps), {0, 1e6}, {}, "steps that are made in any case"},
      {FB_KEY(lattice, stop_denominator),
       {},
       {"created", "initial"},
       "what the share is of: flows that were ever created, or those at the start"},
      {FB_KEY(lattice, stop_scope),
       {},
       {"batch", "sample"},
       "by sample, a result does not depend on what else is in the batch"},
      {FB_KEY(lattice, readout),
       {},
       {"auto", "softmax", "linear"},
       "weights of flows that end in one cell; auto: softmax (relative), linear (absolute)"},
      {FB_KEY(lattice, importance_gradient),
       {},
       {"auto", "full", "detached"},
       "gradients through these weights; auto: full for softmax, detached for linear"},
  };
}

#undef FB_KEY

}  // namespace

std::vector<ConfigField> energy_fields() {
  std::vector<ConfigField> fields = data_and_model();
  for (auto* more : {&geometry, &dynamics, &bridge})
    for (ConfigField& field : more()) fields.push_back(std::move(field));
  for (ConfigField& field : fields) {
    field.models = {kModel};
    const std::string_view key = field.key;
    const bool of_both = key.starts_with("data.") || key.starts_with("bridge.") ||
                         key == "model.embedding_width" || key == "lattice.width" ||
                         key == "lattice.height";
    if (of_both) field.models.push_back(kBridge);
  }
  mark(fields, &ConfigField::names_file, {"bridge.tokenizer"});
  mark(fields, &ConfigField::is_size,
       {"model.embedding_width", "model.neuron_hidden", "model.neuron_outputs",
        "model.carrier_hidden", "model.carrier_layers", "model.head_hidden", "lattice.width",
        "lattice.height", "lattice.depth", "lattice.capacity", "bridge.width", "bridge.layers",
        "bridge.decoder_layers", "bridge.hidden", "bridge.memory"});
  return fields;
}

void check_energy_keys(const ConfigCheck& check) {
  const Config& config = check.config();
  if (config.model.name != kModel && config.model.name != kBridge) return;
  const EnergyKeys::Bridge& bridge = energy_keys(config).bridge;
  check.together(bridge.width % bridge.heads == 0, "bridge.width", "is no multiple of",
                 "bridge.heads");
  if (config.model.name == kBridge) {
    check.together(bridge.encoder != "none", "bridge.encoder", "is none: nothing is trained, with",
                   "model.name");
    return;
  }
  const EnergyKeys::Lattice& lattice = energy_keys(config).lattice;
  const int64_t parts =
      config.engine.accumulate * std::max<int64_t>(1, config.engine.parallel_microbatches);
  const int64_t samples = parts > 0 ? config.train.batch_size / std::max<int64_t>(1, parts) : 0;
  const int64_t flows = samples * lattice.width * lattice.height;
  if (lattice.inject_overflow == "error")
    check.together(flows <= lattice.capacity, "lattice.capacity",
                   fmt::format("is too small: {} samples a microbatch begin with {} flows; set it "
                               "to {} or more, or divide the batch by a larger",
                               samples, flows, flows)
                       .c_str(),
                   "engine.accumulate");
  check.together(lattice.mode == "relative" || lattice.spawn_threshold < 1,
                 "lattice.spawn_threshold", "is of a gate that is below 1, with", "lattice.mode");
  check.together(lattice.mode == "absolute" || lattice.depth % 2 == 0, "lattice.depth",
                 "is odd: no plane is in the middle, with", "lattice.mode");
}

}  // namespace fullbore
