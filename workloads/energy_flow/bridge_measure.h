#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/energy_flow/held_out_pairs.h"
#include "workloads/energy_flow/trained_bridge.h"

namespace fullbore::energy_flow {

/// Share of a text's words that another has at the same places, of as many places as the longer one has; 1 of two texts
/// without words.
double words_right(std::string_view text, std::string_view written);
/// Words that both have, of all that either has, each once (Jaccard 1912); 1 of two texts without words.
double word_overlap(std::string_view a, std::string_view b);

/// Of each of a bridge's texts, in [0, 1] but for the cosine.
struct BridgeScores {
  std::vector<double>
      encoder_cosine;         ///< between the encoder's surface and the mapper's of the embedding
  std::vector<double> words;  ///< words_right() of what is written from the mapper's surface
  std::vector<double> texts;  ///< is all of it right?
  std::vector<double> round_trip;  ///< words_right() from the encoder's surface
};
/// Both texts of each pair, written as `options` say. UsageError: pairs without texts. `progress`: texts done.
BridgeScores measure_bridge(TrainedBridge& bridge, const PairRange& examples,
                            const WritingOptions& options,
                            const std::function<void(int64_t done)>& progress);

/// word_overlap() of each pair's target and what is written from the surface that the lattice makes of its input.
std::vector<double> measure_overlap(TrainedBridge& bridge, const PairRange& examples,
                                    const WritingOptions& options,
                                    const std::function<void(int64_t done)>& progress);

}  // namespace fullbore::energy_flow
