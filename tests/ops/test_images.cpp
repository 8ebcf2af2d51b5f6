#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "differentiate.h"
#include "fullbore/ops/channel_norms.h"
#include "fullbore/ops/convolution.h"
#include "fullbore/ops/pooling.h"
#include "tests/support/paths.h"

/// Layers over spatial axes against PyTorch: results and gradients (tools/golden/images.py).
namespace fullbore {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Literal literal(const Json& json) {
  return reals(Shape(json.at("shape").get<std::vector<int64_t>>()),
               json.at("values").get<std::vector<double>>());
}

PerAxis numbers(const Json& options, const char* name, PerAxis otherwise) {
  if (!options.contains(name)) return otherwise;
  const Json& value = options.at(name);
  if (value.is_array()) return value.get<std::vector<int64_t>>();
  return value.get<int64_t>();
}

Tensor given(const Json& options, const char* name, GraphBuilder& builder) {
  const Literal value = literal(options.at(name));
  return constant(builder, value.type(), elements(value));
}

// What the case's layer makes of its operands.
Tensor layer(const Json& c, GraphBuilder& builder, const std::map<std::string, Tensor>& in) {
  const std::string name = c.at("layer");
  const Json& o = c.at("options");
  const Tensor x = in.at("x");
  if (name == "convolution")
    return convolution(x, in.at("weight"), in.at("bias"),
                       {.stride = numbers(o, "stride", 1),
                        .padding = numbers(o, "padding", 0),
                        .dilation = numbers(o, "dilation", 1),
                        .groups = o.value("groups", int64_t{1})});
  if (name == "transposed_convolution")
    return transposed_convolution(x, in.at("weight"), in.at("bias"),
                                  {.stride = numbers(o, "stride", 1),
                                   .padding = numbers(o, "padding", 0),
                                   .output_padding = numbers(o, "output_padding", 0),
                                   .dilation = numbers(o, "dilation", 1),
                                   .groups = o.value("groups", int64_t{1})});
  if (name == "max_pool")
    return max_pool(x, {.kernel = numbers(o, "kernel", 1),
                        .stride = numbers(o, "stride", {}),
                        .padding = numbers(o, "padding", 0),
                        .dilation = numbers(o, "dilation", 1)});
  if (name == "average_pool")
    return average_pool(x, {.kernel = numbers(o, "kernel", 1),
                            .stride = numbers(o, "stride", {}),
                            .padding = numbers(o, "padding", 0),
                            .count_padding = o.value("count_padding", true)});
  if (name == "adaptive_average_pool") return adaptive_average_pool(x, numbers(o, "output", 1));
  if (name == "adaptive_max_pool") return adaptive_max_pool(x, numbers(o, "output", 1));
  if (name == "upsample_nearest") return upsample_nearest(x, numbers(o, "output", 1));
  if (name == "upsample_linear")
    return upsample_linear(x, numbers(o, "output", 1), o.value("align_corners", false));
  const double epsilon = o.at("epsilon");
  if (name == "group_norm")
    return group_norm(x, o.at("groups"), in.at("weight"), in.at("bias"), epsilon);
  if (name == "instance_norm") return group_norm(x, x.dim(1), {}, {}, epsilon);
  if (name == "batch_norm") return batch_norm(x, in.at("weight"), in.at("bias"), epsilon).y;
  EXPECT_EQ(name, "batch_norm_evaluated");
  return batch_norm_by(x, in.at("weight"), in.at("bias"), given(o, "mean", builder),
                       given(o, "variance", builder), epsilon);
}

void expect_near(const Literal& actual, const Literal& expected, const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  for (int64_t i = 0; i < expected.elements(); ++i)
    ASSERT_NEAR(actual.at(i), expected.at(i), 1e-9 * (1 + std::abs(expected.at(i))))
        << what << " " << i;
}

Json golden() {
  std::ifstream file(testing::source_folder() + "/tests/ops/golden/images.json");
  return Json::parse(file);
}

TEST(Images, EqualPyTorchsResultsAndGradients) {
  const Json cases = golden();
  ASSERT_GE(cases.size(), 45U);
  for (const Json& c : cases) {
    const std::string name = c.at("name");
    std::vector<std::string> names;
    std::vector<Literal> operands;
    for (const auto& [key, value] : c.at("operands").items()) {
      names.push_back(key);
      operands.push_back(literal(value));
    }
    const BuildOne build = [&](GraphBuilder& builder, const std::vector<Tensor>& x) {
      std::map<std::string, Tensor> in;
      for (size_t i = 0; i < names.size(); ++i) in[names[i]] = x[i];
      return layer(c, builder, in);
    };
    expect_near(evaluate(operands, build), literal(c.at("y")), name + ": y");
    const std::vector<Literal> gradients = differentiate(operands, literal(c.at("dy")), build);
    for (size_t i = 0; i < names.size(); ++i)
      expect_near(gradients[i], literal(c.at("gradients").at(names[i])), name + ": d" + names[i]);
  }
}

TEST(Images, MaxPoolNamesWhereTheLargestAre) {
  const std::vector<Literal> made = evaluate_all(
      {reals({1, 1, 2, 4}, {1, 5, 2, 2, 5, 0, 3, 7})}, [](GraphBuilder&, const auto& x) {
        const auto [y, indices] = max_pool_with_indices(x[0], {.kernel = 2});
        return std::vector{y, indices};
      });
  EXPECT_THAT(elements(made[0]), ::testing::ElementsAre(5, 7));
  EXPECT_THAT(elements(made[1]), ::testing::ElementsAre(1, 7));
}

TEST(Images, NameWhatDoesNotFit) {
  const auto message = [](Shape x, const BuildOne& build) {
    return usage_error([&] { evaluate({Literal(TensorType{DType::f64, x})}, build); });
  };
  const auto weight = [](GraphBuilder& builder, Shape shape) {
    return full(builder, {DType::f64, std::move(shape)}, 1);
  };
  EXPECT_THAT(
      message({2, 3, 5, 5},
              [&](GraphBuilder& b, const auto& x) {
                return convolution(x[0], weight(b, {4, 3, 3, 3}), {}, {.stride = {1, 2, 3}});
              }),
      HasSubstr("convolution: stride has 3 numbers for 2 spatial axes (ops/test_images.cpp:"));
  EXPECT_THAT(message({2, 3, 5, 5},
                      [&](GraphBuilder& b, const auto& x) {
                        return convolution(x[0], weight(b, {4, 3, 3}));
                      }),
              HasSubstr("needs weight of rank 4 for x f64[2,3,5,5], got f64[4,3,3]"));
  EXPECT_THAT(message({2, 3, 5},
                      [&](GraphBuilder& b, const auto& x) {
                        return convolution(x[0], weight(b, {4, 3, 3}), weight(b, {3}));
                      }),
              HasSubstr("needs bias f64[4], got f64[3]"));
  EXPECT_THAT(
      message(
          {2, 3, 5},
          [&](GraphBuilder& b, const auto& x) {
            return transposed_convolution(x[0], weight(b, {3, 4, 3}), {}, {.output_padding = 1});
          }),
      HasSubstr("output_padding 1 is not less than stride 1 or dilation 1"));
  EXPECT_THAT(message({2, 3}, [](GraphBuilder&,
                                 const auto& x) { return average_pool(x[0], {.kernel = 2}); }),
              HasSubstr("average_pool: needs x [N,C,*S] with one to three spatial axes"));
  EXPECT_THAT(message({2, 3, 1}, [](GraphBuilder&,
                                    const auto& x) { return average_pool(x[0], {.kernel = 2}); }),
              HasSubstr("kernel 2 is larger than axis 2 of x f64[2,3,1] with its padding"));
  EXPECT_THAT(message({2, 6, 4}, [](GraphBuilder&, const auto& x) { return group_norm(x[0], 4); }),
              HasSubstr("6 channels of x f64[2,6,4] do not divide into 4 groups"));
}

}  // namespace
}  // namespace fullbore
