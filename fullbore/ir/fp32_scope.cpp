#include "fullbore/ir/fp32_scope.h"

#include <algorithm>

namespace fullbore {

bool is_fp32_scope(std::string_view scope) {
  for (size_t begin = 0; begin <= scope.size();) {
    const size_t end = std::min(scope.find('.', begin), scope.size());
    if (scope.substr(begin, end - begin) == "fp32") return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace fullbore
