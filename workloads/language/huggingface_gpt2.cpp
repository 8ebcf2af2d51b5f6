#include "workloads/language/huggingface_gpt2.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "workloads/language/huggingface_names.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kEpsilon = 1e-5;  // of nn::LayerNormOptions

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw DataError(fmt::format("{}: {}", path, reason));
}

json read_config(const std::string& path) {
  Result<json> config = parse_json(read_file(path).take_or_throw());
  if (!config.ok()) refuse(path, config.error());
  if (!config.value().is_object()) refuse(path, "not a JSON object");
  return std::move(config).value();
}

/// `most` is that of the model's own setting: a list of names is made of these sizes before the file is looked at.
int64_t size_of(const json& config, const char* key, int64_t most, const std::string& path) {
  const auto found = config.find(key);
  if (found == config.end()) refuse(path, fmt::format("'{}' is missing", key));
  if (!found->is_number_integer() || *found < 1 || *found > most)
    refuse(path, fmt::format("'{}' is {}; a whole number from 1 to {} was expected", key,
                             json_excerpt(*found), most));
  return *found;
}

/// A setting that must have one value, which is also what its absence means.
template <class T>
void require(const json& config, const char* key, T value, const std::string& path) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null() || *found == json(value)) return;
  refuse(path, fmt::format("'{}' is {}; only {} is known here", key, json_excerpt(*found),
                           json(value).dump()));
}

bool tanh_gelu_of(const json& config, const std::string& path) {
  const json name = config.value("activation_function", json("gelu_new"));
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return true;
  if (name == "gelu") return false;
  refuse(path, fmt::format("'activation_function' is {}; gelu_new or gelu was expected",
                           json_excerpt(name)));
}

