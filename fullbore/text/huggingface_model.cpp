#include "fullbore/text/huggingface_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/files.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using nn::DecoderConfig;

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw DataError(fmt::format("{}: {}", path, reason));
}

/// x [rows, columns] -> [columns, rows].
std::vector<float> transposed(const std::vector<float>& x, int64_t rows, int64_t columns) {
  std::vector<float> y(x.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      y[static_cast<size_t>(c * rows + r)] = x[static_cast<size_t>(r * columns + c)];
  return y;
}

void write_text(const std::string& path, const std::string& text) {
  const Status written = write_file_atomically(path, text);
  if (!written) throw DataError(written.error());
}

}  // namespace

HuggingFaceModel::HuggingFaceModel(std::string folder, HuggingFaceConfig config,
                                   HuggingFaceTensors tensors)
    : folder_(std::move(folder)), config_(std::move(config)), tensors_(std::move(tensors)) {
  if (!tensors_.find(huggingface_table(config_.decoder)))
    prefix_ = huggingface_prefix(config_.decoder);
}

HuggingFaceModel HuggingFaceModel::open(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw DataError(fmt::format("{} is no folder with a model in the Hugging Face layout", folder));
  const std::string path = folder + "/config.json";
  HuggingFaceConfig config = parse_huggingface_config(read_file(path).take_or_throw(), path);
  HuggingFaceModel source(folder, std::move(config), HuggingFaceTensors::open(folder));
  source.check_tensors();
  return source;
}

void HuggingFaceModel::check_tensors() const {
  const std::vector<HuggingFaceName> names = huggingface_names(config_.decoder, prefix_);
  std::vector<std::string> known;
  for (const HuggingFaceName& name : names) {
    known.push_back(name.theirs);
    const std::optional<HuggingFaceTensors::Tensor> tensor = tensors_.find(name.theirs);
    if (!tensor) {
      // A base GPT-2 has no head; it is tied then, whatever config.json says.
      if (name.theirs == kHuggingFaceHead && config_.family == "gpt2") continue;
      refuse(tensors_.path(), fmt::format("the tensor '{}' is missing", name.theirs));
    }
    if (tensor->type().shape != name.shape || !is_floating(tensor->type().dtype))
      refuse(tensor->file->path(),
             fmt::format("'{}' is {}; {} was expected", name.theirs, tensor->type().text(),
                         TensorType{DType::f32, name.shape}.text()));
  }
  std::ranges::sort(known);
  for (const HuggingFaceTensors::Tensor& tensor : tensors_.all()) {
    const std::string& found = tensor.stored->name;
    if (!std::ranges::binary_search(known, found) && !is_huggingface_buffer(found) &&
        found != kHuggingFaceHead)
      refuse(tensor.file->path(),
             fmt::format("'{}' is no tensor of a {} as config.json has it.{}", excerpt(found),
                         config_.family, did_you_mean(found, known)));
  }
}

std::vector<HuggingFaceName> HuggingFaceModel::names(const DecoderConfig& decoder) const {
  DecoderConfig with_head = config_.decoder;
  with_head.tie_head = decoder.tie_head;
  std::vector<HuggingFaceName> names;
  for (HuggingFaceName& name : huggingface_names(with_head, prefix_)) {
    const bool gpt2 = decoder.style == DecoderConfig::Style::gpt2;
    if (gpt2 && !decoder.bias && name.ours.ends_with(".bias")) continue;
    if (!tensors_.find(name.theirs)) name.theirs = prefix_ + huggingface_table(decoder);
    names.push_back(std::move(name));
  }
  return names;
}

void HuggingFaceModel::fill(const DecoderConfig& decoder, State& state,
                            const HuggingFaceAdvice& advice) const {
  DecoderConfig with_all = decoder;
  with_all.bias = true;
  for (const HuggingFaceName& name : names(with_all)) {
    std::vector<float> values = tensors_.find(name.theirs)->read();
    if (name.transposed) values = transposed(values, name.shape[0], name.shape[1]);
    if (state.find(name.ours) < 0) {
      if (std::any_of(values.begin(), values.end(), [](float value) { return value != 0; }))
        refuse(tensors_.path(), fmt::format("'{}' is not zero, and the model has no biases{}",
                                            name.theirs, advice.bias));
      continue;
    }
    // A shorter context takes the first positions.
    const TensorType& type = state.entries()[static_cast<size_t>(state.find(name.ours))].type;
    values.resize(static_cast<size_t>(type.elements()));
    state.write(name.ours, values);
  }
  const std::optional<HuggingFaceTensors::Tensor> head = tensors_.find(kHuggingFaceHead);
  if (!decoder.tie_head || !head) return;
  const std::optional<HuggingFaceTensors::Tensor> table =
      tensors_.find(prefix_ + huggingface_table(decoder));
  if (head->type() != table->type() || head->read() != table->read())
    refuse(tensors_.path(), "the output head is not the token table" + advice.head);
}

void export_huggingface_model(const std::string& folder, const HuggingFaceConfig& model,
                              const State& state) {
  const std::string config = huggingface_config_json(model);
  const std::string path = folder + "/model.safetensors";
  std::error_code error;
  if (fs::exists(path, error)) refuse(path, "exists already; name another folder");
  // With its name in the folder above: what is written into it outlives a power cut only if it does.
  if (const Status made = make_folders(folder); !made) throw DataError(made.error());
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<float>> memory;
  for (const HuggingFaceName& name :
       huggingface_names(model.decoder, huggingface_prefix(model.decoder))) {
    const auto elements = static_cast<size_t>(name.shape.elements());
    std::vector<float>& values = memory.emplace_back(elements, 0.0F);
    if (state.find(name.ours) >= 0) {
      values = state.read<float>(name.ours);
      if (name.transposed) values = transposed(values, name.shape[1], name.shape[0]);
    }
    tensors.push_back({name.theirs, {DType::f32, name.shape}, values.data()});
  }
  const Status written = write_checkpoint(path, tensors, {{"format", "pt"}});
  if (!written) throw DataError(written.error());
  write_text(folder + "/config.json", config);
}

}  // namespace fullbore
