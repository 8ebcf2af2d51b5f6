#pragma once
#include <exception>
#include <new>

#include "fullbore/base/error.h"

namespace fullbore {

/// What `run` returns: a function that the user's program brought. What it throws that is neither an Error nor bad_alloc is
/// told as theirs: `failed(reason)` is thrown in its place.
template <class Run, class Failed>
auto run_user_code(const Run& run, const Failed& failed) {
  try {
    return run();
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw failed(error.what());
  } catch (...) {
    throw failed("what was thrown is no std::exception");
  }
}

}  // namespace fullbore
