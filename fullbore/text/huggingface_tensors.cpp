#include "fullbore/text/huggingface_tensors.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/files.h"
#include "fullbore/base/json.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw DataError(fmt::format("{}: {}", path, reason));
}

/// The index: which file of the folder each tensor is in.
std::map<std::string, std::string> read_index(const std::string& path) {
  const Result<json> parsed = parse_json(read_file(path).take_or_throw());
  if (!parsed.ok()) refuse(path, parsed.error());
  const json& index = parsed.value();
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty())
    refuse(path, "a JSON object with a 'weight_map' from tensors to files was expected");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    const std::string name = file.is_string() ? file.get<std::string>() : "";
    // Nothing outside of the folder is opened because a file says so.
    if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos)
      refuse(path, fmt::format("the file of '{}' is {}; the name of a file beside it was expected",
                               excerpt(tensor), json_excerpt(file)));
    files[tensor] = name;
  }
  return files;
}

}  // namespace

HuggingFaceTensors::HuggingFaceTensors(std::string path, std::vector<Checkpoint> files)
    : path_(std::move(path)), files_(std::move(files)) {
  std::set<std::string_view> names;
  for (const Tensor& tensor : all())
    if (!names.insert(tensor.stored->name).second)
      refuse(path_, fmt::format("'{}' is in two of its files", excerpt(tensor.stored->name)));
}

HuggingFaceTensors HuggingFaceTensors::open(const std::string& folder) {
  const auto in_folder = [&](const std::string& name) { return folder + "/" + name; };
  const auto exists = [&](const char* name) {
    std::error_code error;
    return fs::exists(in_folder(name), error);
  };
  const auto open_file = [&](const std::string& name) {
    return read_checkpoint(in_folder(name), Verify::kStructure).take_or_throw();
  };
  std::vector<Checkpoint> files;
  if (exists(kSingle) || !exists(kIndex)) {
    if (!exists(kSingle) && exists("pytorch_model.bin"))
      refuse(in_folder(kSingle),
             "there is only pytorch_model.bin; save the model as safetensors first");
    files.push_back(open_file(kSingle));
    return {in_folder(kSingle), std::move(files)};
  }
  const std::string path = in_folder(kIndex);
  std::map<std::string, size_t> opened;
  for (const auto& [tensor, name] : read_index(path)) {
    const auto [place, is_new] = opened.emplace(name, files.size());
    if (is_new) files.push_back(open_file(name));
    if (files[place->second].find(tensor) == nullptr)
      refuse(path, fmt::format("'{}' is said to be in {}, which has no such tensor",
                               excerpt(tensor), name));
  }
  return {path, std::move(files)};
}

std::vector<std::string> HuggingFaceTensors::files() const {
  std::vector<std::string> paths;
  for (const Checkpoint& each : files_) paths.push_back(each.path());
  return paths;
}

std::optional<HuggingFaceTensors::Tensor> HuggingFaceTensors::find(std::string_view name) const {
  for (const Checkpoint& file : files_)
    if (const StoredTensor* stored = file.find(name)) return Tensor{&file, stored};
  return std::nullopt;
}

std::vector<HuggingFaceTensors::Tensor> HuggingFaceTensors::all() const {
  std::vector<Tensor> tensors;
  for (const Checkpoint& file : files_)
    for (const StoredTensor& stored : file.tensors()) tensors.push_back({&file, &stored});
  return tensors;
}

std::vector<float> HuggingFaceTensors::Tensor::read() const {
  std::vector<char> bytes(stored->bytes());
  const Status status = file->read(*stored, bytes.data());
  if (!status) throw DataError(status.error());
  std::vector<float> values(static_cast<size_t>(type().elements()));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<float>(load_element(bytes.data(), type().dtype, static_cast<int64_t>(i)));
  return values;
}

}  // namespace fullbore
