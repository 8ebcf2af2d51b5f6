#pragma once
#include "fullbore/backend/interpret.h"  // its interface, which rooms above may see
