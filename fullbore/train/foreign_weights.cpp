#include "fullbore/train/foreign_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/files.h"
#include "fullbore/base/text.h"
#include "fullbore/train/stored_weights.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

bool is_mapping(const std::string& path) {
  return path.ends_with(".yaml") || path.ends_with(".yml");
}

/// A tensor in memory, of which the axes may lie in any order.
struct View {
  const std::byte* data;
  int64_t width;  ///< bytes of an element
  Shape shape;
  std::vector<int64_t> strides;  ///< in elements
};

// Row by row of the innermost axis.
std::vector<std::byte> in_order(const View& view) {
  const Shape& shape = view.shape;
  std::vector<std::byte> bytes(static_cast<size_t>(shape.elements() * view.width));
  if (bytes.empty()) return bytes;
  const int last = shape.rank() - 1;
  const int64_t columns = last < 0 ? 1 : shape[last];
  const int64_t stride = last < 0 ? 1 : view.strides[static_cast<size_t>(last)];
  std::vector<int64_t> index(static_cast<size_t>(std::max(last, 0)), 0);
  int64_t from = 0;
  for (std::byte* to = bytes.data(); to != bytes.data() + bytes.size();) {
    for (int64_t i = 0; i < columns; ++i, to += view.width)
      std::memcpy(to, view.data + (from + i * stride) * view.width,
                  static_cast<size_t>(view.width));
    for (size_t axis = index.size(); axis-- > 0;) {
      from += view.strides[axis];
      if (++index[axis] < shape[static_cast<int>(axis)]) break;
      from -= index[axis] * view.strides[axis];
      index[axis] = 0;
    }
  }
  return bytes;
}

/// `bytes`: of a tensor of `shape`, which becomes that of the result.
std::vector<std::byte> changed(std::span<const std::byte> bytes, int64_t width, Shape& shape,
                               const std::vector<LayoutStep>& steps) {
  std::vector<std::byte> owned;
  View view{bytes.data(), width, shape, shape.strides()};
  for (const LayoutStep& step : steps) {
    const Shape next = laid_out(step, view.shape);
    if (step.kind == LayoutStep::Kind::slice) {
      const auto axis =
          static_cast<size_t>(step.numbers[0] < 0 ? view.shape.rank() - 1 : step.numbers[0]);
      view.data += step.numbers[1] * view.strides[axis] * width;
    } else if (step.kind == LayoutStep::Kind::transpose) {
      std::vector<int64_t> strides;
      for (const int64_t axis : step.numbers)
        strides.push_back(view.strides[static_cast<size_t>(axis)]);
      view.strides = std::move(strides);
    } else {
      owned = in_order(view);
      view = {owned.data(), width, next, next.strides()};
    }
    view.shape = next;
  }
  shape = view.shape;
  return in_order(view);
}

Shape changed_shape(Shape shape, const std::vector<LayoutStep>& steps) {
  for (const LayoutStep& step : steps) shape = laid_out(step, shape);
  return shape;
}

/// "" where they can be joined along their first axes to one of `joined`.
std::string join_shapes(const std::vector<Shape>& shapes, Shape& joined) {
  joined = shapes.front();
  for (size_t i = 1; i < shapes.size(); ++i) {
    const Shape& each = shapes[i];
    if (each.rank() == 0 || each.rank() != joined.rank() || each.without(0) != joined.without(0))
      return fmt::format("{} and {} cannot be joined", joined.text(), each.text());
    joined[0] += each[0];
  }
  return "";
}

std::string steps_text(const std::vector<LayoutStep>& steps) {
  std::string text;
  for (const LayoutStep& step : steps) text += " | " + step.text();
  return text;
}

}  // namespace

bool ForeignWeights::is_path(const std::string& path) {
  std::error_code error;
  return (path.ends_with(".safetensors") || is_mapping(path)) && !fs::is_directory(path, error);
}

ForeignWeights ForeignWeights::open(const std::string& path) {
  if (!is_mapping(path)) return {WeightMapping{}, MappedTensors::open(path)};
  WeightMapping mapping = parse_weight_mapping(read_file(path).take_or_throw(), path);
  std::vector<std::string> files;
  for (const std::string& named : mapping.weights)
    files.push_back((fs::path(path).parent_path() / named).string());
  std::error_code error;
  const bool is_folder = files.size() == 1 && fs::is_directory(files.front(), error);
  MappedTensors tensors =
      is_folder ? MappedTensors::open(files.front()) : MappedTensors::open(path, files);
  return {std::move(mapping), std::move(tensors)};
}

const std::string& ForeignWeights::path() const {
  return mapping_.source.empty() ? tensors_.path() : mapping_.source;
}

std::string ForeignWeights::Recipe::text() const {
  std::vector<std::string> texts;
  for (const MappingRule::Origin& origin : origins)
    texts.push_back(origin.name + steps_text(origin.steps));
  return fmt::format("{}{}", fmt::join(texts, ", "), steps_text(steps));
}

ForeignWeights::Recipe ForeignWeights::recipe(const std::string& parameter) const {
  for (const MappingRule& rule : mapping_.rules) {
    const auto stars = match_stars(rule.parameter, parameter);
    if (!stars) continue;
    Recipe made{rule.origins, rule.steps};
    for (MappingRule::Origin& origin : made.origins) origin.name = with_stars(origin.name, *stars);
    return made;
  }
  return {{{parameter, {}}}, {}};
}

