#pragma once
#include <string>
#include <string_view>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// The whole file. Failure names the path and the system's reason.
Result<std::string> read_file(const std::string& path);

/// Writes beside the file, syncs, then renames over it: a reader, or a start after a crash, sees
/// the old contents or the new, never a part. The folder must exist.
Status write_file_atomically(const std::string& path, std::string_view contents,
                             FileSystem& files = system_files());

/// "No space left on device": the text of the current errno.
std::string system_reason();

}  // namespace fullbore
