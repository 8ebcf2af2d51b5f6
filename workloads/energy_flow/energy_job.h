#pragma once
#include <cstdint>

#include "fullbore/train/config.h"
#include "fullbore/train/step_function.h"
#include "workloads/energy_flow/flow_lattice.h"
#include "workloads/energy_flow/flow_networks.h"
#include "workloads/energy_flow/lattice.h"
#include "workloads/energy_flow/pair_batches.h"
#include "workloads/energy_flow/text_losses.h"

namespace fullbore::energy_flow {

/// A configuration of model.name=energy_flow as the lattice, its networks and its data want it.

LatticeOptions lattice_options(const Config& config);
NetworkSizes network_sizes(const Config& config);

/// Of optimiser step `step`. Displacements: s0 for 100 steps, then s0 0.9^k with k more every 10 steps, not below the
/// least. z bias and noise go in a line over lattice.curriculum_steps.
StepSettings step_settings(const Config& config, uint64_t step);
/// When the curriculum is over: what is validated and measured by.
StepSettings final_settings(const Config& config);

/// On the fields of PairBatches: the mean squared difference over [B, S] between the surface that comes out for an input
/// and the mapper's of its target, which carries no gradient; with loss.collector_weight that of the collector's
/// embedding from the target's too. Metrics, by microbatch: surface_loss, input_loss (of the input's own surface),
/// steps (T*), created, spawned, dropped, dead, completed (share of those created that have left), active, and
/// unaccounted: flows that were created, and of which nobody knows what has become of them.
///
/// With a text bridge, on texts of the form `form`, loss.text_weight times (E + loss.decoder_weight D) is added: E is the
/// mean squared difference between what the encoder makes of an input's text and the mapper of its embedding (or, of the
/// dilated encoder, between the embeddings), which carries no gradient; D is the cross-entropy of a decoder that writes
/// the target's text from the surface that comes out. Further metrics: encoder_loss, decoder_loss, token_accuracy.
LossFunction energy_loss(const Config& config, const TextTokens& form = {});

/// What a trained lattice makes of surfaces [B,S], as in validation. `lattice`: its options, of which capacity, tiles and
/// stop rules may be others than the configuration's.
FlowRun trained_flows(Trace& trace, const Config& config, const LatticeOptions& lattice,
                      Tensor start);

}  // namespace fullbore::energy_flow
