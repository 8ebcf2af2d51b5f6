#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "../support/comparison.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/gemm/amx_pairs.h"
#include "fullbore/device/cpu/gemm/amx_tiled_matmul.h"
#include "fullbore/device/cpu/gemm/amx_tiles.h"
#include "fullbore/device/cpu/gemm/gemm_tiling.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/gemm/tiled_matmul.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "kernel_runner.h"

/// Every way to multiply matrices, on every vector unit that this processor has, whichever of them
/// the device would choose.
namespace fullbore {
namespace {

using cpu::Contraction;
using testing_support::compare;
using testing_support::expect;
using testing_support::run_kernel_in_all_ways;
using testing_support::RunResult;

struct Case {
  int64_t batch, m, n, k;
};

// What tiles, blocks, vectors and passes over depth are likely to get wrong.
const Case kCases[] = {
    {1, 1, 1, 1},     {1, 1, 1, 0},     {2, 3, 4, 0},      {1, 0, 3, 4},       {1, 3, 0, 4},
    {0, 3, 3, 3},     {1, 1, 16, 16},   {1, 2, 17, 15},    {3, 5, 33, 7},      {1, 12, 64, 64},
    {1, 13, 65, 31},  {1, 7, 129, 33},  {2, 64, 64, 32},   {1, 97, 70, 50},    {1, 150, 131, 20},
    {1, 130, 40, 97}, {1, 1, 200, 65},  {1, 200, 1, 65},   {1, 8, 100, 100},   {1, 6, 5, 1600},
    {1, 50, 66, 770}, {1, 5, 70, 4700}, {1, 200, 3, 4200}, {1, 400, 330, 530},
};

class MatmulCase {
 public:
  MatmulCase(const Case& c, bool transpose_a, bool transpose_b, DType in, DType out,
             bool add = false) {
    const auto shape = [&](int64_t rows, int64_t columns, bool transposed) {
      return transposed ? Shape{c.batch, columns, rows} : Shape{c.batch, rows, columns};
    };
    GraphBuilder builder;
    const Tensor a = builder.input("a", Role::batch, {in, shape(c.m, c.k, transpose_a)});
    const Tensor b = builder.input("b", Role::batch, {in, shape(c.k, c.n, transpose_b)});
    if (add) {
      const Tensor sum = builder.input("c", Role::batch, {out, {c.batch, c.m, c.n}});
      builder.output(
          "y", builder.emit_one("matmul_add", {a, b, sum},
                                {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}}, {}));
    } else {
      builder.output("y", matmul(a, b, {transpose_a, transpose_b, out}));
    }
    graph_ = builder.take();
    PhiloxStream draws(7);
    for (const Graph::Input& input : graph_.inputs()) {
      Literal literal(graph_.type(input.value));
      for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, draws.normal());
      literal.round();
      inputs_.push_back(std::move(literal));
    }
    contraction_ = Contraction::of(KernelRequest(graph_, graph_.nodes()[0], 1));
    expected_ = expect(graph_, graph_.nodes()[0], operands());
  }

  const Contraction& contraction() const { return contraction_; }
  std::vector<char> bits(const Kernel& kernel) const {
    const RunResult result =
        run_kernel_in_all_ways(kernel, operands(), {expected_[0].value.type()});
    EXPECT_EQ(result.problem, "");
    return result.problem.empty()
               ? std::vector<char>(result.outputs[0].begin(), result.outputs[0].end())
               : std::vector<char>();
  }
  std::string check(const Kernel& kernel) const {
    const TensorType& type = expected_[0].value.type();
    const RunResult result = run_kernel_in_all_ways(kernel, operands(), {type});
    if (!result.problem.empty()) return result.problem;
    return compare(expected_[0], Literal::from_bytes(type, result.outputs[0].data()), 0);
  }

 private:
  std::vector<const Literal*> operands() const {
    std::vector<const Literal*> result;
    for (const Literal& input : inputs_) result.push_back(&input);
    return result;
  }

  Graph graph_;
  std::vector<Literal> inputs_;
  Contraction contraction_;
  std::vector<testing_support::Expected> expected_;
};

struct Dtypes {
  DType in;
  DType out;
};

