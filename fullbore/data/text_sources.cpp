#include "fullbore/data/text_sources.h"

#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/input_file.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = size_t{1} << 20;

using HashState = std::unique_ptr<XXH64_state_t, decltype(&XXH64_freeState)>;

HashState start_hash() {
  HashState state(XXH64_createState(), &XXH64_freeState);
  XXH64_reset(state.get(), 0);
  return state;
}

bool is_json_lines(const std::string& path) {
  return path.ends_with(".jsonl") || path.ends_with(".ndjson");
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

Result<std::vector<std::string>> files_below(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  const fs::recursive_directory_iterator end;
  while (!error && entry != end) {
    if (is_hidden(entry->path())) {
      if (entry->is_directory(error)) entry.disable_recursion_pending();
    } else if (entry->is_regular_file(error)) {
      paths.push_back(entry->path().string());
    }
    if (!error) entry.increment(error);
  }
  if (error) return Failure{fmt::format("cannot read the folder {}: {}", folder, error.message())};
  return paths;
}

Result<std::vector<std::string>> files_like(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::string> paths;
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    std::error_code error;
    if (fs::is_regular_file(found.gl_pathv[i], error)) paths.emplace_back(found.gl_pathv[i]);
  }
  ::globfree(&found);
  if (status != 0 && status != GLOB_NOMATCH)
    return Failure{fmt::format("cannot read the folders of {}: {}", pattern, system_reason())};
  if (paths.empty()) return Failure{fmt::format("no file is like {}", pattern)};
  return paths;
}

Result<FileHash> hash_file(const std::string& path) {
  const Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return Failure{file.error()};
  const HashState state = start_hash();
  std::vector<char> block(kBlockBytes);
  FileHash result;
  for (;;) {
    const Result<size_t> count = file.value().read(result.bytes, block.data(), block.size());
    if (!count.ok()) return Failure{count.error()};
    if (count.value() == 0) break;
    XXH64_update(state.get(), block.data(), count.value());
    result.bytes += count.value();
  }
  result.hash = XXH64_digest(state.get());
  return result;
}

/// Copies what comes from `input` to the file. Failure names the system's reason.
Result<FileHash> copy_input(int input, AtomicFile& file) {
  const HashState state = start_hash();
  std::vector<char> block(kBlockBytes);
  FileHash copied;
  for (;;) {
    const ssize_t count = ::read(input, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure{"cannot read standard input: " + system_reason()};
    if (count == 0) break;
    const std::string_view bytes(block.data(), static_cast<size_t>(count));
    XXH64_update(state.get(), bytes.data(), bytes.size());
    copied.bytes += bytes.size();
    if (const Status s = file.write(bytes); !s.ok()) return Failure{s.error()};
  }
  copied.hash = XXH64_digest(state.get());
  return copied;
}

}  // namespace

uint64_t TextSources::bytes() const {
  uint64_t sum = 0;
  for (const TextFile& file : files) sum += file.bytes;
  return sum;
}

uint64_t ContentHash::bytes() const {
  uint64_t sum = 0;
  for (const FileHash& file : files) sum += file.bytes;
  return sum;
}

uint64_t ContentHash::hash() const {
  if (files.size() == 1 && field.empty()) return files[0].hash;
  static_assert(sizeof(FileHash) == 16);
  return hash_bytes(files.data(), files.size() * sizeof(FileHash), hash_text(field));
}

Result<TextSources> find_text(const std::string& path, const std::string& field) {
  if (path.empty()) return Failure{"no text is named: data.path is empty"};
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const bool is_pattern =
      !fs::exists(path, error) && path.find_first_of("*?[") != std::string::npos;
  Result<std::vector<std::string>> paths = is_folder    ? files_below(path)
                                           : is_pattern ? files_like(path)
                                                        : std::vector<std::string>{path};
  if (!paths.ok()) return Failure{paths.error()};
  std::sort(paths.value().begin(), paths.value().end());
  TextSources sources{path, {}, field};
  for (const std::string& name : paths.value()) {
    const Result<InputFile> file = InputFile::open(name);
    if (!file.ok()) return Failure{file.error()};
    const uint64_t bytes = file.value().bytes();
    if (bytes > 0) sources.files.push_back({name, bytes, is_json_lines(name)});
  }
  if (!sources.files.empty()) return sources;
  if (is_folder) return Failure{fmt::format("the folder {} holds no text", path)};
  return Failure{fmt::format("{} is empty: text was expected", path)};
}

Result<std::string> keep_standard_input(const std::string& folder, int input, FileSystem& files) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return Failure{fmt::format("cannot create the folder {}: {}", folder, error.message())};
  const std::string arriving = fmt::format("{}/stdin-{}.txt", folder, ::getpid());
  Result<AtomicFile> file = AtomicFile::create(arriving, files);
  if (!file.ok()) return Failure{file.error()};
  const Result<FileHash> copied = copy_input(input, file.value());
  if (!copied.ok()) return Failure{copied.error()};
  if (copied.value().bytes == 0) return Failure{"standard input is empty: text was expected"};
  if (const Status s = file.value().commit(); !s.ok()) return Failure{s.error()};
  const std::string path = fmt::format("{}/stdin-{}.txt", folder, hash_hex(copied.value().hash));
  if (files.rename(arriving, path) != 0)
    return Failure{fmt::format("cannot rename {} to {}: {}", arriving, path, system_reason())};
  return path;
}

Result<ContentHash> hash_text_sources(const TextSources& sources) {
  ContentHash content;
  for (const TextFile& file : sources.files) {
    const Result<FileHash> hash = hash_file(file.path);
    if (!hash.ok()) return Failure{hash.error()};
    content.files.push_back(hash.value());
    if (file.is_json_lines) content.field = sources.field;
  }
  return content;
}

}  // namespace fullbore
