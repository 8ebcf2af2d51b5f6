#include "fullbore/device/cpu/gemm/onednn_matmul.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "fullbore/base/processor.h"
#include "fullbore/device/cpu/kernels/elements.h"

// oneDNN asks OpenMP how many threads to use, and has no option of its own. Weak: bound to whichever
// runtime it has brought along, absent if it was built without one.
extern "C" {
[[gnu::weak]] int omp_get_max_threads();
[[gnu::weak]] void omp_set_num_threads(int);
}

namespace fullbore::cpu {
namespace {

// Matmuls of fewer operations share a call with their neighbours of the batch.
constexpr double kSmallFlops = 4e6;
constexpr int64_t kTileRows = 64;
constexpr int64_t kTileColumns = 256;

void check(dnnl_status_t status, const char* what) {
  FB_CHECK(status == dnnl_success, "oneDNN: {} returned status {}", what, static_cast<int>(status));
}

/// Makes oneDNN work on this thread alone while it lives.
class SingleThread {
 public:
  SingleThread() : threads_(omp_get_max_threads ? omp_get_max_threads() : 1) { set(1); }
  ~SingleThread() { set(threads_); }
  SingleThread(const SingleThread&) = delete;
  SingleThread& operator=(const SingleThread&) = delete;

 private:
  void set(int threads) {
    if (threads_ != 1 && omp_set_num_threads) omp_set_num_threads(threads);
  }
  int threads_;
};

template <class Handle, dnnl_status_t (*kDestroy)(Handle)>
struct Destroy {
  using pointer = Handle;
  void operator()(Handle handle) const { kDestroy(handle); }
};
template <class Handle, dnnl_status_t (*kDestroy)(Handle)>
using Owned = std::unique_ptr<Handle, Destroy<Handle, kDestroy>>;
using Memory = Owned<dnnl_memory_t, dnnl_memory_destroy>;
using Stream = Owned<dnnl_stream_t, dnnl_stream_destroy>;
using Primitive = Owned<dnnl_primitive_t, dnnl_primitive_destroy>;

dnnl_engine_t cpu_engine() {
  static const dnnl_engine_t engine = [] {
    dnnl_engine_t made = nullptr;
    check(dnnl_engine_create(&made, dnnl_cpu, 0), "engine_create");
    return made;
  }();
  return engine;
}

Stream make_stream() {
  dnnl_stream_t made = nullptr;
  check(dnnl_stream_create(&made, cpu_engine(), dnnl_stream_default_flags), "stream_create");
  return Stream(made);
}

dnnl_data_type_t data_type(DType dtype) {
  FB_CHECK(dtype == DType::bf16 || dtype == DType::f32, "oneDNN for {}", dtype_name(dtype));
  return dtype == DType::bf16 ? dnnl_bf16 : dnnl_f32;
}

/// [batch, rows, columns] of a matrix whose rows (columns, if transposed) are `stride` apart.
dnnl_memory_desc_t matrix(DType dtype, int64_t batch, int64_t batch_stride, int64_t rows,
                          int64_t columns, int64_t stride, bool transposed) {
  const dnnl_dims_t dims = {batch, rows, columns};
  const dnnl_dims_t strides = {batch_stride, transposed ? 1 : stride, transposed ? stride : 1};
  dnnl_memory_desc_t desc;
  check(dnnl_memory_desc_init_by_strides(&desc, 3, dims, data_type(dtype), strides),
        "memory_desc_init_by_strides");
  return desc;
}

/// An argument of one call: a description and where the data lie.
Memory memory(const dnnl_memory_desc_t& desc, const char* data) {
  dnnl_memory_t made = nullptr;
  check(dnnl_memory_create(&made, &desc, cpu_engine(), const_cast<char*>(data)), "memory_create");
  return Memory(made);
}

struct Extents {
  int64_t batch, rows, columns;
};

/// Tiles of one size: their matmul, and the copy of b into the layout that oneDNN prefers for it. Immutable: a
/// primitive whose scratchpad is the user's may run on any number of threads at once.
class Tile {
 public:
  /// `like`: a tile with the same columns, whose layout of b this one shall read; null to choose.
  Tile(const Contraction& c, const Extents& extents, bool pack, const Tile* like) {
    const auto [batch, rows, columns] = extents;
    a_ = matrix(c.in, batch, c.m * c.k, rows, c.k, c.a_stride(), c.transpose_a);
    b_ = matrix(c.in, batch, c.k * c.n, c.k, columns, c.b_stride(), c.transpose_b);
    y_ = matrix(c.out, batch, c.m * c.n, rows, columns, c.n, false);
    const dnnl_dims_t dims = {batch, c.k, columns};
    dnnl_memory_desc_t any;
    check(dnnl_memory_desc_init_by_tag(&any, 3, dims, data_type(c.in), dnnl_format_tag_any),
          "memory_desc_init_by_tag");
    dnnl_matmul_desc_t desc;
    check(dnnl_matmul_desc_init(&desc, &a_,
                                like   ? &like->b_layout_
                                : pack ? &any
                                       : &b_,
                                nullptr, &y_),
          "matmul_desc_init");

    dnnl_primitive_attr_t attributes = nullptr;
    check(dnnl_primitive_attr_create(&attributes), "primitive_attr_create");
    check(dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
          "set_scratchpad_mode");
    dnnl_primitive_desc_t chosen = nullptr;
    check(dnnl_primitive_desc_create(&chosen, &desc, attributes, cpu_engine(), nullptr),
          "primitive_desc_create for a matmul");
    b_layout_ = *dnnl_primitive_desc_query_md(chosen, dnnl_query_weights_md, 0);
    scratch_ = *dnnl_primitive_desc_query_md(chosen, dnnl_query_scratchpad_md, 0);
    multiply_ = create(chosen);
    if (pack) {
      dnnl_primitive_desc_t reorder = nullptr;
      check(dnnl_reorder_primitive_desc_create(&reorder, &b_, cpu_engine(), &b_layout_,
                                               cpu_engine(), attributes),
            "reorder_primitive_desc_create");
      pack_scratch_ = *dnnl_primitive_desc_query_md(reorder, dnnl_query_scratchpad_md, 0);
      scratch_bytes_ = static_cast<int64_t>(dnnl_memory_desc_get_size(&pack_scratch_));
      pack_ = create(reorder);
      packed_bytes_ = static_cast<int64_t>(dnnl_memory_desc_get_size(&b_layout_));
    }
    check(dnnl_primitive_attr_destroy(attributes), "primitive_attr_destroy");
    scratch_bytes_ =
        std::max(scratch_bytes_, static_cast<int64_t>(dnnl_memory_desc_get_size(&scratch_)));
  }

  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }

