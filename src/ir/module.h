// Module: named functions of three kinds that may call each other: graph functions, tensor programs
// and external functions. This room knows the latter two only as AbstractFunction, so that it does
// not depend on their rooms. Modules are values: copying is cheap (expressions are shared), a pass
// takes one and returns another.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ir/expr.h"

namespace collage {

// A tensor program or an external function: callable from graph functions by its global name.
class AbstractFunction {
 public:
  virtual ~AbstractFunction() = default;
  virtual const Type& type() const = 0;       // a function type
  virtual std::string to_text() const = 0;    // what follows its name where it is defined
  virtual std::string kind_name() const = 0;  // "program", "extern": the word before the name
  // The memory scopes of the leaves of its parameters, then of its result: "" is any, "global" a
  // device's ordinary memory.
  virtual std::vector<std::string> memory_scopes() const { return {}; }
  virtual bool has_effects() const { return false; }  // effects.h
};

// A program that a pass compiled, for calls of the external function of some symbol.
struct ExternalMod {
  std::string target, variant;  // that it was compiled for, for people
  Expr code;                    // bytes, a constant of uint8: an artifact (docs/artifact.md)
};
// kBadModel: its code is no list of bytes.
Status check_external_mod(const ExternalMod& mod);

class Module {
 public:
  Module() = default;
  explicit Module(Function main) { functions["main"] = std::move(main); }

  std::map<std::string, Function> functions;  // graph functions by global name
  std::map<std::string, std::shared_ptr<const AbstractFunction>> abstract_functions;
  std::map<std::string, ExternalMod> external_mods;  // by symbol

  const Function& main() const { return functions.at("main"); }
  bool has(const std::string& name) const {
    return functions.count(name) != 0 || abstract_functions.count(name) != 0;
  }
};

}  // namespace collage