class Matmuls : public ::testing::TestWithParam<Dtypes> {
 protected:
  // visit(call) for each case and transposition; of large cases only the two mixed ones.
  template <class Visit>
  void for_each_call(const Visit& visit, bool add = false) const {
    for (const Case& c : kCases)
      for (int transposed = 0; transposed < 4; ++transposed) {
        const bool a = (transposed & 1) != 0, b = (transposed & 2) != 0;
        if (a == b && c.m * c.n * c.k > 100000) continue;
        visit(MatmulCase(c, a, b, GetParam().in, GetParam().out, add));
      }
  }
};

std::vector<VectorUnit> units_of_this_processor() {
  std::vector<VectorUnit> units;
  for (const VectorUnit unit : {VectorUnit::baseline, VectorUnit::avx2, VectorUnit::avx512})
    if (unit <= this_processor().vector_unit) units.push_back(unit);
  return units;
}

TEST_P(Matmuls, OfTilesAndDotsAgreeWithTheReference) {
  for_each_call([](const MatmulCase& call) {
    const Contraction& c = call.contraction();
    for (const VectorUnit unit : units_of_this_processor()) {
      const auto tiled = cpu::make_tiled_matmul(c, unit);
      EXPECT_EQ(call.check(*tiled), "") << tiled->description();
      const bool contiguous = (!c.transpose_a || c.m == 1) && (c.transpose_b || c.n == 1);
      if (!contiguous || (c.m > 16 && c.n > 1)) continue;
      const auto dots = cpu::make_dot_matmul(c, unit);
      EXPECT_EQ(call.check(*dots), "") << dots->description();
    }
  });
}

TEST_P(Matmuls, OfVnniPairsAgreeWithTheReference) {
  if (GetParam().in != DType::bf16) return;
  if (!this_processor().avx512_bf16) GTEST_SKIP() << "this processor has no AVX512_BF16";
  for_each_call([](const MatmulCase& call) {
    const auto vnni = cpu::make_vnni_matmul(call.contraction());
    EXPECT_EQ(call.check(*vnni), "") << vnni->description();
  });
}

// One worker takes larger tiles, of the same passes over depth.
TEST_P(Matmuls, HaveTheSameBitsInTilesForOneWorkerAndForMany) {
  const bool vnni = GetParam().in == DType::bf16 && this_processor().avx512_bf16;
  bool differ = false;
  for_each_call([&](const MatmulCase& call) {
    Contraction c = call.contraction();
    const auto made = [&](int workers) {
      c.workers = workers;
      return vnni ? cpu::make_vnni_matmul(c)
                  : cpu::make_tiled_matmul(c, this_processor().vector_unit);
    };
    const auto one = made(1), many = made(2);
    EXPECT_EQ(call.bits(*one), call.bits(*many)) << one->description();
    const int64_t items = dynamic_cast<const CpuKernel&>(*one).items();
    const int64_t of_many = dynamic_cast<const CpuKernel&>(*many).items();
    EXPECT_LE(items, of_many);
    differ |= items < of_many;
  });
  EXPECT_TRUE(differ);
}

// matmul_add: the sum lies in the result's place or apart from it.
TEST_P(Matmuls, ThatAreAddedAgreeWithTheReference) {
  if (is_low_precision(GetParam().out)) return;  // sums are not
  for_each_call(
      [](const MatmulCase& call) {
        const Contraction& c = call.contraction();
        for (const VectorUnit unit : units_of_this_processor()) {
          const auto tiled = cpu::make_tiled_matmul(c, unit);
          EXPECT_EQ(call.check(*tiled), "") << tiled->description();
        }
        if (c.in != DType::bf16 || !this_processor().avx512_bf16) return;
        const auto vnni = cpu::make_vnni_matmul(c);
        EXPECT_EQ(call.check(*vnni), "") << vnni->description();
      },
      true);
}

class MatmulsByTiles : public Matmuls {
 protected:
  void SetUp() override {
    if (!this_processor().amx_bf16) GTEST_SKIP() << "this processor has no tiles for bf16";
  }
  static std::unique_ptr<Kernel> make(const Contraction& c) {
    std::string why_not;
    auto kernel = cpu::make_amx_tiled_matmul(c, &why_not);
    EXPECT_NE(kernel, nullptr) << why_not;
    return kernel;
  }
  template <class Visit>
  void for_each_product(const Visit& visit, bool add = false) const {
    for_each_call(
        [&](const MatmulCase& call) {
          if (call.contraction().flops() > 0) visit(call);
        },
        add);
    // Whole tiles, whose sums lie where they belong while the depth is taken in parts: of copies of both operands, and of
    // rows as they lie. Rows that are copied but for the last ones; several tiles of the result.
    for (const Case& c :
         {Case{1, 32, 64, 1100}, {1, 32, 32, 4224}, {2, 50, 40, 96}, {1, 530, 33, 64}})
      for (const bool transpose_a : {false, true})
        visit(MatmulCase(c, transpose_a, !transpose_a, GetParam().in, GetParam().out, add));
  }
};