  /// Copies b to `packed`, in the layout that multiply() reads.
  void pack(dnnl_stream_t stream, const char* b, char* packed, char* scratch) const {
    const Memory from = memory(b_, b), to = memory(b_layout_, packed),
                 own = memory(pack_scratch_, scratch);
    const dnnl_exec_arg_t arguments[] = {
        {DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}, {DNNL_ARG_SCRATCHPAD, own.get()}};
    check(dnnl_primitive_execute(pack_.get(), stream, 3, arguments), "a reorder");
  }
  void multiply(dnnl_stream_t stream, const char* a, const char* b, char* y, char* scratch) const {
    const Memory left = memory(a_, a), right = memory(b_layout_, b), result = memory(y_, y),
                 own = memory(scratch_, scratch);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, left.get()},
                                         {DNNL_ARG_WEIGHTS, right.get()},
                                         {DNNL_ARG_DST, result.get()},
                                         {DNNL_ARG_SCRATCHPAD, own.get()}};
    check(dnnl_primitive_execute(multiply_.get(), stream, 4, arguments), "a matmul");
  }

 private:
  static Primitive create(dnnl_primitive_desc_t desc) {
    dnnl_primitive_t made = nullptr;
    check(dnnl_primitive_create(&made, desc), "primitive_create");
    check(dnnl_primitive_desc_destroy(desc), "primitive_desc_destroy");
    return Primitive(made);
  }

  dnnl_memory_desc_t a_{}, b_{}, y_{}, b_layout_{};
  dnnl_memory_desc_t scratch_{}, pack_scratch_{};
  Primitive multiply_;
  Primitive pack_;
  int64_t packed_bytes_ = 0;
  int64_t scratch_bytes_ = 0;
};

/// Items are tiles of rows by columns of one matmul, rows fastest, or a few small matmuls each.
///
/// Immutable, as every kernel: thread groups number their workers from 0 each, and run it at the same time. Streams
/// and memory objects, which oneDNN changes while it works, belong to one call of run(); packed operands and
/// scratchpads lie in the scratch of the plan, which each group has of its own.
class OneDnnMatmul final : public CpuKernel {
 public:
  explicit OneDnnMatmul(const Contraction& c)
      : c_(c),
        small_(c.flops() / static_cast<double>(c.batch) < kSmallFlops && c.batch > 1),
        batch_{c.batch, small_ ? std::max<int64_t>(1, divide_up(c.batch, 16)) : 1},
        rows_{c.m, small_ ? c.m : std::min(c.m, kTileRows)},
        columns_{c.n, small_ ? c.n : std::min(c.n, kTileColumns)},
        pack_(!small_ && rows_.parts() > 1) {
    const SingleThread single;
    for (size_t i = 0; i < 8; ++i) tiles_.push_back(make_tile(i));
    for (const auto& tile : tiles_) {
      packed_bytes_ = std::max(packed_bytes_, round_up(tile->packed_bytes(), 64));
      tile_scratch_bytes_ = std::max(tile_scratch_bytes_, round_up(tile->scratch_bytes(), 64));
    }
  }

