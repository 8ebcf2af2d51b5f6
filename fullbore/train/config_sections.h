#pragma once
#include <map>
#include <memory>
#include <typeindex>

namespace fullbore {

/// Values of the keys that rooms and workloads register (config_keys.h): one struct of each, with its defaults until it
/// is changed. The struct is default-constructible, copyable and comparable.
class ConfigSections {
 public:
  ConfigSections() = default;
  ConfigSections(const ConfigSections& other);
  ConfigSections(ConfigSections&&) noexcept = default;
  ConfigSections& operator=(const ConfigSections& other);
  ConfigSections& operator=(ConfigSections&&) noexcept = default;

  template <typename Keys>
  const Keys& get() const {
    static const Keys defaults;
    const Box* const box = find(typeid(Keys));
    return box == nullptr ? defaults : static_cast<const Of<Keys>*>(box)->keys;
  }
  template <typename Keys>
  Keys& get() {
    std::unique_ptr<Box>& box = boxes_[typeid(Keys)];
    if (!box) box = std::make_unique<Of<Keys>>();
    return static_cast<Of<Keys>*>(box.get())->keys;
  }

  /// What was never asked for has its defaults.
  bool operator==(const ConfigSections& other) const;

 private:
  struct Box {
    virtual ~Box() = default;
    virtual std::unique_ptr<Box> copy() const = 0;
    /// `other`: of the same struct, or null for its defaults.
    virtual bool equals(const Box* other) const = 0;
  };
  template <typename Keys>
  struct Of : Box {
    std::unique_ptr<Box> copy() const override { return std::make_unique<Of>(*this); }
    bool equals(const Box* other) const override {
      return keys == (other == nullptr ? Keys() : static_cast<const Of*>(other)->keys);
    }
    Keys keys;
  };
  const Box* find(std::type_index type) const;

  std::map<std::type_index, std::unique_ptr<Box>> boxes_;
};

}  // namespace fullbore
