#include "fullbore/ckpt/byte_source.h"

#include <utility>

#include "fullbore/ckpt/packed_file.h"

namespace fullbore {
namespace {

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(InputFile file) : file_(std::move(file)) {}
  const std::string& path() const override { return file_.path(); }
  uint64_t bytes() const override { return file_.bytes(); }
  Status read_exactly(uint64_t offset, void* data, size_t bytes) const override {
    return file_.read_exactly(offset, data, bytes);
  }

 private:
  InputFile file_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_byte_source(const std::string& path, FileSystem& files) {
  Result<InputFile> file = InputFile::open(path, files);
  if (!file.ok()) return Failure{file.error()};
  if (path.ends_with(kPackedSuffix)) return open_packed_file(std::move(file).value());
  std::unique_ptr<ByteSource> source = std::make_unique<PlainSource>(std::move(file).value());
  return source;
}

}  // namespace fullbore
