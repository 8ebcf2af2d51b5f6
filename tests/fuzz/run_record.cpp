// Any bytes as position.json, metrics.json and config.json of a checkpoint whose manifest is right, with zero bytes
// between them: refused with the file's name, or a place in a run that is one.
#include "fullbore/ckpt/run_record.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/hash.h"
#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/ckpt/manifest.h"
#include "fullbore/train/run_config.h"
#include "fullbore/train/run_position.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/memory_folder.h"

using namespace fullbore;
using fullbore::testing::MemoryFolder;
using fullbore::testing::parts_of;
using fullbore::testing::require;

namespace {

/// As write_checkpoint_folder() does, without waiting for a disk.
void put_all(const MemoryFolder& folder, const std::map<std::string, std::string>& texts) {
  Manifest manifest;
  for (const auto& [name, text] : texts) {
    folder.put(name, text);
    manifest[name] = {text.size(), hash_text(text)};
  }
  folder.put(kManifestName, encode_manifest(manifest));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFolder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string_view> parts = parts_of(bytes, 3);
  put_all(folder, {{"position.json", std::string(parts[0])},
                   {"metrics.json", std::string(parts[1])},
                   {"config.json", std::string(parts[2])},
                   {"tokenizer.json", ""}});
  const CheckpointFolder checkpoint = open_checkpoint_folder(folder.path()).take_or_throw();
  require(checkpoint.verify().ok());
  const Result<RunRecord> read = read_run_record(checkpoint);
  if (!read.ok()) {
    require(read.error().starts_with(folder.path()));
    return 0;
  }
  const RunRecord& record = read.value();
  const RunPosition position = to_position(record);
  require(position.step == record.step && position.step >= 0);
  for (const int64_t step : {position.evaluated_step, position.best_step}) require(step >= -1);
  for (const int64_t count :
       {position.evaluations_since_best, position.skipped_steps, position.skipped_in_row})
    require(count >= 0);
  put_all(folder, to_texts(record));
  const RunRecord again =
      read_run_record(open_checkpoint_folder(folder.path()).take_or_throw()).take_or_throw();
  require(to_texts(again) == to_texts(record));
  return 0;
}
