#include "workloads/peptide/left_out.h"

#include <fmt/format.h>

#include <filesystem>

#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 16;
constexpr size_t kMostTitle = 500;

/// Tabs and line ends would end a field.
std::string field(std::string_view text) {
  std::string clean(text.substr(0, kMostTitle));
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  return clean;
}

}  // namespace

void LeftOutList::add(std::string_view file, const Spectrum& spectrum, std::string_view reason) {
  ++size_;
  const uint64_t line = spectrum.problem.empty() ? spectrum.line : spectrum.problem_line;
  if (first_bad_.empty() && !spectrum.problem.empty())
    first_bad_ = fmt::format("{}:{}: {}", file, line, reason);
  if (path_.empty() || !error_.empty()) return;
  if (size_ == 1) buffer_ = "file\tspectrum\ttitle\tline\treason\n";
  buffer_ += fmt::format("{}\t{}\t{}\t{}\t{}\n", field(file), field(spectrum_reference(spectrum)),
                         field(spectrum.title), line, field(reason));
  if (buffer_.size() < kPieceBytes) return;
  if (const Status status = flush(); !status.ok()) error_ = status.error();
}

Status LeftOutList::flush() {
  if (!file_) {
    Result<AtomicFile> created = AtomicFile::create(path_, *files_);
    if (!created.ok()) return Failure{created.error()};
    file_.emplace(std::move(created).value());
  }
  Status status = file_->write(buffer_);
  buffer_.clear();
  return status;
}

Status LeftOutList::commit() {
  if (path_.empty()) return success();
  if (!error_.empty()) return Failure{error_};
  if (size_ == 0) {
    std::error_code error;
    std::filesystem::remove(path_, error);
    if (error && std::filesystem::exists(path_))
      return Failure{fmt::format("{}: {}", path_, error.message())};
    return success();
  }
  Status status = flush();
  return status.ok() ? file_->commit() : status;
}

}  // namespace fullbore::peptide
