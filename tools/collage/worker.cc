// collage worker: measures candidates for a parent process (see measure/worker.h). Not for people.

#include "backend/targets/backends.h"
#include "backend/targets/plugins.h"
#include "measure/worker_loop.h"
#include "options.h"

namespace collage::tool {

Command add_worker(CLI::App& app) {
  CLI::App* command = app.add_subcommand("worker", "");
  command->group("");  // hidden
  auto plugins = std::make_shared<std::vector<std::string>>();
  command->add_option("--plugin", *plugins)->allow_extra_args(false);
  return {command, [plugins]() -> Status {
            register_all();
            for (const std::string& plugin : *plugins) TRY(load_plugin(plugin));
            if (run_worker() != 0)
              return internal_error("descriptors 3 and 4 must be pipes to a parent");
            return {};
          }};
}

}  // namespace collage::tool
