#pragma once
#include <string>
#include <string_view>

#include "fullbore/base/file_system.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// The whole file. Failure names the path and the system's reason.
Result<std::string> read_file(const std::string& path, FileSystem& files = system_files());

/// Writes beside the file, syncs, then renames over it: a reader, or a start after a crash, sees
/// the old contents or the new, never a part. The folder must exist.
Status write_file_atomically(const std::string& path, std::string_view contents,
                             FileSystem& files = system_files());

/// Removes a folder with all that is in it; links are not followed.
Status remove_folder_with_contents(const std::string& path, FileSystem& files = system_files());

/// Makes the folder and those above it that are missing, and syncs every name it made: after a power
/// cut the folder is still there.
Status make_folders(const std::string& path, FileSystem& files = system_files());

/// "No space left on device": the text of the current errno.
std::string system_reason();

}  // namespace fullbore
