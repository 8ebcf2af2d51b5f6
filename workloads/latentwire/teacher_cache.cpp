#include "workloads/latentwire/teacher_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/base/dtype.h"
#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/prompt_batches.h"
#include "workloads/latentwire/receiver_rows.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kFileBytes = int64_t{64} << 20;  // about; what is lost when a pass is interrupted

std::string hash_of(const std::string& text) {
  // Two hashes: nobody meets another's file by chance.
  return hash_hex(hash_text(text)) + hash_hex(hash_text(text, 1));
}

void write_numbers(std::span<const float> from, bool narrow, std::byte* to) {
  if (!narrow) {
    std::memcpy(to, from.data(), from.size_bytes());
    return;
  }
  auto* const bits = reinterpret_cast<uint16_t*>(to);
  std::ranges::transform(from, bits, f32_to_bf16);
}

void read_numbers(std::span<const std::byte> from, bool narrow, float* to) {
  if (!narrow) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  const auto* const bits = reinterpret_cast<const uint16_t*>(from.data());
  std::transform(bits, bits + from.size() / sizeof(uint16_t), to, bf16_to_f32);
}

}  // namespace

/// Those of one receiver, each of rows_at_once prompts; opened once.
struct TeacherCache::Files {
  std::once_flag opened;
  TeacherForm form;
  int64_t width = 0;
  int64_t row_bytes = 0;
  int64_t rows_at_once = 0;
  std::vector<std::optional<TeacherFile>> files;
  std::vector<bool> was_there;
};

bool caches_teacher(const Config& config) {
  const LatentKeys::Loss& keys = latent_keys(config).loss;
  return keys.teacher_cache != "off" && teacher_form(config, 1).states() > 0;
}

TeacherCache::TeacherCache(const Config& config, std::shared_ptr<const PromptSource> source,
                           std::shared_ptr<const std::vector<Receiver>> receivers,
                           std::span<const int64_t> answers)
    : config_(config),
      source_(std::move(source)),
      receivers_(std::move(receivers)),
      answers_(answers.begin(), answers.end()),
      folder_(data_cache_folder(config, "teacher")),
      narrow_(latent_keys(config).loss.teacher_cache == "bf16") {
  for (size_t i = 0; i < receivers_->size(); ++i) {
    auto files = std::make_unique<Files>();
    files->form = teacher_form(config_, answers_[i]);
    files->width = (*receivers_)[i].decoder.width;
    files->row_bytes = shape(i).elements() * (narrow_ ? 2 : 4);
    files->rows_at_once = std::clamp<int64_t>(kFileBytes / files->row_bytes, 1, source_->size());
    files_.push_back(std::move(files));
  }
}

TeacherCache::~TeacherCache() = default;

Shape TeacherCache::shape(size_t receiver) const {
  const TeacherForm form = teacher_form(config_, answers_[receiver]);
  return {form.states(), form.places, (*receivers_)[receiver].decoder.width};
}

TeacherPass::Row TeacherCache::row(size_t receiver, int64_t prompt) const {
  const Receiver& reader = (*receivers_)[receiver];
  const Prompt text = source_->prompt(prompt);
  TeacherPass::Row row{prompt_ids(reader, text.source())};
  row.prompt = std::ssize(row.ids);
  std::vector<int32_t> answer = cut_answer(reader, text, answers_[receiver]);
  // Of the answer what the places see: the last one's token is not read.
  answer.resize(std::min(answer.size(), static_cast<size_t>(files_[receiver]->form.places - 1)));
  row.ids.insert(row.ids.end(), answer.begin(), answer.end());
  return row;
}

void TeacherCache::make(size_t receiver, Files& files) const {
  const Receiver& reader = (*receivers_)[receiver];
  const std::string key = hash_of(fmt::format(
      "{}\n{}\n{}\nrows {}\nanswer {}\nplaces {}\nlast {}\nlayers {}\nprecision {}\nbf16 {}",
      source_->identity(), receivers_json({reader}), weights_identity(reader, config_),
      row_recipe(config_, {reader}), answers_[receiver], files.form.places, files.form.last,
      fmt::join(files.form.layers, ","), config_.engine.precision, narrow_));
  std::unique_ptr<TeacherPass> pass;
  const auto fill = [&](int64_t first, int64_t rows, std::span<std::byte> to) {
    if (!pass) pass = std::make_unique<TeacherPass>(config_, reader, files.form);
    std::vector<TeacherPass::Row> texts;
    for (int64_t i = 0; i < rows; ++i) texts.push_back(row(receiver, first + i));
    write_numbers(pass->run(texts), narrow_, to.data());
  };
  for (int64_t first = 0; first < source_->size(); first += files.rows_at_once) {
    const TeacherFileForm form{key, first, std::min(files.rows_at_once, source_->size() - first),
                               files.row_bytes};
    const std::string path = fmt::format("{}/{}-{}-{}.teacher", folder_, reader.name, key, first);
    Result<TeacherFile> found = TeacherFile::open(path, form);
    const bool was_there = found.ok();
    if (!was_there) {
      const Status written =
          TeacherFile::write(path, form, static_cast<int64_t>(TeacherPass::kRows), fill);
      if (!written.ok())
        throw DataError(
            fmt::format("the teacher's targets: {}. data.cache_dir chooses another folder, and "
                        "loss.teacher_cache=off has no files",
                        written.error()));
      found = TeacherFile::open(path, form);
    }
    files.files.emplace_back(std::move(found).take_or_throw());
    files.was_there.push_back(was_there);
  }
}

int64_t TeacherCache::copy(size_t receiver, std::span<const int64_t> prompts, float* to) const {
  Files& files = *files_[receiver];
  std::call_once(files.opened, [&] {
    files.files.clear();  // of a call that failed
    files.was_there.clear();
    make(receiver, files);
  });
  const int64_t numbers = shape(receiver).elements();
  int64_t found = 0;
  for (const int64_t prompt : prompts) {
    const auto which = static_cast<size_t>(prompt / files.rows_at_once);
    read_numbers(files.files[which]->row(prompt % files.rows_at_once), narrow_, to);
    found += files.was_there[which] ? 1 : 0;
    to += numbers;
  }
  return found;
}

std::string TeacherCache::about() const {
  std::string text;
  for (size_t i = 0; i < files_.size(); ++i)
    text += fmt::format("{}{} {:.1f} MB", text.empty() ? "" : ", ", (*receivers_)[i].name,
                        static_cast<double>(files_[i]->row_bytes * source_->size()) / 1e6);
  return fmt::format("teacher's targets of {} prompts in {}: {}", source_->size(), folder_, text);
}

}  // namespace fullbore::latentwire