TEST_P(MatmulsByTiles, AgreeWithTheReference) {
  for_each_product([](const MatmulCase& call) {
    const auto kernel = make(call.contraction());
    EXPECT_EQ(call.check(*kernel), "") << kernel->description();
  });
}

// The sum lies in the result's place or apart from it.
TEST_P(MatmulsByTiles, ThatAreAddedAgreeWithTheReference) {
  if (GetParam().out != DType::f32) return;  // sums are
  for_each_product(
      [](const MatmulCase& call) {
        const auto kernel = make(call.contraction());
        EXPECT_EQ(call.check(*kernel), "") << kernel->description();
      },
      true);
}

TEST_P(MatmulsByTiles, HaveTheSameBitsForOneWorkerAndForMany) {
  bool differ = false;
  for_each_product([&](const MatmulCase& call) {
    Contraction c = call.contraction();
    c.workers = 1;
    const auto one = make(c);
    c.workers = 16;
    const auto many = make(c);
    EXPECT_EQ(call.bits(*one), call.bits(*many)) << one->description();
    differ |= dynamic_cast<const CpuKernel&>(*one).items() <
              dynamic_cast<const CpuKernel&>(*many).items();
  });
  EXPECT_TRUE(differ);
}

/// Operands of a matmul of VNNI pairs, of small whole numbers, so that no sum is rounded.
struct Pairs {
  std::vector<cpu::VnniPair> a, b;
  std::vector<float> c;
  cpu::GemmTile<cpu::VnniPair> tile;

  /// `across`: the rows of a lie as columns.
  Pairs(int64_t rows, int64_t columns, int64_t depth, bool across, bool accumulate)
      : a(static_cast<size_t>((rows + 3) * (depth + 5))),
        b(static_cast<size_t>(depth * (columns + 7))),
        c(static_cast<size_t>(rows * (columns + 2))) {
    PhiloxStream draws(static_cast<uint64_t>(rows + 100 * columns + 10000 * depth));
    const auto draw = [&] {
      const auto number = static_cast<float>(std::floor(draws.uniform(-8, 9)));
      return static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
    };
    for (auto* operand : {&a, &b})
      for (cpu::VnniPair& each : *operand) each = {draw(), draw()};
    for (float& each : c) each = static_cast<float>(std::floor(draws.uniform(-8, 9)));
    tile = {.rows = rows,
            .columns = columns,
            .depth = depth,
            .a_row = across ? 1 : depth + 5,
            .a_depth = across ? rows + 3 : 1,
            .b_depth = columns + 7,
            .c_row = columns + 2,
            .accumulate = accumulate};
  }
  std::vector<float> multiplied(bool by_tiles) {
    const cpu::GemmUnit<cpu::VnniPair>& unit = *cpu::gemm_unit<cpu::VnniPair>(VectorUnit::avx512);
    std::vector<float> result = c;
    cpu::GemmTile<cpu::VnniPair> part = tile;
    part.a = a.data();
    part.b = b.data();
    part.c = result.data();
    if (by_tiles) {
      const cpu::AmxTiles tiles;
      multiply_pairs_by_tiles(unit, *cpu::gemm_unit<float>(VectorUnit::avx512), part);
      return result;
    }
    for (int64_t column = 0; column < tile.columns; ++column, ++part.b, ++part.c) {
      part.columns = 1;
      unit.multiply(part);
    }
    return result;
  }
};

// Whole tiles, none of them, and rows, columns and depth behind them; turned rows in several parts.
TEST(PairsByTiles, AreMultipliedAsByDotProducts) {
  if (!this_processor().amx_bf16) GTEST_SKIP() << "this processor has no tiles for bf16";
  for (const auto& [rows, columns, depth] : {std::tuple<int64_t, int64_t, int64_t>{16, 16, 16},
                                             {64, 64, 32},
                                             {15, 40, 40},
                                             {70, 15, 40},
                                             {70, 40, 15},
                                             {75, 41, 51},
                                             {130, 33, 300},
                                             {16, 48, 17}})
    for (const bool across : {false, true})
      for (const bool accumulate : {false, true}) {
        Pairs pairs(rows, columns, depth, across, accumulate);
        EXPECT_EQ(pairs.multiplied(true), pairs.multiplied(false))
            << rows << " " << columns << " " << depth << " " << across << accumulate;
      }
}