LanguageModelConfig parse_config_json(const json& config, const std::string& path) {
  require(config, "model_type", "gpt2", path);
  require(config, "layer_norm_epsilon", kEpsilon, path);
  require(config, "scale_attn_weights", true, path);
  require(config, "scale_attn_by_inverse_layer_idx", false, path);
  require(config, "add_cross_attention", false, path);
  LanguageModelConfig model;
  model.vocabulary = size_of(config, "vocab_size", 1'000'000'000, path);
  model.layers = size_of(config, "n_layer", 1000, path);
  model.heads = size_of(config, "n_head", 1024, path);
  model.width = size_of(config, "n_embd", 65536, path);
  model.context = size_of(config, "n_positions", 1048576, path);
  require(config, "n_inner", 4 * model.width, path);
  const json tied = config.value("tie_word_embeddings", json(true));
  if (!tied.is_boolean()) refuse(path, "'tie_word_embeddings' is neither true nor false");
  model.tie_head = tied;
  model.tanh_gelu = tanh_gelu_of(config, path);
  return model;
}

/// x [rows, columns] -> [columns, rows].
std::vector<float> transposed(const std::vector<float>& x, int64_t rows, int64_t columns) {
  std::vector<float> y(x.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      y[static_cast<size_t>(c * rows + r)] = x[static_cast<size_t>(r * columns + c)];
  return y;
}

std::string config_json(const LanguageModelConfig& model) {
  nlohmann::ordered_json config = {
      {"architectures", {"GPT2LMHeadModel"}},
      {"model_type", "gpt2"},
      {"vocab_size", model.vocabulary},
      {"n_positions", model.context},
      {"n_ctx", model.context},
      {"n_embd", model.width},
      {"n_layer", model.layers},
      {"n_head", model.heads},
      {"n_inner", nullptr},
      {"activation_function", model.tanh_gelu ? "gelu_new" : "gelu"},
      {"embd_pdrop", model.dropout},
      {"attn_pdrop", model.dropout},
      {"resid_pdrop", model.dropout},
      {"layer_norm_epsilon", kEpsilon},
      {"initializer_range", 0.02},
      {"scale_attn_weights", true},
      {"tie_word_embeddings", model.tie_head},
      {"torch_dtype", "float32"},
  };
  // GPT-2's own end of text; other vocabularies have none that is known here, and the default of the
  // format would lie outside of them.
  constexpr int64_t kGpt2Vocabulary = 50257;
  for (const char* key : {"bos_token_id", "eos_token_id"}) {
    config[key] = nullptr;
    if (model.vocabulary == kGpt2Vocabulary) config[key] = kGpt2Vocabulary - 1;
  }
  return config.dump(2) + "\n";
}

void write_text(const std::string& path, const std::string& text) {
  const Status written = write_file_atomically(path, text);
  if (!written) throw DataError(written.error());
}

}  // namespace

HuggingFaceGpt2::HuggingFaceGpt2(std::string folder, LanguageModelConfig config,
                                 HuggingFaceTensors tensors)
    : folder_(std::move(folder)), config_(config), tensors_(std::move(tensors)) {
  prefix_ = tensors_.find("wte.weight") ? "" : "transformer.";
}

HuggingFaceGpt2 HuggingFaceGpt2::open(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw DataError(fmt::format("{} is no folder with a GPT-2 in the Hugging Face layout", folder));
  const std::string path = folder + "/config.json";
  const LanguageModelConfig config = parse_config_json(read_config(path), path);
  HuggingFaceGpt2 source(folder, config, HuggingFaceTensors::open(folder));
  source.check_tensors();
  return source;
}

void HuggingFaceGpt2::check_tensors() const {
  const std::vector<HuggingFaceName> names = huggingface_gpt2_names(config_, prefix_);
  for (const HuggingFaceName& name : names) {
    const std::optional<HuggingFaceTensors::Tensor> tensor = tensors_.find(name.theirs);
    if (!tensor) {
      // A base model has no head; it is tied then, whatever config.json says.
      if (name.theirs == kHuggingFaceHead) continue;
      refuse(tensors_.path(), fmt::format("the tensor '{}' is missing", name.theirs));
    }
    if (tensor->type().shape != name.shape || !is_floating(tensor->type().dtype))
      refuse(tensor->file->path(),
             fmt::format("'{}' is {}; {} was expected", name.theirs, tensor->type().text(),
                         TensorType{DType::f32, name.shape}.text()));
  }
  for (const HuggingFaceTensors::Tensor& tensor : tensors_.all()) {
    const std::string& found = tensor.stored->name;
    const auto is_it = [&](const HuggingFaceName& name) { return name.theirs == found; };
    if (std::any_of(names.begin(), names.end(), is_it) || is_huggingface_buffer(found) ||
        found == kHuggingFaceHead)
      continue;
    refuse(tensor.file->path(), fmt::format("'{}' is no tensor of a GPT-2", excerpt(found)));
  }
}

void HuggingFaceGpt2::check(const LanguageModelConfig& model) const {
  const auto same = [&](const char* ours, auto here, const char* theirs, auto there, bool fits) {
    if (!fits)
      throw DataError(
          fmt::format("{} is {}, {}/config.json has {} {}", ours, here, folder_, theirs, there));
  };
  const auto equal = [&](const char* ours, int64_t here, const char* theirs, int64_t there) {
    same(ours, here, theirs, there, here == there);
  };
  equal("model.layers", model.layers, "n_layer", config_.layers);
  equal("model.heads", model.heads, "n_head", config_.heads);
  equal("model.width", model.width, "n_embd", config_.width);
  equal("the vocabulary", model.vocabulary, "vocab_size", config_.vocabulary);
  same("model.context", model.context, "n_positions", config_.context,
       model.context <= config_.context);
  same("model.activation", model.tanh_gelu ? "gelu_tanh" : "gelu", "activation_function",
       config_.tanh_gelu ? "gelu_new" : "gelu", model.tanh_gelu == config_.tanh_gelu);
}

std::vector<std::pair<std::string, std::string>> HuggingFaceGpt2::renamed(
    const LanguageModelConfig& model) const {
  LanguageModelConfig with_head = config_;
  with_head.tie_head = model.tie_head;
  std::vector<std::pair<std::string, std::string>> names;
  for (const HuggingFaceName& name : huggingface_gpt2_names(with_head, prefix_)) {
    if (!model.bias && name.ours.ends_with(".bias")) continue;
    names.emplace_back(name.ours,
                       tensors_.find(name.theirs) ? name.theirs : prefix_ + "wte.weight");
  }
  return names;
}

void HuggingFaceGpt2::fill(const LanguageModelConfig& model, State& state) const {
  LanguageModelConfig with_all = config_;
  with_all.tie_head = model.tie_head;
  for (const HuggingFaceName& name : huggingface_gpt2_names(with_all, prefix_)) {
    std::optional<HuggingFaceTensors::Tensor> tensor = tensors_.find(name.theirs);
    if (!tensor) tensor = tensors_.find(prefix_ + "wte.weight");  // the head, tied there
    std::vector<float> values = tensor->read();
    if (name.transposed) values = transposed(values, name.shape[0], name.shape[1]);
    if (state.find(name.ours) < 0) {
      if (std::any_of(values.begin(), values.end(), [](float value) { return value != 0; }))
        refuse(tensors_.path(), fmt::format("'{}' is not zero, and the model has no biases; set "
                                            "model.bias=true",
                                            name.theirs));
      continue;
    }
    // A shorter context takes the first positions.
    const TensorType& type = state.entries()[static_cast<size_t>(state.find(name.ours))].type;
    values.resize(static_cast<size_t>(type.elements()));
    state.write(name.ours, values);
  }
  const std::optional<HuggingFaceTensors::Tensor> head = tensors_.find(kHuggingFaceHead);
  if (!model.tie_head || !head) return;
  const std::optional<HuggingFaceTensors::Tensor> table = tensors_.find(prefix_ + "wte.weight");
  if (head->type() != table->type() || head->read() != table->read())
    refuse(tensors_.path(), "the output head is not the token table; set model.tie_head=false");
}

void export_huggingface_gpt2(const std::string& folder, const LanguageModelConfig& model,
                             const State& state) {
  const std::string path = folder + "/model.safetensors";
  std::error_code error;
  if (fs::exists(path, error)) refuse(path, "exists already; name another folder");
  // With its name in the folder above: what is written into it outlives a power cut only if it does.
  if (const Status made = make_folders(folder); !made) throw DataError(made.error());
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<float>> memory;
  for (const HuggingFaceName& name : huggingface_gpt2_names(model, "transformer.")) {
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
  write_text(folder + "/config.json", config_json(model));
}

}  // namespace fullbore
