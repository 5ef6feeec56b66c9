// What artifacts hold, compared with tests/saved_layouts.txt: the fields of each JSON text and
// their types, and how constants are packed. Whoever changes one of these has to raise its version,
// else files of older versions would be read as what they are not.
//
//   [onednn 2]                     a form and its version
//   slots[].bytes integer          a field that each object there has, and its type
//   slots[].desc? array object     one that some have, of several types
//   = packed 0123456789abcdef      what some bytes of a fixed case come to
//
// With COLLAGE_WRITE_LAYOUTS=1 in the environment, tests add what they see to the file, several
// processes at once too.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/hash.h"
#include "runtime/saved_kernel.h"
#include "test_paths.h"

namespace collage::testing {

class SavedLayouts {
 public:
  static SavedLayouts& all() {
    static SavedLayouts layouts;
    return layouts;
  }

  // `maps`: where the keys of objects are names of anything.
  void expect_known(const std::string& name, int version, const nlohmann::json& value,
                    const std::set<std::string>& maps = {}) {
    visit_form(name, version, [&](Form& form, std::string& differences) {
      visit(form, value, "", maps, differences);
    });
  }
  // A kernel's description.
  void expect_known_kernel(const std::string& loader, const std::string& description) {
    const KernelLoader* found = find_kernel_loader(loader);
    ASSERT_NE(found, nullptr) << loader;
    expect_known(product_name(loader), layout_version(*found), nlohmann::json::parse(description));
  }
  // How a kernel's constant is packed. `part` as below.
  void expect_known_packing(const SavedKernel& saved, const std::string& part) {
    const KernelLoader* found = find_kernel_loader(saved.loader);
    ASSERT_NE(found, nullptr) << saved.loader;
    ASSERT_FALSE(saved.constants.empty()) << part;
    expect_known(product_name(saved.loader), layout_version(*found), part,
                 saved.constants[0].text());
  }
  // Of the form alone: what follows the version of the library, where there is one.
  static int layout_version(const KernelLoader& loader) {
    return std::stoi(loader.version.substr(loader.version.rfind('/') + 1));
  }
  // `part`: what of a case that is the same on every machine.
  void expect_known(const std::string& name, int version, const std::string& part,
                    std::string_view bytes) {
    visit_form(name, version, [&](Form& form, std::string& differences) {
      std::string& known = form.digests[part];
      const std::string seen = sha256_hex(bytes).substr(0, 16);
      if (known != seen) differences = part + " comes to " + seen + ", not to '" + known + "'\n";
      if (writes_) known = seen;
    });
  }
  // Of a loader that tests compile a second time (tests/backend/contraction/software).
  static std::string product_name(std::string loader) {
    constexpr std::string_view kSecond = "_in_software";
    const size_t at = loader.find(kSecond);
    return at == std::string::npos ? loader : loader.erase(at, kSecond.size());
  }

 private:
  struct Field {
    std::set<std::string> types;
    bool optional = false;
  };
  struct Form {
    int version = 0;                                              // 0: unknown
    std::map<std::string, std::map<std::string, Field>> objects;  // by where, by name
    std::map<std::string, std::string> digests;
    std::set<std::string> seen;  // where an object was, in this process or when it was written
  };

  // Other processes wait, until it is gone.
  struct Turn {
    Turn() { ::flock(folder, LOCK_EX); }
    ~Turn() { ::close(folder); }
    int folder = ::open(COLLAGE_TESTS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  };

