#pragma once
#include "fullbore/ir/op_handle.h"

/// The ops that passes and planner know by more than their tags: `node.op == op::cast` compares addresses.
namespace fullbore::op {

inline const OpHandle add{"add"};
inline const OpHandle broadcast_to{"broadcast_to"};
inline const OpHandle cast{"cast"};
inline const OpHandle concat{"concat"};
inline const OpHandle constant{"constant"};
inline const OpHandle fused{"fused"};
inline const OpHandle iota{"iota"};
inline const OpHandle logical_not{"logical_not"};
inline const OpHandle matmul{"matmul"};
inline const OpHandle matmul_add{"matmul_add"};
inline const OpHandle mul{"mul"};
inline const OpHandle neg{"neg"};
inline const OpHandle pack_panels{"pack_panels"};
inline const OpHandle pad{"pad"};
inline const OpHandle panel_matmul{"panel_matmul"};
inline const OpHandle reshape{"reshape"};
inline const OpHandle reverse{"reverse"};
inline const OpHandle slice{"slice"};
inline const OpHandle sub{"sub"};
inline const OpHandle transpose{"transpose"};

}  // namespace fullbore::op
