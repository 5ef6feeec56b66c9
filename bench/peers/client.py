"""The parent's side of peer.py: starts it, sends commands, raises PeerError where it refuses or dies."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class PeerError(Exception):
    pass


class Peer:
    def __init__(self, runtime, model, threads, precision="f32", streams=0):
        self.runtime = runtime
        command = [sys.executable, os.path.join(HERE, "peer.py"), "--runtime", runtime, "--model", model,
                   "--threads", str(threads), "--precision", precision, "--streams", str(streams)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def call(self, command, **fields):
        try:
            self._process.stdin.write(json.dumps({"cmd": command, **fields}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise PeerError(f"{self.runtime} ended with status {self._process.wait()}")
        reply = json.loads(line)
        if not reply["ok"]:
            raise PeerError(f"{self.runtime}: {reply['error']}")
        return reply

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
