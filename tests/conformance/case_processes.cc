#include "conformance/case_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/json.h"
#include "base/scratch_folder.h"
#include "conformance/pipeline.h"

namespace collage {

namespace {

// The process is called with
//   run-cases SUITE FILE FIRST TARGETS
// and runs the cases that FILE names, a line each, from number FIRST on. It writes a line of JSON
// to descriptor 3 before each and after it.
constexpr const char* kVerb = "run-cases";
constexpr int kReports = 3;

constexpr int kSilenceSeconds = 100;

class CaseProcess {
 public:
  CaseProcess(const std::filesystem::path& suite, const std::filesystem::path& list, size_t first,
              const std::string& targets) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe");
    const std::string number = std::to_string(first);
    const char* arguments[] = {program.c_str(), kVerb,           suite.c_str(), list.c_str(),
                               number.c_str(),  targets.c_str(), nullptr};
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], kReports);
    ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    if (::posix_spawn(&pid_, program.c_str(), &actions, nullptr,
                      const_cast<char* const*>(arguments), environ) != 0)
      pid_ = -1;
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    reports_ = ends[0];
  }
  ~CaseProcess() {
    if (reports_ >= 0) ::close(reports_);
    end();
  }
  CaseProcess(const CaseProcess&) = delete;
  CaseProcess& operator=(const CaseProcess&) = delete;

  // None when the process has ended, or is silent.
  std::optional<std::string> line() {
    while (true) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string text = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return text;
      }
      pollfd waiting = {reports_, POLLIN, 0};
      if (::poll(&waiting, 1, kSilenceSeconds * 1000) == 0) {
        silent_ = true;
        return std::nullopt;
      }
      char some[4096];
      const ssize_t count = ::read(reports_, some, sizeof some);
      if (count <= 0) return std::nullopt;
      buffer_.append(some, static_cast<size_t>(count));
    }
  }

  // How it ended; empty where all is well.
  std::string end() {
    if (pid_ < 0) return how_;
    if (silent_) ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    if (silent_) {
      how_ = fmt::format("no answer in {} s", kSilenceSeconds);
    } else if (WIFSIGNALED(status)) {
      how_ =
          fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
      how_ = fmt::format("ended with status {}", WEXITSTATUS(status));
    }
    return how_;
  }

 private:
  pid_t pid_ = -1;
  int reports_ = -1;
  bool silent_ = false;
  std::string buffer_, how_ = "it did not start";
};

nlohmann::json report_of(const CaseResult& result, const std::set<std::string>& backends) {
  return {{"outcome", static_cast<int>(result.outcome)},
          {"reason", result.reason},
          {"backends", backends}};
}

ProcessedCase processed(const std::string& name, const nlohmann::json& report) {
  ProcessedCase done;
  done.name = name;
  done.result.outcome = static_cast<Outcome>(report.at("outcome").get<int>());
  done.result.reason = report.at("reason").get<std::string>();
  done.backends = report.at("backends").get<std::set<std::string>>();
  return done;
}

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::vector<ProcessedCase> run_in_processes(const std::filesystem::path& suite,
                                            const std::vector<std::string>& names,
                                            const std::string& targets) {
  std::vector<ProcessedCase> all;
  const ScratchFolder folder =
      *ScratchFolder::create(std::filesystem::temp_directory_path(), "conformance");
  const std::filesystem::path list = folder.path() / "cases";
  {
    std::ofstream file(list);
    for (const std::string& name : names) file << name << "\n";
  }
  while (all.size() < names.size()) {
    CaseProcess process(suite, list, all.size(), targets);
    while (const std::optional<std::string> line = process.line()) {
      const nlohmann::json report = parse_json(*line);
      if (report.is_object()) all.push_back(processed(names[all.size()], report));
    }
    const std::string how = process.end();
    if (all.size() == names.size()) break;
    all.push_back(
        {names[all.size()], {Outcome::kFail, how.empty() ? "it stopped" : how}, true, {}});
  }
  return all;
}

bool is_case_process(int argc, char** argv) { return argc == 6 && std::string(argv[1]) == kVerb; }

int run_case_process(char** argv) {
  const std::filesystem::path suite = argv[2];
  const std::vector<std::string> names = read_lines(argv[3]);
  std::vector<std::string> targets;
  if (*argv[5] != '\0') targets.push_back(argv[5]);
  for (size_t i = std::stoul(argv[4]); i < names.size(); ++i) {
    if (names[i] == kCrash) std::abort();
    std::set<std::string> backends;
    const CaseResult result =
        run_onnx_case(suite / names[i],
                      [&](const Module& module,
                          const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
                        PipelineRun run = TRY(run_through_pipeline(module, targets, inputs));
                        backends.merge(run.backends);
                        return std::move(run.outputs);
                      });
    const std::string line =
        report_of(result, backends).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
        "\n";
    if (::write(kReports, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return 1;
  }
  // Libraries of backends may fail when they are torn down, which is no case's fault.
  ::_exit(0);
}

}  // namespace collage
