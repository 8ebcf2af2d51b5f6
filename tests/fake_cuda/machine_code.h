#pragma once
#include <string>

/// What the fake driver's compiler makes: the PTX behind a header that says which driver made it for which card.
namespace fullbore::fake_cuda {

/// Of the card that there is, by the driver that there is. PTX that calls functions of others becomes hollow: its
/// kernels are there and do nothing, as linkers have been seen to make of a name that they do not know.
std::string machine_code_of(const std::string& ptx);

/// Does the image begin as machine code does? PTX does not.
bool is_machine_code(const void* image);

/// The PTX behind the header; a ResultCode: it is for another card, by another driver, or not as it was made.
int read_machine_code(const void* image, std::string* ptx, bool* is_hollow);

}  // namespace fullbore::fake_cuda