// What was compiled before stays as it is.
TEST(MatmulByTiles, StaysWhenTheProcessorIsLimited) {
  if (!this_processor().amx_bf16) GTEST_SKIP() << "this processor has no tiles for bf16";
  const MatmulCase call({1, 50, 40, 70}, true, true, DType::bf16, DType::bf16);
  std::string why_not;
  const auto kernel = cpu::make_amx_tiled_matmul(call.contraction(), &why_not);
  limit_processor("avx2", "test");
  const std::string problem = call.check(*kernel);
  limit_processor("auto", "test");
  EXPECT_EQ(problem, "");
}

TEST(MatmulByTiles, DeclinesOtherOperands) {
  if (!this_processor().amx_bf16) GTEST_SKIP() << "this processor has no tiles for bf16";
  const auto why = [](Contraction c) {
    std::string why_not;
    EXPECT_EQ(cpu::make_amx_tiled_matmul(c, &why_not), nullptr);
    return why_not;
  };
  const Contraction fits{.m = 4, .n = 5, .k = 6, .in = DType::bf16, .out = DType::f32};
  Contraction c = fits;
  c.in = DType::f16;
  EXPECT_EQ(why(c), "tiles are for bf16, not for f16");
  c = fits, c.out = DType::f64;
  EXPECT_EQ(why(c), "sums are not rounded to f64");
  c = fits, c.k = 0;
  EXPECT_EQ(why(c), "nothing to multiply");
  c = fits, c.one_chain = true;
  EXPECT_EQ(why(c), "needs two matrices as they lie, summed in any order");
  c = fits, c.out = DType::bf16, c.add = true;
  EXPECT_EQ(why(c), "what is added is f32");
}

std::string pair_name(const ::testing::TestParamInfo<Dtypes>& pair) {
  return fmt::format("{}_to_{}", dtype_name(pair.param.in), dtype_name(pair.param.out));
}

INSTANTIATE_TEST_SUITE_P(
    All, Matmuls,
    ::testing::Values(Dtypes{DType::f32, DType::f32}, Dtypes{DType::f64, DType::f64},
                      Dtypes{DType::bf16, DType::bf16}, Dtypes{DType::bf16, DType::f32},
                      Dtypes{DType::f16, DType::f16}, Dtypes{DType::f16, DType::f32}),
    pair_name);
INSTANTIATE_TEST_SUITE_P(All, MatmulsByTiles,
                         ::testing::Values(Dtypes{DType::bf16, DType::bf16},
                                           Dtypes{DType::bf16, DType::f32}),
                         pair_name);

/// A tile whose operands lie in ways that loops may know of; what is computed does not depend on them.
template <class T>
struct Layouts {
  enum class Rows { apart, in_depth, beside_one_another };
  static constexpr int64_t kBetweenRows = 3;  ///< of c
  int64_t rows, columns, depth;
  std::vector<T> a, b, c;

  Layouts(int64_t rows_, int64_t columns_, int64_t depth_)
      : rows(rows_), columns(columns_), depth(depth_) {
    PhiloxStream draws(static_cast<uint64_t>(rows + 100 * columns + 10000 * depth));
    for (auto& [operand, count] : {std::pair{&a, rows * depth},
                                   {&b, depth * columns},
                                   {&c, rows * (columns + kBetweenRows)}})
      for (int64_t i = 0; i < count; ++i) operand->push_back(static_cast<T>(draws.uniform(-1, 1)));
  }

