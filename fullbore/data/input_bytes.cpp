#include "fullbore/data/input_bytes.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "fullbore/base/check.h"

namespace fullbore {

class InputBytes::Inflater {
 public:
  Inflater() : input_(size_t{1} << 16) {
    constexpr int kGzip = 16 + MAX_WBITS;
    FB_CHECK(inflateInit2(&stream_, kGzip) == Z_OK, "zlib has no memory");
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Result<size_t> read(InputBytes& source, char* data, size_t bytes) {
    const size_t most = std::min<size_t>(bytes, std::numeric_limits<uInt>::max());
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = static_cast<uInt>(most);
    while (stream_.avail_out == most) {
      if (stream_.avail_in == 0) {
        Result<size_t> count = source.read_file(input_.data(), input_.size());
        if (!count.ok()) return count;
        if (count.value() == 0) {
          if (between_members_) return size_t{0};
          return failure(source, "ends before its gzip data do");
        }
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(count.value());
      }
      if (between_members_) {
        // Zeros behind the last member are padding, of tapes once and of some writers still.
        if (*stream_.next_in == 0) {
          ++stream_.next_in;
          --stream_.avail_in;
          continue;
        }
        inflateReset(&stream_);
        between_members_ = false;
      }
      const int code = inflate(&stream_, Z_NO_FLUSH);
      if (code == Z_STREAM_END)
        between_members_ = true;
      else if (code != Z_OK && code != Z_BUF_ERROR)
        return failure(source, stream_.msg != nullptr ? stream_.msg : "damaged gzip data");
    }
    return most - stream_.avail_out;
  }

 private:
  Failure failure(const InputBytes& source, std::string_view what) const {
    return Failure{fmt::format("{}: {} (byte {} of the file)", source.path(), what,
                               source.offset_ - stream_.avail_in)};
  }

  z_stream stream_{};
  std::vector<char> input_;
  bool between_members_ = false;
};

InputBytes::InputBytes(InputFile file) : file_(std::move(file)) {}
InputBytes::InputBytes(InputBytes&&) noexcept = default;
InputBytes& InputBytes::operator=(InputBytes&&) noexcept = default;
InputBytes::~InputBytes() = default;

Result<InputBytes> InputBytes::open(const std::string& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) return Failure{file.error()};
  InputBytes bytes(std::move(file).value());
  unsigned char magic[2] = {};
  const Result<size_t> count = bytes.file_.read(0, magic, sizeof(magic));
  if (!count.ok()) return Failure{count.error()};
  if (count.value() == 2 && magic[0] == 0x1F && magic[1] == 0x8B)
    bytes.inflater_ = std::make_unique<Inflater>();
  return bytes;
}

Result<size_t> InputBytes::read(char* data, size_t bytes) {
  return inflater_ ? inflater_->read(*this, data, bytes) : read_file(data, bytes);
}

Result<size_t> InputBytes::read_file(char* data, size_t bytes) {
  Result<size_t> count = file_.read(offset_, data, bytes);
  if (count.ok()) offset_ += count.value();
  return count;
}

}  // namespace fullbore
