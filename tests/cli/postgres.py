"""A PostgreSQL server of a test's own: in a folder that goes with it, reached by a socket in that folder alone, run by another user where
the test is root."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time

NOBODY = 65534


def tools():
    """Where Debian keeps the programs of the newest version that is installed; None: nowhere."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    return os.path.dirname(found[-1]) if found else None


def unprivileged():
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


class Server:
    def __init__(self, folder):
        self.folder, self.process = folder, None
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        subprocess.run([os.path.join(tools(), "initdb"), "-D", os.path.join(folder, "data"), "-U", "owner", "-A", "trust", "-E", "UTF8",
                        "--locale=C", "--no-sync"], cwd="/", check=True, stdout=subprocess.DEVNULL, **unprivileged())

    def address(self, user="owner", database="postgres"):
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def start(self, *settings, before=None):
        """`settings`: NAME=VALUE; `before`: what the command begins with, which changes the user by itself."""
        words = [*(before or ()), os.path.join(tools(), "postgres"), "-D", os.path.join(self.folder, "data"), "-k", self.folder]
        for setting in ("listen_addresses=", "fsync=off", "shared_buffers=16MB", *settings):
            words += ["-c", setting]
        self.process = subprocess.Popen(words, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        **({} if before else unprivileged()))
        deadline = time.monotonic() + 60
        while subprocess.run([os.path.join(tools(), "pg_isready"), "-q", "-h", self.folder], check=False).returncode != 0:
            assert time.monotonic() < deadline and self.process.poll() is None, "the server does not start"
            time.sleep(0.02)

    def crash(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def ask(self, statement, address=None):
        """What psql prints of it."""
        return subprocess.run([os.path.join(tools(), "psql"), "-XAtq", address or self.address(), "-c", statement], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()


@contextlib.contextmanager
def server():
    folder = tempfile.mkdtemp(prefix="collage_server_", dir="/tmp")
    running = None
    try:
        running = Server(folder)
        running.start()
        yield running
    finally:
        if running and running.process and running.process.poll() is None:
            running.crash()
        shutil.rmtree(folder, ignore_errors=True)
