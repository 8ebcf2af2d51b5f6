#include "fullbore/ckpt/mapped_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "fullbore/base/cache_directory.h"
#include "fullbore/base/content_cache.h"
#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/hash.h"
#include "fullbore/ckpt/safetensors.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".safetensors";

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw DataError(fmt::format("{}: {}", path, reason));
}

std::vector<std::string> files_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  const fs::path root = fs::canonical(path, error);
  if (error) refuse(path, error.message());
  std::vector<std::string> files;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().ends_with(kSuffix)) continue;
    std::error_code problem;
    const fs::path real = fs::canonical(entry->path(), problem);
    if (problem) refuse(entry->path().string(), problem.message());
    if (real.parent_path() != root)
      refuse(entry->path().string(),
             fmt::format("a link that leads out of {}, to {}", path, real.string()));
    files.push_back(entry->path().string());
  }
  if (error) refuse(path, error.message());
  if (files.empty()) refuse(path, "a file *.safetensors was expected in the folder");
  std::ranges::sort(files);
  return files;
}

void add_tensors(const std::string& path, std::vector<MappedTensor>& tensors) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path).take_or_throw();
  const std::span<const std::byte> bytes = file->bytes();
  uint64_t length = 0;
  if (bytes.size() < kSafetensorsLengthBytes)
    refuse(path, fmt::format("{} bytes are no safetensors file", bytes.size()));
  std::memcpy(&length, bytes.data(), sizeof length);
  const uint64_t most =
      std::min<uint64_t>(bytes.size() - kSafetensorsLengthBytes, kMostSafetensorsHeaderBytes);
  if (length > most)
    refuse(path, fmt::format("byte 0: a header of {} bytes in a file of {}", length, bytes.size()));
  const std::span<const std::byte> data = bytes.subspan(kSafetensorsLengthBytes + length);
  Result<SafetensorsHeader> header = parse_safetensors_header(
      {reinterpret_cast<const char*>(bytes.data()) + kSafetensorsLengthBytes, length}, data.size());
  if (!header.ok()) refuse(path, header.error());
  for (StoredTensor& each : header.value().tensors)
    tensors.push_back(
        {std::move(each.name), each.type, data.subspan(each.begin, each.bytes()), file});
}

/// What the cache keeps of a file: "name\thash" a line.
std::map<std::string, std::string, std::less<>> known_hashes(const ContentCache& cache,
                                                             const MappedFile& file) {
  std::map<std::string, std::string, std::less<>> hashes;
  const std::optional<std::string> text = cache.find(file.identity());
  for (size_t at = 0; text && at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    const std::string_view line = std::string_view(*text).substr(at, end - at);
    if (const size_t tab = line.rfind('\t'); tab != line.npos)
      hashes.emplace(line.substr(0, tab), line.substr(tab + 1));
    at = end + 1;
  }
  return hashes;
}

}  // namespace

MappedTensors MappedTensors::open(const std::string& path) { return open(path, files_of(path)); }

MappedTensors MappedTensors::open(const std::string& path, const std::vector<std::string>& files) {
  MappedTensors result;
  result.path_ = path;
  for (const std::string& file : files) add_tensors(file, result.tensors_);
  std::ranges::stable_sort(result.tensors_, {}, &MappedTensor::name);
  const auto twice = std::ranges::adjacent_find(result.tensors_, {}, &MappedTensor::name);
  if (twice != result.tensors_.end())
    refuse(twice->file->path(), fmt::format("'{}' is in {} as well", excerpt(twice->name),
                                            std::next(twice)->file->path()));
  return result;
}

const MappedTensor* MappedTensors::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &MappedTensor::name);
  return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

std::vector<std::string> tensor_hashes(std::span<const MappedTensor* const> tensors) {
  const ContentCache cache(cache_directory("hashes"));
  std::map<const MappedFile*, std::map<std::string, std::string, std::less<>>> known;
  std::map<const MappedFile*, bool> grown;
  std::vector<std::string> hashes;
  for (const MappedTensor* tensor : tensors) {
    const auto [place, is_new] = known.try_emplace(tensor->file.get());
    if (is_new) place->second = known_hashes(cache, *tensor->file);
    std::string& hash = place->second[tensor->name];
    if (hash.empty()) {
      hash = hash_hex(hash_bytes(tensor->bytes.data(), tensor->bytes.size()));
      grown[tensor->file.get()] = true;
    }
    hashes.push_back(hash);
  }
  for (const auto& [file, changed] : grown) {
    std::string text;
    for (const auto& [name, hash] : known[file]) text += fmt::format("{}\t{}\n", name, hash);
    cache.put(file->identity(), text);
  }
  return hashes;
}

}  // namespace fullbore
