#include "fullbore/device/cpu/gemm/contraction.h"

#include <fmt/format.h>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore::cpu {

Contraction Contraction::of(const KernelRequest& request) {
  const Shape& a = request.input(0).shape;
  const Shape& y = request.output().shape;
  Contraction c;
  c.transpose_a = request.attribute<bool>("transpose_a");
  const bool prepacked = request.node().op == op::prepacked_matmul;
  c.transpose_b = !prepacked && request.attribute<bool>("transpose_b");
  c.batch = y.slice(0, y.rank() - 2).elements();
  c.m = y[y.rank() - 2];
  c.n = y[y.rank() - 1];
  c.k = a[a.rank() - (c.transpose_a ? 2 : 1)];
  c.in = request.input(0).dtype;
  c.out = request.output().dtype;
  c.add = request.node().inputs.size() > 2;
  c.one_chain = request.row_invariant();
  c.workers = request.workers();
  if (prepacked) {
    const Shape& b = request.input(1).shape;
    c.block_columns = b[b.rank() - 2];
    c.vnni = b[b.rank() - 1] == 2;
  }
  return c;
}

std::string Contraction::text() const {
  const auto matrix = [](int64_t rows, int64_t columns, bool transposed) {
    return transposed ? fmt::format("[{},{}]T", columns, rows)
                      : fmt::format("[{},{}]", rows, columns);
  };
  return fmt::format(
      "{}{}{} {} {}{}{}{}", add ? "add " : "", batch == 1 ? "" : fmt::format("{} x ", batch),
      dtype_name(in), matrix(m, k, transpose_a), matrix(k, n, transpose_b),
      block_columns > 0 ? " prepacked" : "",
      in == out ? "" : fmt::format(" -> {}", dtype_name(out)), one_chain ? " one chain" : "");
}

}  // namespace fullbore::cpu
