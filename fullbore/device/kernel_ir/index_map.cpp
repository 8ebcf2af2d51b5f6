#include "fullbore/device/kernel_ir/index_map.h"

#include <algorithm>

namespace fullbore::jit {

Domain::Domain(const Shape& root, const std::vector<int64_t>& reduced_axes, int backwards)
    : root_(root), reduced_(static_cast<size_t>(root.rank()), false), backwards_(backwards) {
  for (int64_t axis : reduced_axes) reduced_[static_cast<size_t>(axis)] = true;
  for (int axis = 0; axis < root.rank(); ++axis)
    if (root[axis] != 1)
      dims_.push_back({root[axis], axis, axis == backwards ? -1 : 1, axis_reduced(axis)});
}

bool Domain::reduces() const {
  return std::any_of(dims_.begin(), dims_.end(), [](const Dim& dim) { return dim.reduced; });
}

Form Domain::zero() const {
  return {0, std::vector<int64_t>(dims_.size() + static_cast<size_t>(kMaxSymbols), 0)};
}

Form Domain::symbol(int index) const {
  Form form = zero();
  form.coefficients[dims_.size() + static_cast<size_t>(index)] = 1;
  return form;
}

Form Domain::axis(int axis) const {
  Form form = zero();
  for (size_t i = 0; i < dims_.size(); ++i)
    if (dims_[i].axis == axis) form.coefficients[i] = dims_[i].weight;
  if (axis == backwards_ && root_[axis] > 0) form.offset = root_[axis] - 1;
  return form;
}

IndexMap Domain::root_map(bool kept_only) const {
  IndexMap map;
  for (int axis = 0; axis < root_.rank(); ++axis)
    if (!kept_only || !axis_reduced(axis)) map.axes.push_back({this->axis(axis), 1});
  return map;
}

Shape Domain::root_shape(bool kept_only) const {
  std::vector<int64_t> extents;
  for (int axis = 0; axis < root_.rank(); ++axis)
    if (!kept_only || !axis_reduced(axis)) extents.push_back(root_[axis]);
  return Shape(std::move(extents));
}

void Domain::split(int dim, int64_t factor) {
  const auto at = static_cast<size_t>(dim);
  Dim inner = dims_[at];
  inner.extent = factor;
  dims_[at].extent /= factor;
  dims_[at].weight *= factor;
  dims_.insert(dims_.begin() + dim + 1, inner);
}

Form scaled(Form form, int64_t factor) {
  form.offset *= factor;
  for (int64_t& c : form.coefficients) c *= factor;
  return form;
}

Form sum(Form a, const Form& b) {
  a.offset += b.offset;
  for (size_t i = 0; i < a.coefficients.size(); ++i) a.coefficients[i] += b.coefficients[i];
  return a;
}

Form shifted(Form form, int64_t offset) {
  form.offset += offset;
  return form;
}

namespace {

struct Division {
  bool exact = false;
  Form quotient;
  Form rest;
  std::optional<SplitRequest> split;
};

// form = divisor * quotient + rest with 0 <= rest < divisor at every point of the domain.
Division divide(const Domain& domain, const Form& form, int64_t divisor) {
  Division result{false, domain.zero(), domain.zero(), {}};
  int64_t low = ((form.offset % divisor) + divisor) % divisor;
  int64_t high = low;
  result.rest.offset = low;
  result.quotient.offset = (form.offset - low) / divisor;
  for (size_t i = 0; i < form.coefficients.size(); ++i) {
    const int64_t c = form.coefficients[i];
    if (c % divisor == 0) {
      result.quotient.coefficients[i] = c / divisor;
      continue;
    }
    if (i >= domain.dims().size()) return result;  // a symbol: its range is not known here
    result.rest.coefficients[i] = c;
    const int64_t extent = domain.dims()[i].extent;
    const int64_t reach = c * std::max<int64_t>(extent - 1, 0);
    (reach < 0 ? low : high) += reach;
    if (const int64_t size = c < 0 ? -c : c; size * extent > divisor && divisor % size == 0)
      if (const int64_t factor = divisor / size; extent % factor == 0)
        result.split = SplitRequest{static_cast<int>(i), factor};
  }
  result.exact = low >= 0 && high < divisor;
  return result;
}

}  // namespace

ReshapeResult reshape_map(const Domain& domain, const IndexMap& map, const Shape& from,
                          const Shape& to) {
  if (from == to) return {map, {}};
  IndexMap result{{}, map.predicates};
  if (from.elements() == 0) {
    result.axes.assign(static_cast<size_t>(to.rank()), {domain.zero(), 1});
    return {std::move(result), {}};
  }
  // Groups of axes with equal products correspond: [8, 64, 12, 64] and [512, 768].
  int i = 0;
  int j = 0;
  while (i < from.rank() || j < to.rank()) {
    const int first_from = i;
    const int first_to = j;
    int64_t left = i < from.rank() ? from[i++] : 1;
    int64_t right = j < to.rank() ? to[j++] : 1;
    while (left != right) {
      if (left < right)
        left *= from[i++];
      else
        right *= to[j++];
    }
    if (i - first_from == 1 && j - first_to == 1) {
      result.axes.push_back(map.axes[static_cast<size_t>(first_from)]);
      continue;
    }
    Form linear = domain.zero();
    for (int axis = first_from; axis < i; ++axis) {
      const AxisIndex& index = map.axes[static_cast<size_t>(axis)];
      if (from[axis] == 1) continue;
      if (index.divisor != 1) return {};
      linear = sum(scaled(linear, from[axis]), index.form);
    }
    int64_t inner = right;
    for (int axis = first_to; axis < j; ++axis) {
      inner /= to[axis];
      if (to[axis] == 1) {
        result.axes.push_back({domain.zero(), 1});
        continue;
      }
      if (inner == 1) {
        result.axes.push_back({linear, 1});
        linear = domain.zero();
        continue;
      }
      const Division division = divide(domain, linear, inner);
      if (!division.exact) return {{}, division.split};
      result.axes.push_back({division.quotient, 1});
      linear = division.rest;
    }
  }
  return {std::move(result), {}};
}

}  // namespace fullbore::jit