  SavedLayouts() { read(); }
  void read() {
    const std::map<std::string, Form> before = std::exchange(forms_, {});
    std::ifstream file(path());
    Form* form = nullptr;
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::string first, word;
      words >> first;
      if (first.empty() || first[0] == '#') continue;
      if (first[0] == '[') {
        const std::string name = first.substr(1);
        form = &forms_[name];
        words >> form->version;
        const auto known = before.find(name);
        if (known != before.end() && known->second.version == form->version)
          form->seen = known->second.seen;
      } else if (first == "=") {
        words >> first >> word;
        form->digests[first] = word;
      } else {
        Field field;
        if ((field.optional = first.back() == '?')) first.pop_back();
        while (words >> word) field.types.insert(word);
        const size_t dot = first.rfind('.');
        const std::string where = dot == std::string::npos ? "" : first.substr(0, dot);
        form->objects[where][first.substr(dot + 1)] = field;
        form->seen.insert(where);
      }
    }
  }
  void write() const {
    std::ostringstream file;
    file << "# What artifacts hold: tests/saved_layouts.h says how to read this and when it "
            "changes.\n";
    for (const auto& [name, form] : forms_) {
      file << "\n[" << name << " " << form.version << "]\n";
      for (const auto& [where, fields] : form.objects)
        for (const auto& [key, field] : fields) {
          file << (where.empty() ? "" : where + ".") << key << (field.optional ? "?" : "");
          for (const std::string& type : field.types) file << " " << type;
          file << "\n";
        }
      for (const auto& [part, digest] : form.digests) file << "= " << part << " " << digest << "\n";
    }
    const Status status = write_file_atomically(path(), file.str());
    EXPECT_TRUE(status.ok()) << status.to_string();
  }

  static std::string path() { return std::string(COLLAGE_TESTS_DIR) + "/saved_layouts.txt"; }

  // visit(form, differences) says in what the form differs from what it looks at, and adds that to
  // the form when it is to be written.
  template <typename Visit>
  void visit_form(const std::string& name, int version, Visit visit) {
    std::string differences;
    if (!writes_) {
      visit(forms_[name], differences);
      return compare(name, version, differences);
    }
    const Turn turn;
    read();
    Form& form = forms_[name];
    const bool is_new = form.version != version;
    if (is_new) form = Form{version, {}, {}, {}};
    visit(form, differences);
    if (is_new || !differences.empty()) write();
  }

  static std::string type_of(const nlohmann::json& value) {
    if (value.is_number_integer()) return "integer";
    return value.is_number() ? "number" : value.type_name();
  }

  void visit(Form& form, const nlohmann::json& value, const std::string& where,
             const std::set<std::string>& maps, std::string& differences) {
    const bool is_map = maps.count(where) > 0;
    if (value.is_array() || (value.is_object() && is_map)) {
      const std::string any = value.is_array() ? "[]" : "*";
      for (const nlohmann::json& item : value) {
        take(form, where, any, item, true, differences);
        visit(form, item, (where.empty() ? "" : where + ".") + any, maps, differences);
      }
      return;
    }
    if (!value.is_object()) return;
    const bool first = form.seen.insert(where).second;
    for (const auto& [key, item] : value.items()) {
      take(form, where, key, item, !first, differences);
      visit(form, item, (where.empty() ? "" : where + ".") + key, maps, differences);
    }
    for (auto& [key, field] : form.objects[where])
      if (!field.optional && !value.contains(key)) {
        differences += "'" + where + "' lacks '" + key + "'\n";
        field.optional = writes_;
      }
  }
  void take(Form& form, const std::string& where, const std::string& key,
            const nlohmann::json& value, bool optional, std::string& differences) {
    std::map<std::string, Field>& known = form.objects[where];
    const std::string type = type_of(value);
    const auto found = known.find(key);
    if (found != known.end() && found->second.types.count(type) > 0) return;
    differences += "'" + where + "' has '" + key + "' (" + type + ")\n";
    if (!writes_) return;
    if (found == known.end()) known[key].optional = optional;
    known[key].types.insert(type);
  }

  void compare(const std::string& name, int version, const std::string& differences) const {
    const int known = forms_.at(name).version;
    EXPECT_EQ(known, version) << name << " is of version " << version
                              << "; tests/saved_layouts.txt holds that of version " << known
                              << ": run its tests with COLLAGE_WRITE_LAYOUTS=1";
    EXPECT_EQ(differences, "")
        << "what is saved of " << name
        << " has another form than tests/saved_layouts.txt holds of version " << known
        << ".\nRaise its version (the number that ends a KernelLoader's version; kArtifactFormat "
           "otherwise), then run its tests with COLLAGE_WRITE_LAYOUTS=1.";
  }

  const bool writes_ = std::getenv("COLLAGE_WRITE_LAYOUTS") != nullptr;
  std::map<std::string, Form> forms_;
};

}  // namespace collage::testing
