#include "peer.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

extern char** environ;

namespace collage::tool {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// What was installed with this program, or the build's environment and sources, found upwards from
// it; of Python $COLLAGE_PYTHON first, and last the python3 that the shell would take.
struct PeerProgram {
  std::string python, script;
};
PeerProgram find_peer_program() {
  PeerProgram program;
  if (const char* python = std::getenv("COLLAGE_PYTHON")) program.python = python;
  std::error_code ec;
  for (fs::path folder = fs::read_symlink("/proc/self/exe", ec).parent_path();
       folder.has_relative_path(); folder = folder.parent_path()) {
    if (program.python.empty() && fs::exists(folder / "env/bin/python", ec))
      program.python = folder / "env/bin/python";
    for (const char* script : {"share/collage/peers/peer.py", "bench/peers/peer.py"})
      if (program.script.empty() && fs::exists(folder / script, ec))
        program.script = folder / script;
  }
  if (program.python.empty()) program.python = "python3";
  return program;
}

}  // namespace

Result<std::unique_ptr<Peer>> Peer::start(const std::string& runtime, const std::string& model,
                                          const std::vector<Shape>& shapes, int threads,
                                          const std::string& precision, int streams) {
  PeerProgram program = find_peer_program();
  if (program.script.empty())
    return error(ErrorCode::kUnavailable,
                 "--compare {}: share/collage/peers/peer.py was not found above this program",
                 runtime);
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0)
    return internal_error("no pipes for {}", runtime);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
  std::vector<std::string> words = {program.python, program.script,
                                    "--runtime",    runtime,
                                    "--model",      fs::absolute(model).string(),
                                    "--threads",    std::to_string(threads),
                                    "--precision",  precision,
                                    "--streams",    std::to_string(streams)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::unique_ptr<Peer> peer(new Peer);
  peer->runtime_ = runtime;
  int code = ::posix_spawnp(&peer->pid_, program.python.c_str(), &actions, nullptr,
                            arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  peer->to_ = ::fdopen(to[1], "w");
  peer->from_ = ::fdopen(from[0], "r");
  if (code != 0) {
    peer->pid_ = -1;
    return error(ErrorCode::kUnavailable, "--compare {}: cannot start {}", runtime, program.python);
  }
  json reply = TRY(peer->call({{"cmd", "load"}, {"shapes", shapes}}));
  peer->version_ = reply.value("version", "");
  return peer;
}

Peer::~Peer() {
  if (to_ != nullptr) std::fclose(to_);
  if (from_ != nullptr) std::fclose(from_);
  if (pid_ > 0) {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
}

Result<json> Peer::call(const json& command) {
  ::signal(SIGPIPE, SIG_IGN);
  std::string line = command.dump() + "\n";
  std::fputs(line.c_str(), to_);
  std::fflush(to_);
  char* text = nullptr;
  size_t capacity = 0;
  ssize_t length = ::getline(&text, &capacity, from_);
  json reply = length > 0 ? json::parse(text, nullptr, false) : json();
  std::free(text);
  if (!reply.is_object() || !reply.contains("ok"))
    return error(ErrorCode::kUnavailable, "{} gave no answer", runtime_);
  if (!reply["ok"].get<bool>())
    return error(ErrorCode::kUnavailable, "{}: {}", runtime_, reply.value("error", "?"));
  return reply;
}

Status Peer::set_inputs(const std::string& folder) {
  TRY(call({{"cmd", "inputs"}, {"dir", folder}}));
  return {};
}

Status Peer::save_outputs(const std::string& folder) {
  TRY(call({{"cmd", "outputs"}, {"dir", folder}}));
  return {};
}

Result<std::vector<double>> Peer::run(int warm_ups, int iterations) {
  json reply = TRY(call({{"cmd", "run"}, {"warmup", warm_ups}, {"iterations", iterations}}));
  std::vector<double> seconds;
  for (const json& ms : reply["samples_ms"]) seconds.push_back(ms.get<double>() * 1e-3);
  return seconds;
}

Result<double> Peer::call_seconds() {
  json reply = TRY(call({{"cmd", "call"}}));
  return reply["call_ms"].get<double>() * 1e-3;
}

Result<double> Peer::throughput(double seconds) {
  json reply = TRY(call({{"cmd", "throughput"}, {"seconds", seconds}}));
  const double elapsed = reply["seconds"].get<double>();
  if (!(elapsed > 0)) return internal_error("{} took no time", runtime_);
  return reply["inferences"].get<double>() / elapsed;
}

}  // namespace collage::tool