  std::vector<T> multiplied(const cpu::GemmUnit<T>& unit, Rows lie, int64_t b_depth,
                            cpu::GemmTile<T> tile) const {
    tile.rows = rows;
    tile.columns = columns;
    tile.depth = depth;
    tile.a_row = lie == Rows::apart ? 2 * depth + 3 : lie == Rows::in_depth ? depth + 3 : 1;
    tile.a_depth = lie == Rows::apart ? 2 : lie == Rows::in_depth ? 1 : rows + 2;
    std::vector<T> a_there(static_cast<size_t>(rows * tile.a_row + depth * tile.a_depth));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t d = 0; d < depth; ++d)
        a_there[static_cast<size_t>(r * tile.a_row + d * tile.a_depth)] =
            a[static_cast<size_t>(r * depth + d)];
    std::vector<T> b_there(static_cast<size_t>(std::max<int64_t>(1, depth) * b_depth));
    for (int64_t d = 0; d < depth; ++d)
      for (int64_t n = 0; n < columns; ++n)
        b_there[static_cast<size_t>(d * b_depth + n)] = b[static_cast<size_t>(d * columns + n)];
    std::vector<T> result = c;
    cpu::Prefetcher next;
    if (tile.prefetcher != nullptr) {
      next.add(c.data(), rows, columns * static_cast<int64_t>(sizeof(T)),
               columns * static_cast<int64_t>(sizeof(T)));
      tile.prefetcher = &next;
    }
    tile.a = a_there.data();
    tile.b = b_there.data();
    tile.b_depth = b_depth;
    tile.c = result.data();
    tile.c_row = columns + kBetweenRows;
    unit.multiply(tile);
    return result;
  }
};

template <class T>
bool same_bits(const std::vector<T>& left, const std::vector<T>& right) {
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(T)) == 0;
}

template <class T>
void expect_equal_bits_of_layouts(VectorUnit vector_unit) {
  using Rows = typename Layouts<T>::Rows;
  const cpu::GemmUnit<T>* unit = cpu::gemm_unit<T>(vector_unit);
  if (unit == nullptr) return;
  cpu::Prefetcher asks;
  for (const int64_t columns : {int64_t{unit->block_columns}, int64_t{unit->block_columns - 1},
                                int64_t{2 * unit->lanes}, int64_t{unit->lanes}})
    for (int64_t rows = 1; rows <= 13; ++rows)
      for (const int64_t depth : {0, 1, 3, 4, 6, 8, 21}) {
        const Layouts<T> matmul(rows, columns, depth);
        for (const cpu::GemmTile<T>& how :
             {cpu::GemmTile<T>{}, cpu::GemmTile<T>{.accumulate = true},
              cpu::GemmTile<T>{.goes_on = true, .prefetcher = &asks}}) {
          const std::vector<T> apart = matmul.multiplied(*unit, Rows::apart, columns + 5, how);
          for (const Rows lie : {Rows::in_depth, Rows::beside_one_another})
            for (const int64_t b_depth : {columns, columns + 5})
              EXPECT_TRUE(same_bits(matmul.multiplied(*unit, lie, b_depth, how), apart))
                  << vector_unit_name(vector_unit) << ": " << rows << " x " << columns
                  << " of depth " << depth << (how.accumulate ? ", added" : "")
                  << (how.goes_on ? ", going on" : "") << ", rows of a "
                  << (lie == Rows::in_depth ? "apart" : "beside one another") << ", of b "
                  << b_depth << " apart";
        }
      }
}

TEST(GemmLoops, GiveTheSameBitsHoweverOperandsLie) {
  for (const VectorUnit unit : {VectorUnit::baseline, VectorUnit::avx2, VectorUnit::avx512}) {
    expect_equal_bits_of_layouts<float>(unit);
    expect_equal_bits_of_layouts<double>(unit);
  }
}

// Rows and columns of a few, one and two vectors, with what is left over. Neighbours of both matrices are NaN: none may be copied,
// none written over.
template <class T>
void expect_transposed_copies(VectorUnit vector_unit, DType dtype) {
  const cpu::GemmUnit<T>* unit = cpu::gemm_unit<T>(vector_unit);
  if (unit == nullptr) return;
  const auto lanes = static_cast<int64_t>(unit->lanes);
  for (int64_t rows = 1; rows <= 2 * lanes + 1; ++rows)
    for (const int64_t columns : {int64_t{1}, lanes - 1, lanes, lanes + 3, 2 * lanes}) {
      if (columns == 0) continue;
      const int64_t from_stride = columns + 2, to_stride = rows + 3;
      Literal from({dtype, {rows, from_stride}});
      for (int64_t i = 0; i < from.elements(); ++i)
        from.reals()[static_cast<size_t>(i)] =
            i % from_stride < columns ? static_cast<double>(i % 251) : std::nan("");
      std::vector<T> to(static_cast<size_t>(columns * to_stride),
                        std::numeric_limits<T>::quiet_NaN());
      const std::vector<char> bytes = from.bytes();
      unit->copy_transposed({bytes.data(), dtype, from_stride, rows, columns}, to.data(),
                            to_stride);
      int64_t wrong = 0;
      for (int64_t column = 0; column < columns; ++column)
        for (int64_t row = 0; row < to_stride; ++row) {
          const double found = to[static_cast<size_t>(column * to_stride + row)];
          const bool right =
              row < rows ? found == from.at(row * from_stride + column) : std::isnan(found);
          wrong += right ? 0 : 1;
        }
      EXPECT_EQ(wrong, 0) << vector_unit_name(vector_unit) << " " << dtype_name(dtype) << ": "
                          << rows << " x " << columns;
    }
}

