#!/usr/bin/env python3
"""Adds a device to a copy of the repository and trains on it: its own folder, and one line that says which floor it is on.
The page of all floors is generated.

usage: add_device.py BUILD_FOLDER

The command of BUILD_FOLDER, which knows nothing of it, then lists it and trains on it, to the bits of another device.
"""

import json

from exercise import check, exercise, run

README = "# device/modest: the oracle's kernels, at addresses of its own\n\n**Open first:** `modest_device.cpp`.\n"

SOURCE = """#include <cstring>
#include <vector>

#include "fullbore/device/host_device.h"
#include "fullbore/device/reference_kernel.h"
#include "fullbore/device/registry.h"
#include "fullbore/device/sequential_replay.h"

namespace fullbore {
namespace {

constexpr uint64_t kBeyond = 0x0FF0'0000'0000'0000;

std::byte* pointer(Address address) {
  return reinterpret_cast<std::byte*>(address.value - kBeyond);
}

class ModestMemory final : public DeviceMemory {
 public:
  explicit ModestMemory(int64_t bytes) : contents_(static_cast<size_t>(bytes) + 1) {}
  Address address() const override {
    return {reinterpret_cast<uint64_t>(contents_.data()) + kBeyond};
  }
  int64_t bytes() const override { return static_cast<int64_t>(contents_.size()) - 1; }

 private:
  std::vector<std::byte> contents_;
};

class ModestReplay final : public SequentialReplay {
 public:
  using SequentialReplay::SequentialReplay;

 private:
  // Batch inputs are never written.
  static void* at(const Place& place) {
    return place.host ? const_cast<void*>(place.host) : pointer(place.address);
  }
  void launch(const Kernel& kernel, std::span<const Place> operands) override {
    std::vector<void*> pointers;
    for (const Place& place : operands) pointers.push_back(at(place));
    dynamic_cast<const ReferenceKernel&>(kernel).run(pointers);
  }
  void copy(Place from, Place to, int64_t bytes) override {
    std::memmove(at(to), at(from), static_cast<size_t>(bytes));
  }
  void clear(Place place, int64_t bytes) override {
    std::memset(at(place), 0, static_cast<size_t>(bytes));
  }
  int64_t number(Place place, int64_t bytes, int64_t) const override {
    int64_t value = 0;
    std::memcpy(&value, at(place), static_cast<size_t>(bytes));
    return value;
  }
  void set_number(Place place, int64_t value) override {
    std::memcpy(at(place), &value, sizeof value);
  }
};

class ModestRecorder final : public Recording {
 public:
  std::unique_ptr<Replayable> finish() override { return std::make_unique<ModestReplay>(take()); }
};

class ModestDevice final : public HostDevice {
 public:
  Target target() const override {
    Target target;
    target.name = "modest";
    return target;
  }
  DeviceFacts facts() const override { return {.name = "modest", .hardware = "none of its own"}; }
  std::unique_ptr<DeviceMemory> allocate(int64_t bytes) override {
    return std::make_unique<ModestMemory>(bytes);
  }
  std::unique_ptr<Compiler> compiler() override { return std::make_unique<ReferenceCompiler>(); }
  std::unique_ptr<Recorder> record() override { return std::make_unique<ModestRecorder>(); }
  MeasuredPeaks measure_peaks(const PeakMemory&) override {
    return {.peaks = {1e15, 1e15, 1e15}, .fp32_method = "none", .bf16_method = "none"};
  }

 private:
  std::byte* contents(Address address, int64_t) const override { return pointer(address); }
};

const RegisteredDevice registered(
    {.name = "modest",
     .summary = "an exercise",
     .open = [](const std::string&, int) -> std::shared_ptr<Device> {
       return std::make_shared<ModestDevice>();
     }});

}  // namespace
}  // namespace fullbore
"""


def losses(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line["loss"] for line in lines if line.get("kind") == "train"]


def body(it):
    it.write("fullbore/device/modest/README.md", README)
    it.write("fullbore/device/modest/modest_device.cpp", SOURCE)
    it.write("fullbore/device/modest/CMakeLists.txt", "fb_room(device/modest LIBRARIES fmt::fmt)\n")
    it.insert("fullbore/LAYERS", "device/reference\n", "device/modest ")
    device = it.library("modest.so", it.objects("fullbore/device/modest/CMakeFiles/fullbore_device_modest.dir/modest_device.cpp.o"))
    run(it.tree / "tools" / "check_layers")
    there = it.there(device)
    command = it.build / "bin" / "fullbore_tiny"
    check("modest" in run(command, "config", "engine.device", **there), "fullbore config engine.device")
    (it.folder / "text.txt").write_text("to be or not to be, that is the question. " * 60, encoding="utf-8")
    (it.folder / "job.yaml").write_text("model: {name: tiny}\n", encoding="utf-8")
    for name in ("reference", "modest"):
        run(command, "train", "job.yaml", "data.path=text.txt", "model.width=16", "model.heads=2",
            "model.layers=1", "model.context=8", "train.batch_size=2", "train.steps=3", "log.interval=1", f"run.dir={name}",
            f"engine.device={name}", **there)
    made, expected = losses(it.folder / "modest"), losses(it.folder / "reference")
    check(len(made) == 3 and made == expected, f"losses {made}, those of the device reference {expected}")

    written = it.touched()
    own = [name for name in written if name.startswith("fullbore/device/modest/")]
    check(set(written) - set(own) == {"fullbore/LAYERS"}, f"beside its folder: {sorted(set(written) - set(own))}")
    check(it.changed_lines("fullbore/LAYERS") == 1, "more than a line of LAYERS")
    run(it.tree / "tools" / "make_docs")
    generated = sorted(set(it.touched()) - set(written))
    check(generated == ["docs/ARCHITECTURE.md"], f"generated: {generated}")
    return f"a device is its own folder and a line: {', '.join(written)}"


exercise(body)
