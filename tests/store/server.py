"""A PostgreSQL server of one's own, in a temporary folder, reached by a socket there."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

USER = "shortlist"


def programs() -> Path | None:
    """Return the folder with the server's programs, the newest if there are several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


class Server:
    """A server with nothing in it; anybody on this machine may connect. Stop it when done."""

    def __init__(self, bin_folder: Path) -> None:
        self._bin = bin_folder
        self.folder = Path(tempfile.mkdtemp(prefix="sl-pg-"))
        if os.geteuid() == 0:  # the server refuses to be run by root
            shutil.chown(self.folder, "postgres", "postgres")
        try:
            self._run("initdb", "-A", "trust", "-U", USER, "-E", "UTF8", "--locale", "C", "--no-sync")
            self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @property
    def url(self) -> str:
        return f"postgresql://{USER}@/postgres?host={self.folder}"

    def start(self) -> None:
        settings = f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c max_connections=200"
        self._run("pg_ctl", "start", "-w", "-l", str(self.folder / "log"), "-o", settings)

    def halt(self) -> None:
        self._run("pg_ctl", "stop", "-w", "-m", "immediate")

    def stop(self) -> None:
        try:
            self.halt()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        as_user = [_runuser(), "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [*as_user, str(self._bin / program), "-D", str(self.folder / "data"), *arguments]
        done = subprocess.run(
            command, check=False, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stdout}\n{self._log()}"

    def _log(self) -> str:
        log = self.folder / "log"
        return log.read_text(errors="replace")[-2000:] if log.exists() else ""


def _runuser() -> str:
    """Return the program by which root becomes another user; it need not be on the path."""
    return shutil.which("runuser") or shutil.which("runuser", path="/usr/sbin:/sbin") or "runuser"