TEST(GemmLoops, TransposeEachElementAndNothingElse) {
  for (const VectorUnit unit : units_of_this_processor()) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      expect_transposed_copies<float>(unit, dtype);
    expect_transposed_copies<double>(unit, DType::f64);
  }
}

// Workers take equal numbers of tiles, so none may be much larger than the others, nor may there be one.
TEST(GemmTiling, IsLevelAndSharesSmallMatmuls) {
  struct Matmul {
    int64_t m, n, k;
    bool copied_columns;
  };
  for (const Matmul& c : {Matmul{4096, 1152, 384, false},
                          {4096, 384, 384, false},
                          {4096, 1536, 384, false},
                          {1152, 384, 4096, true},
                          {384, 384, 4096, true},
                          {256, 64, 256, true},
                          {256, 192, 64, false},
                          {768, 3072, 2048, true}}) {
    const cpu::Contraction contraction{
        .m = c.m, .n = c.n, .k = c.k, .transpose_a = c.copied_columns};
    const cpu::GemmTiling tiling = cpu::gemm_tiling({.contraction = contraction,
                                                     .depth = c.k,
                                                     .block_columns = 64,
                                                     .copied_columns = c.copied_columns,
                                                     .direct = true});
    EXPECT_GE(tiling.tiles(1), 4) << contraction.text();
    for (const cpu::Blocks& blocks : {tiling.rows, tiling.columns}) {
      const double whole = static_cast<double>(blocks.parts() * blocks.size);
      EXPECT_LE(whole, 1.15 * static_cast<double>(blocks.count)) << contraction.text();
    }
    EXPECT_EQ(tiling.columns.size % 64, 0);
    EXPECT_EQ(tiling.packed_depth % tiling.depth, 0);
  }
}

// Rows of a are read again for each tile of columns: narrow blocks make no narrow tiles.
TEST(GemmTiling, IsAsWideOfNarrowBlocks) {
  const auto columns = [](const cpu::Contraction& c, int64_t block, bool copied_rows) {
    return cpu::gemm_tiling({.contraction = c,
                             .depth = c.k,
                             .block_columns = block,
                             .copied_columns = c.transpose_a,
                             .copied_rows = copied_rows,
                             .direct = true})
        .columns.size;
  };
  const cpu::Contraction gemm{.m = 768, .n = 512, .k = 128, .workers = 1};
  const cpu::Contraction gradient{.m = 128, .n = 512, .k = 768, .transpose_a = true, .workers = 1};
  for (const int64_t block : {8, 16, 64}) {
    EXPECT_EQ(columns(gemm, block, false), 128) << block;
    EXPECT_EQ(columns(gemm, block, true), 512) << block;
    EXPECT_EQ(columns(gradient, block, false), 256) << block;
  }
}

// All upper halves of f32, infinities and NaN among them, with what is above, at and below the half.
TEST(GemmUnits, RoundToBf16AsScalarsDo) {
  std::vector<float> numbers;
  for (uint32_t upper = 0; upper <= 0xffff; ++upper)
    for (const uint32_t lower : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      numbers.push_back(std::bit_cast<float>(upper << 16 | lower));
  numbers.resize(numbers.size() - 3);  // no whole vectors
  const auto count = static_cast<int64_t>(numbers.size());
  for (const VectorUnit unit : units_of_this_processor()) {
    std::vector<uint16_t> rounded(numbers.size());
    cpu::gemm_unit<float>(unit)->round(numbers.data(), count, rounded.data(), count, DType::bf16, 1,
                                       count);
    int64_t wrong = 0;
    for (size_t i = 0; i < numbers.size(); ++i)
      if (rounded[i] != f32_to_bf16(numbers[i]) && wrong++ == 0)
        ADD_FAILURE() << vector_unit_name(unit) << ": " << std::bit_cast<uint32_t>(numbers[i])
                      << " to " << rounded[i] << ", not " << f32_to_bf16(numbers[i]);
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace fullbore
