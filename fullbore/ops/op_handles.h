#pragma once
#include "fullbore/ir/op_handle.h"

/// The ops that other code knows by more than their tags (passes, planner, devices, neighbouring ops): `node.op ==
/// op::cast` compares addresses.
namespace fullbore::op {

inline const OpHandle add{"add"};
inline const OpHandle argmax{"argmax"};
inline const OpHandle attention{"attention"};
inline const OpHandle attention_gradient{"attention_gradient"};
inline const OpHandle broadcast_to{"broadcast_to"};
inline const OpHandle cast{"cast"};
inline const OpHandle concat{"concat"};
inline const OpHandle constant{"constant"};
inline const OpHandle cumsum{"cumsum"};
inline const OpHandle dropout_mask{"dropout_mask"};
inline const OpHandle dynamic_slice{"dynamic_slice"};
inline const OpHandle dynamic_update_slice{"dynamic_update_slice"};
inline const OpHandle fp8_matmul{"fp8_matmul"};
inline const OpHandle fused{"fused"};
inline const OpHandle gather{"gather"};
inline const OpHandle gather_sum{"gather_sum"};
inline const OpHandle index_add{"index_add"};
inline const OpHandle iota{"iota"};
inline const OpHandle linear_cross_entropy{"linear_cross_entropy"};
inline const OpHandle linear_cross_entropy_gradient{"linear_cross_entropy_gradient"};
inline const OpHandle linear_log_probability{"linear_log_probability"};
inline const OpHandle linear_log_probability_gradient{"linear_log_probability_gradient"};
inline const OpHandle logical_not{"logical_not"};
inline const OpHandle matmul{"matmul"};
inline const OpHandle matmul_add{"matmul_add"};
inline const OpHandle mul{"mul"};
inline const OpHandle neg{"neg"};
inline const OpHandle packed_attention{"packed_attention"};
inline const OpHandle packed_attention_gradient{"packed_attention_gradient"};
inline const OpHandle pad{"pad"};
inline const OpHandle prepack{"prepack"};
inline const OpHandle prepacked_matmul{"prepacked_matmul"};
inline const OpHandle quantized_linear{"quantized_linear"};
inline const OpHandle recurrence_gradient{"recurrence_gradient"};
inline const OpHandle recurrence_outputs{"recurrence_outputs"};
inline const OpHandle recurrence_states{"recurrence_states"};
inline const OpHandle reshape{"reshape"};
inline const OpHandle reverse{"reverse"};
inline const OpHandle scatter_add{"scatter_add"};
inline const OpHandle scatter_along_axis{"scatter_along_axis"};
inline const OpHandle slice{"slice"};
inline const OpHandle sort{"sort"};
inline const OpHandle sub{"sub"};
inline const OpHandle take_along_axis{"take_along_axis"};
inline const OpHandle transpose{"transpose"};

}  // namespace fullbore::op