std::string ForeignWeights::obstacle(const Recipe& recipe, const TensorType& type) const {
  std::vector<Shape> shapes;
  std::string there;
  DType dtype = DType::f32;
  try {
    for (const MappingRule::Origin& origin : recipe.origins) {
      const MappedTensor* const tensor = tensors_.find(origin.name);
      if (tensor == nullptr) {
        std::vector<std::string> names;
        for (const MappedTensor& each : tensors_.tensors()) names.push_back(each.name);
        return fmt::format("the file has no '{}'.{}", origin.name,
                           did_you_mean(origin.name, names));
      }
      there += (there.empty() ? "" : ", ") + tensor->type.text();
      if (!is_floating(tensor->type.dtype) || (!shapes.empty() && tensor->type.dtype != dtype))
        return fmt::format("{} here, {} there", type.text(), there);
      dtype = tensor->type.dtype;
      shapes.push_back(changed_shape(tensor->type.shape, origin.steps));
    }
    Shape made;
    if (std::string reason = join_shapes(shapes, made); !reason.empty()) return reason;
    made = changed_shape(made, recipe.steps);
    if (made == type.shape) return "";
    const bool changes =
        recipe.origins.size() > 1 || !recipe.steps.empty() || !recipe.origins.front().steps.empty();
    return fmt::format("{} here, {} there{}", type.text(), there,
                       changes ? ", of which the mapping makes " + made.text() : "");
  } catch (const UsageError& error) {  // of laid_out()
    return fmt::format("{} here; {}", type.text(), error.what());
  }
}

WeightTransfer ForeignWeights::plan(const std::vector<StateEntry>& entries) const {
  WeightTransfer transfer;
  std::vector<std::string> parameters;
  std::set<std::string> used;
  for (const StateEntry& entry : entries) {
    if (!is_weight(entry)) continue;
    parameters.push_back(entry.name);
    const Recipe made = recipe(entry.name);
    for (const MappingRule::Origin& origin : made.origins) used.insert(origin.name);
    const std::string reason = obstacle(made, entry.type);
    if (reason.empty())
      transfer.taken.push_back({entry.name, made.text()});
    else
      transfer.left.push_back({entry.name, reason});
  }
  for (const MappingRule& rule : mapping_.rules)
    if (std::ranges::none_of(parameters, [&](const std::string& name) {
          return match_stars(rule.parameter, name).has_value();
        }))
      throw UsageError(fmt::format("{}:{}: no parameter of the model is called '{}'.{}",
                                   mapping_.source, rule.line, rule.parameter,
                                   did_you_mean(rule.parameter, parameters)));
  for (const MappedTensor& tensor : tensors_.tensors()) {
    const bool is_ignored = std::ranges::any_of(mapping_.ignored, [&](const std::string& pattern) {
      return match_stars(pattern, tensor.name).has_value();
    });
    if (!used.contains(tensor.name) && !is_ignored)
      transfer.unused.push_back({excerpt(tensor.name), "the model has none"});
  }
  return transfer;
}

void ForeignWeights::fill(const WeightTransfer& transfer, State& state) const {
  for (const TakenTensor& taken : transfer.taken) {
    const int entry = state.find(taken.parameter);
    FB_CHECK(entry >= 0, "no State '{}'", taken.parameter);
    if (state.is_lent(entry)) continue;
    const Recipe made = recipe(taken.parameter);
    const DType dtype = tensors_.find(made.origins.front().name)->type.dtype;
    const int64_t width = dtype_bytes(dtype);
    std::vector<Shape> shapes;
    std::vector<std::byte> joined;
    for (const MappingRule::Origin& origin : made.origins) {
      const MappedTensor& tensor = *tensors_.find(origin.name);
      shapes.push_back(tensor.type.shape);
      const std::vector<std::byte> part = changed(tensor.bytes, width, shapes.back(), origin.steps);
      joined.insert(joined.end(), part.begin(), part.end());
    }
    Shape shape;
    const std::string reason = join_shapes(shapes, shape);
    FB_CHECK(reason.empty(), "{}", reason);
    const std::vector<std::byte> values = changed(joined, width, shape, made.steps);
    const TensorType& type = state.entries()[static_cast<size_t>(entry)].type;
    FB_CHECK(shape == type.shape, "{} of '{}'", shape.text(), taken.parameter);
    std::vector<std::byte> converted(static_cast<size_t>(type.bytes()));
    convert_elements(values, dtype, converted, type.dtype);
    state.write(entry, converted);
  }
}

std::vector<std::string> ForeignWeights::lines(const WeightTransfer& transfer) const {
  std::vector<std::string> same, mapped;
  for (const TakenTensor& each : transfer.taken) {
    if (each.source == each.parameter)
      same.push_back(each.parameter);
    else
      mapped.push_back(fmt::format("{} -> {}", each.source, each.parameter));
  }
  std::vector<std::string> lines = {fmt::format("weights  {}: {} of {} tensors taken", path(),
                                                transfer.taken.size(),
                                                transfer.taken.size() + transfer.left.size())};
  for (std::string& line : listed_lines("taken", same)) lines.push_back(std::move(line));
  for (std::string& line : listed_lines("mapped", mapped)) lines.push_back(std::move(line));
  for (const LeftTensor& each : transfer.left)
    lines.push_back(fmt::format("random   {}: {}", each.name, each.reason));
  for (const LeftTensor& each : transfer.unused)
    lines.push_back(fmt::format("unused   {}", each.name));
  return lines;
}

}  // namespace fullbore