  int64_t items() const override { return batch_.parts() * columns_.parts() * rows_.parts(); }
  double nanoseconds() const override {
    const double rate = c_.in == DType::f32 ? 100 : 400;  // operations per nanosecond of one core
    return c_.flops() / rate + 1000 * static_cast<double>(items());
  }
  int64_t scratch_bytes(int workers) const override {
    return std::max<int64_t>(64, packed_bytes_ + tile_scratch_bytes_) * workers;
  }
  std::string description() const override { return "matmul onednn " + c_.text(); }

  void run(void* const* buffers, int64_t begin, int64_t end, int worker) const override {
    const SingleThread single;
    const Stream stream = make_stream();
    char* scratch = static_cast<char*>(buffers[3]) + scratch_bytes(1) * worker;
    int64_t packed_tile = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row_tile = item % rows_.parts();
      const int64_t column_tile = item / rows_.parts() % columns_.parts();
      const int64_t batch_tile = item / rows_.parts() / columns_.parts();
      const int64_t batch = batch_.begin(batch_tile);
      const int64_t row = rows_.begin(row_tile);
      const int64_t column = columns_.begin(column_tile);
      const Tile& tile = tile_of(batch_tile, row_tile, column_tile);
      const char* a =
          at(buffers[0], c_.in, batch * c_.m * c_.k + row * (c_.transpose_a ? 1 : c_.k));
      const char* b =
          at(buffers[1], c_.in, batch * c_.k * c_.n + column * (c_.transpose_b ? c_.k : 1));
      auto* y = const_cast<char*>(at(buffers[2], c_.out, (batch * c_.m + row) * c_.n + column));
      if (pack_ && item / rows_.parts() != packed_tile)
        tile.pack(stream.get(), b, scratch, scratch + packed_bytes_);
      packed_tile = item / rows_.parts();
      tile.multiply(stream.get(), a, pack_ ? scratch : b, y, scratch + packed_bytes_);
    }
  }

 private:
  // Tile `index`: bit 2 the last of the batch, bit 1 the last rows, bit 0 the last columns.
  std::shared_ptr<const Tile> make_tile(size_t index) const {
    for (const auto& [bit, blocks] : {std::pair{4U, &batch_}, {2U, &rows_}, {1U, &columns_}})
      if ((index & bit) && last(*blocks) == blocks->size) return tiles_[index - bit];
    const Tile* like = pack_ && (index & 2U) ? tiles_[index - 2].get() : nullptr;
    return std::make_shared<Tile>(
        c_,
        Extents{index & 4U ? last(batch_) : batch_.size, index & 2U ? last(rows_) : rows_.size,
                index & 1U ? last(columns_) : columns_.size},
        pack_, like);
  }
  static int64_t last(const Blocks& blocks) {
    return blocks.end(blocks.parts() - 1) - blocks.begin(blocks.parts() - 1);
  }
  static const char* at(const void* data, DType dtype, int64_t element) {
    return static_cast<const char*>(data) + element * dtype_bytes(dtype);
  }
  const Tile& tile_of(int64_t batch, int64_t row, int64_t column) const {
    const size_t index = (batch + 1 == batch_.parts() ? 4U : 0U) +
                         (row + 1 == rows_.parts() ? 2U : 0U) +
                         (column + 1 == columns_.parts() ? 1U : 0U);
    return *tiles_[index];
  }

  Contraction c_;
  bool small_;
  Blocks batch_;
  Blocks rows_;
  Blocks columns_;
  bool pack_;
  int64_t packed_bytes_ = 0;
  int64_t tile_scratch_bytes_ = 0;
  std::vector<std::shared_ptr<const Tile>> tiles_;  // see make_tile; equal sizes share one
};

}  // namespace

std::unique_ptr<Kernel> make_onednn_matmul(const Contraction& c) {
  return std::make_unique<OneDnnMatmul>(c);
}

std::unique_ptr<Kernel> make_onednn_matmul(KernelRequest& request) {
  const Contraction c = Contraction::of(request);
  if (c.in != DType::bf16)
    return request.decline(fmt::format("the tiled kernels are as fast in {}", dtype_name(c.in)));
  if (!this_processor().amx_bf16) return request.decline("this processor has no tiles for bf16");
  if (c.one_chain) return request.decline("oneDNN chooses how to sum by the number of rows");
  if (c.flops() == 0) return request.decline("nothing to multiply");
  return make_onednn_matmul(c);
}

}  // namespace fullbore::cpu
