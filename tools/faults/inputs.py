"""Faults at the doors: files, numbers and names that nobody should give, and passwords."""

from tools.faults.fault import Fault

_OPEN = "measure/open_programs.py"

FAULTS = (
    Fault(
        "open programs: any answer is taken for an open request",
        _OPEN,
        'answer["id"] not in unanswered:',
        'answer["id"] < 0:',
    ),
    Fault(
        "open programs: numbers of requests begin again with each call",
        _OPEN,
        "first, self._n_asked = self._n_asked, self._n_asked + len(requests)",
        "first, self._n_asked = 0, len(requests)",
    ),
    Fault(
        "open programs: answers are taken in the order of arrival",
        _OPEN,
        "return [found[one] for one in numbers]",
        "return list(found.values())",
    ),
    Fault(
        "open programs: one that failed is used again",
        _OPEN,
        "            program.kill()\n            program.close()\n            raise",
        "            self._free.append(program)\n            raise",
    ),
    Fault(
        "open programs: what a late program started lives on",
        _OPEN,
        "os.killpg(self.process.pid, signal.SIGKILL)",
        "self.process.kill()",
    ),
    Fault(
        "open programs: true counts as 1",
        _OPEN,
        'if not is_number(answer.get("score")):',
        'if not isinstance(answer.get("score"), int | float):',
    ),
    Fault(
        "open programs: a new one for every call",
        _OPEN,
        "program = self._free.pop() if self._free else None",
        "program = None",
    ),
    Fault(
        "input: a pipe that nobody writes to is waited for",
        "input_files.py",
        "elif time.monotonic() > deadline:",
        "elif time.monotonic() > deadline + 60:",
    ),
    Fault(
        "input: a pipe ends where its writer pauses",
        "input_files.py",
        "            has_writer = True\n            select.select([file], [], [])",
        "            break",
    ),
    Fault(
        "input: devices are read",
        "input_files.py",
        'if kind not in {"", "a pipe"}:',
        'if kind not in {"", "a pipe", "a device"}:',
    ),
    Fault(
        "input: a table is as large as its header says",
        "measure/table_file.py",
        "if count * dtype.itemsize > size:",
        "if count > 10**30:",
    ),
    Fault(
        "input: an archive may unpack to any size",
        "measure/table_file.py",
        "if size > max(_MOST_UNPACKED, _MOST_RATIO * len(data)):",
        "if size > 2**62:",
    ),
    Fault(
        "input: TOML has numbers of any size",
        "files/problem_file.py",
        "value.bit_length() > 1024",
        "value.bit_length() > 2**30",
    ),
    Fault(
        "input: a key of TOML has any number of parts",
        "files/problem_file.py",
        "if _LONG_KEY.search(text):",
        "if _LONG_KEY.search(text[:1]):",
    ),
    Fault(
        "input: a store whose name has a NUL is that of another name",
        "store/sqlite.py",
        'if "\\0" in str(path):',
        'if "\\0\\0" in str(path):',
    ),
    Fault(
        "input: a damaged name of a run is that of no run",
        "store/sql.py",
        "            _refuse_damaged_name(connection, run)\n",
        "",
    ),
    Fault(
        "input: workers may have names of any length",
        "session/worker_names.py",
        "if not is_name or len(str(worker)) > _MOST_LETTERS:",
        "if not is_name:",
    ),
    Fault(
        "input: workers may have names that control terminals",
        "session/worker_names.py",
        "worker.strip() and worker.isprintable()",
        "worker.strip()",
    ),
    Fault(
        "input: messages print numbers of any size",
        "checks.py",
        'return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."',
        "return text",
    ),
    Fault(
        "cli: output that nobody takes is a success",
        "cli/__init__.py",
        "        if end.code == 1:  # from rich: broken pipe\n            sys.exit(TROUBLE)",
        "        if end.code == 1:\n            sys.exit(0)",
    ),
    Fault(
        "cli: output is not flushed before it is called written",
        "cli/__init__.py",
        "sys.stdout.flush()",
        "pass",
    ),
    Fault(
        "secrets: an address without a scheme is shown whole",
        "store/address.py",
        'return _BARE_LOGIN.sub(r"\\1:***@", where)',
        "return where",
    ),
    Fault(
        "secrets: pairs of keys and values are shown whole",
        "store/address.py",
        'where = _PAIR.sub(r"\\1\\2***", where) if _DSN.match(where) else where',
        "where = where",
    ),
    Fault(
        "secrets: percent-encoded passwords are not known again",
        "store/address.py",
        "    parts |= {unquote(part) for part in parts}\n",
        "",
    ),
    Fault(
        "secrets: the report of a bug has passwords in it",
        "cli/__init__.py",
        'return masked(text, *sys.argv[1:], os.environ.get(VARIABLE, ""))',
        "return text",
    ),
    Fault(
        "secrets: addresses of databases are taken for paths",
        "store/address.py",
        "        _refuse_like_address(path)\n",
        "        pass\n",
    ),
    Fault(
        "secrets: the client repeats the address of a server",
        "client/transport.py",
        "the server is {shown(url)!r}",
        "the server is {url!r}",
    ),
    Fault(
        "doctor: arms are tried one after the other, so drift is not seen",
        "doctor/trials.py",
        "range(max(map(len, planned.values()))):\n        for arm, calls in planned.items():",
        "[0]:\n        for arm, place in ((arm, place) for arm in arms for place in range(8)):\n"
        "            calls = planned[arm]",
    ),
    Fault(
        "doctor: drift of single arms is not looked for",
        "doctor/assumptions.py",
        "    if of_all <= of_each.min():\n",
        "    if True:\n",
    ),
    Fault(
        "doctor: every arm gets all of the chance of a false alarm",
        "doctor/assumptions.py",
        "2 * 2 * len(scores) * ndtr(-np.abs(scores))",
        "2 * ndtr(-np.abs(scores))",
    ),
    Fault(
        "doctor: drift in a table is looked for where the order of rows does not matter",
        "doctor/assumptions.py",
        'source.order != "next"',
        "False",
    ),
    Fault(
        "doctor: skewness of rewards that need not be Gaussian",
        "doctor/assumptions.py",
        'if problem.knows_variances and problem.noise != "gaussian":',
        "if False:",
    ),
    Fault(
        "doctor: skewness is an error for strategies that do not need Gaussian rewards",
        "doctor/assumptions.py",
        'if promise is None or "sub-Gaussian" in promise.assumption:',
        "if promise is None:",
    ),
    Fault(
        "doctor: the least skewness is reported",
        "doctor/assumptions.py",
        " or abs(skewed) < _SKEWED",
        "",
    ),
    Fault(
        "doctor: correlated columns are an error although rows are drawn",
        "doctor/assumptions.py",
        'source.order == "draw"',
        "False",
    ),
    Fault(
        "doctor: rows are shuffled together, which keeps them correlated",
        "doctor/assumptions.py",
        "rng.permuted(some, axis=1)",
        "rng.permutation(some, axis=1)",
    ),
    Fault(
        "doctor: opposed arms cancel those that go together",
        "doctor/assumptions.py",
        "(rhos**2).sum(axis=-1)",
        "abs(rhos.sum(axis=-1))",
    ),
    Fault(
        "doctor: what may well be chance is an error",
        "doctor/assumptions.py",
        'return "error" if chance <= _ERROR else "note"',
        'return "error"',
    ),
    Fault(
        "doctor: drift is reported as dependence of arms too",
        "doctor/__init__.py",
        'return found if _has(drifting, "error") else found +',
        "return found +",
    ),
)
