// Domains: sets of values that must lie together, found by unification. A domain has two parts that
// are unified separately, the device with its target and the memory scope: a kernel runs on one
// device, and may state a scope for each of its buffers.
#pragma once

#include <vector>

#include "base/result.h"
#include "ir/expr.h"
#include "passes/devices/declared_devices.h"

namespace collage {

struct Domain {
  size_t device = 0, scope = 0;  // slots of DeviceDomains
};

class DeviceDomains {
 public:
  Domain fresh();
  // Unifies both, because of `site`. kBadModel: they cannot lie together; the error names the two
  // sites that put them in different places. They stay separate then.
  Status unify(const Domain& a, const Domain& b, const Expr& site);
  // Unifies only the devices.
  Status unify_devices(const Domain& a, const Domain& b, const Expr& site);
  // Adds a constraint, because of `site`.
  Status constrain(const Domain& domain, const DeviceConstraint& constraint, const Expr& site);

  // Returns the first declared device that the domain's constraints allow, or the fallback if there
  // are none.
  Result<PlannedDevice> resolve(const Domain& domain, const DeclaredDevices& devices) const;

 private:
  struct Slot {
    size_t parent;
    DeviceConstraint constraint;
    Expr site;  // that constrained it first
  };
  size_t root(size_t slot) const;
  Status join_into(size_t slot, const DeviceConstraint& constraint, const Expr& stated,
                   const Expr& site);
  Status unify_slots(size_t a, size_t b, const Expr& site);

  mutable std::vector<Slot> slots_;
};

// Returns "add (line 7, column 3)", an expression in messages.
std::string site_text(const Expr& expr);

}  // namespace collage
