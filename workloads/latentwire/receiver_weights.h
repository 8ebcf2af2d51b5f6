#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/runtime/state.h"
#include "fullbore/text/huggingface_model.h"
#include "fullbore/train/frozen_weights.h"
#include "workloads/latentwire/receiver.h"

namespace fullbore::latentwire {

/// While it lives, what the trace declares is the receiver's: frozen, stored as Receiver::storage says.
FrozenScope frozen_receiver(Trace& trace, const Receiver& receiver);

/// The dtype that the weights of a folder are read in where they lie: that of all its tensors. None if they are of several,
/// or lie otherwise than here, as those of GPT-2: such are copied, as f32.
std::optional<DType> storage_in_place(const HuggingFaceModel& model);

/// Of receivers that a checkpoint recorded: their folders as a user names them, NAME=FOLDER, or FOLDER where one receiver
/// needs it; text_encoder=FOLDER of the encoder, if there is one. UsageError: no such receiver, or which one is not said.
void name_folders(std::vector<Receiver>& receivers, std::shared_ptr<const TextEncoder>& encoder,
                  std::span<const std::string> named);

/// The files of receivers, and of an encoder of text, whose weights are read where they lie; null where there are none.
std::shared_ptr<const FrozenWeights> weights_in_place(const std::vector<Receiver>& receivers,
                                                      const TextEncoder* encoder = nullptr);

/// Statistics of a token table, as State has them: the root mean square of all of it, and by channel mean and deviation.
struct TableStatistics {
  Tensor rms;        ///< f32 []
  Tensor mean;       ///< f32 [d]
  Tensor deviation;  ///< f32 [d]
};
TableStatistics table_statistics(Trace& trace, const Receiver& receiver);

/// Fills the frozen State of receivers from their runs and folders, but for what is lent to it. DataError: a file that
/// cannot be read, weights that do not fit.
void fill_receivers(const std::vector<Receiver>& receivers, State& state);

}  // namespace fullbore::latentwire
