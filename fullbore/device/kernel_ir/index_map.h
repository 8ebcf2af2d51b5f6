#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/base/shape.h"
#include "fullbore/device/kernel_ir/kernel_ir.h"

namespace fullbore::jit {

inline constexpr int kMaxSymbols = 8;

/// Index along one axis of a value: form / divisor, exact wherever the map's predicates hold.
struct AxisIndex {
  Form form;
  int64_t divisor = 1;
  bool operator==(const AxisIndex&) const = default;
};

/// Which element of a value is meant at a point of the domain.
struct IndexMap {
  std::vector<AxisIndex> axes;
  std::vector<Predicate> predicates;  ///< where they do not hold, the element does not exist
  bool operator==(const IndexMap&) const = default;
};

/// The points at which a kernel evaluates: the index space of one value, the root, whose axes may be
/// split so that reshapes on the way are affine too. Forms have one coefficient per dim here, then
/// kMaxSymbols.
class Domain {
 public:
  struct Dim {
    int64_t extent = 1;
    int axis = 0;        ///< of the root
    int64_t weight = 1;  ///< of this dim in the root's index
    bool reduced = false;
  };

  Domain() = default;
  /// Axis `backwards` of the root is walked from its end; -1: none.
  Domain(const Shape& root, const std::vector<int64_t>& reduced_axes, int backwards = -1);

  const Shape& root() const { return root_; }
  const std::vector<Dim>& dims() const { return dims_; }
  bool reduces() const;
  bool axis_reduced(int axis) const { return reduced_[static_cast<size_t>(axis)]; }
  Form zero() const;
  Form symbol(int index) const;
  /// Index along a root axis.
  Form axis(int axis) const;
  /// All axes of the root, or those that are kept.
  IndexMap root_map(bool kept_only = false) const;
  Shape root_shape(bool kept_only = false) const;

  /// dim becomes two: extent / factor, then factor.
  void split(int dim, int64_t factor);

 private:
  Shape root_;
  std::vector<bool> reduced_;
  int backwards_ = -1;
  std::vector<Dim> dims_;
};

Form scaled(Form form, int64_t factor);
Form sum(Form a, const Form& b);
Form shifted(Form form, int64_t offset);

/// A dim of the domain that must be split before a map can be written down.
struct SplitRequest {
  int dim = 0;
  int64_t factor = 0;
};

/// Indices of the same element of a value of shape `to` with the same elements in row-major order.
/// Fails with a split that would help, or with nothing if none would.
struct ReshapeResult {
  std::optional<IndexMap> map;
  std::optional<SplitRequest> split;
};
ReshapeResult reshape_map(const Domain& domain, const IndexMap& map, const Shape& from,
                          const Shape& to);

}  // namespace fullbore::jit
