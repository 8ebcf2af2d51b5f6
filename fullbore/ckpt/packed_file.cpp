#include "fullbore/ckpt/packed_file.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace fullbore {
namespace {

constexpr std::string_view kMagic = "FBPACK1\n";
constexpr size_t kBlockBytes = size_t{1} << 20;
// Level 1: at three times the size of a disk's queue per second, more effort gains a few per cent.
constexpr int kLevel = 1;

struct BlockHeader {
  uint32_t bytes;
  uint32_t width;
  uint32_t packed_bytes;
};
static_assert(sizeof(BlockHeader) == 12);

bool is_width(uint32_t width) { return width == 1 || width == 2 || width == 4 || width == 8; }

void shuffle(std::string_view bytes, size_t width, char* out) {
  const size_t count = bytes.size() / width;
  for (size_t part = 0; part < width; ++part)
    for (size_t i = 0; i < count; ++i) out[part * count + i] = bytes[i * width + part];
}

void unshuffle(std::string_view bytes, size_t width, char* out) {
  const size_t count = bytes.size() / width;
  for (size_t part = 0; part < width; ++part)
    for (size_t i = 0; i < count; ++i) out[i * width + part] = bytes[part * count + i];
}

class PackedSource : public ByteSource {
 public:
  explicit PackedSource(InputFile file) : file_(std::move(file)) {}

  const std::string& path() const override { return file_.path(); }
  uint64_t bytes() const override { return bytes_; }

  Status read_headers() {
    char magic[kMagic.size()];
    if (Status status = file_.read_exactly(0, magic, sizeof magic); !status.ok()) return status;
    if (std::string_view(magic, sizeof magic) != kMagic)
      return Failure{fmt::format("{}: byte 0: no packed file of this version", path())};
    for (uint64_t at = kMagic.size(); at < file_.bytes();) {
      BlockHeader header;
      if (Status status = file_.read_exactly(at, &header, sizeof header); !status.ok())
        return status;
      const uint64_t end = at + sizeof header + header.packed_bytes;
      if (!is_width(header.width) || header.bytes == 0 || header.bytes > kBlockBytes ||
          header.bytes % header.width != 0 || end > file_.bytes())
        return Failure{fmt::format("{}: byte {}: a block that cannot be", path(), at)};
      blocks_.push_back({bytes_, at + sizeof header, header});
      bytes_ += header.bytes;
      at = end;
    }
    return success();
  }

  Status read_exactly(uint64_t offset, void* data, size_t bytes) const override {
    if (offset > bytes_ || bytes > bytes_ - offset)
      return Failure{fmt::format("{} ends at byte {}; {} bytes were expected from byte {} on",
                                 path(), bytes_, bytes, offset)};
    auto block = std::upper_bound(blocks_.begin(), blocks_.end(), offset,
                                  [](uint64_t at, const Block& b) { return at < b.begin; });
    for (auto* out = static_cast<char*>(data); bytes > 0; ++block) {
      const Block& current = *(block - 1);
      if (Status status = unpack(current); !status.ok()) return status;
      const size_t skipped = offset - current.begin;
      const size_t count = std::min<size_t>(bytes, current.header.bytes - skipped);
      std::memcpy(out, unpacked_.data() + skipped, count);
      out += count;
      offset += count;
      bytes -= count;
    }
    return success();
  }

 private:
  struct Block {
    uint64_t begin;  ///< of its contents
    uint64_t place;  ///< of its frame in the file
    BlockHeader header;
  };

  /// The block's contents to `unpacked_`, unless they are there.
  Status unpack(const Block& block) const {
    if (unpacked_place_ == block.place) return success();
    unpacked_place_ = 0;
    std::string packed(block.header.packed_bytes, '\0');
    if (Status status = file_.read_exactly(block.place, packed.data(), packed.size()); !status.ok())
      return status;
    std::string shuffled(block.header.bytes, '\0');
    const size_t count =
        ZSTD_decompress(shuffled.data(), shuffled.size(), packed.data(), packed.size());
    if (ZSTD_isError(count) != 0 || count != shuffled.size())
      return Failure{fmt::format(
          "{}: byte {}: {}", path(), block.place,
          ZSTD_isError(count) != 0 ? ZSTD_getErrorName(count) : "a block shorter than it says")};
    unpacked_.resize(shuffled.size());
    unshuffle(shuffled, block.header.width, unpacked_.data());
    unpacked_place_ = block.place;
    return success();
  }

  InputFile file_;
  uint64_t bytes_ = 0;
  std::vector<Block> blocks_;
  mutable std::string unpacked_;
  mutable uint64_t unpacked_place_ = 0;  ///< of the block in it; 0, where the magic is: none
};

}  // namespace

Packer::Packer(ByteSink sink)
    : sink_(std::move(sink)), context_(ZSTD_createCCtx()), shuffled_(kBlockBytes, '\0') {
  if (context_ == nullptr) throw std::bad_alloc();
}

Packer::~Packer() { ZSTD_freeCCtx(context_); }

Status Packer::write(std::string_view bytes, int width) {
  if (!std::exchange(begun_, true))
    if (Status status = sink_(kMagic); !status.ok()) return status;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kBlockBytes, bytes.size())))
    if (Status status = write_block(bytes.substr(0, kBlockBytes), width); !status.ok())
      return status;
  return success();
}

Status Packer::write_block(std::string_view bytes, int width) {
  BlockHeader header{static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(width), 0};
  FB_CHECK(is_width(header.width) && bytes.size() % header.width == 0, "{} bytes in elements of {}",
           bytes.size(), width);
  shuffle(bytes, header.width, shuffled_.data());
  packed_.resize(sizeof header + ZSTD_compressBound(bytes.size()));
  const size_t count =
      ZSTD_compressCCtx(context_, packed_.data() + sizeof header, packed_.size() - sizeof header,
                        shuffled_.data(), bytes.size(), kLevel);
  if (ZSTD_isError(count) != 0)
    return Failure{fmt::format("cannot compress: {}", ZSTD_getErrorName(count))};
  header.packed_bytes = static_cast<uint32_t>(count);
  std::memcpy(packed_.data(), &header, sizeof header);
  return sink_(std::string_view(packed_).substr(0, sizeof header + count));
}

Result<std::unique_ptr<ByteSource>> open_packed_file(InputFile file) {
  auto source = std::make_unique<PackedSource>(std::move(file));
  if (const Status status = source->read_headers(); !status.ok()) return Failure{status.error()};
  return std::unique_ptr<ByteSource>(std::move(source));
}

}  // namespace fullbore
