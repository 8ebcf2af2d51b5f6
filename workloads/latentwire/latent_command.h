#pragma once
#include "fullbore/app/command.h"

namespace fullbore::latentwire {

/// `fullbore latentwire`: prepare, encode, decode, export-prefix, bench.
void add_latent_command(Command root);
void add_prepare_command(Command latentwire);
void add_bench_switches_command(Command latentwire);

}  // namespace fullbore::latentwire
