"""Faults in the server: protections that are taken away, one by one."""

from tools.faults.fault import Fault

FAULTS = (
    Fault(
        "form: late news of a withdrawal opens a card again",
        "server/static/ticket.js",
        "        this.withdrawals += 1; //",
        "        //",
    ),
    Fault(
        "form: a withdrawal before a ticket was taken opens its card again",
        "server/static/answer.js",
        "  if (latest) card.follow(latest);",
        "",
    ),
    Fault(
        "form: the next table has the label of the one before",
        "server/static/answer.js",
        'for (const key of ["sheet", "label"]) get(key).value',
        'for (const key of ["sheet"]) get(key).value',
    ),
    Fault(
        "form: a table replaces earlier rows without a question",
        "server/static/answer.js",
        "insist: isSure, careful: true }",
        "insist: isSure }",
    ),
    Fault(
        "form: a doubted answer is recorded by a Send that meant another",
        "server/static/ticket.js",
        ' && this.find(".right").checked;',
        ";",
    ),
    Fault(
        "form: an answer is edited, and the box for its doubt stays",
        "server/static/ticket.js",
        '      this.trust();\n      this.say("", "");\n      this.read();',
        '      this.say("", "");\n      this.read();',
    ),
    Fault(
        "form: what was typed while an answer was sent counts as doubted",
        "server/static/ticket.js",
        "if (isSame && SLIP",
        "if (SLIP",
    ),
    Fault(
        "form: a table is edited, and insisted on as if it had been doubted",
        "server/static/answer.js",
        '=> doubtTable(""));',
        "=> {});",
    ),
    Fault(
        "form: sent by the browser before its script listens",
        "server/templates/answer.html",
        '<button type="submit" disabled>Take tickets</button>',
        '<button type="submit">Take tickets</button>',
    ),
    Fault(
        "login: sent by the browser, with the token in the address",
        "server/templates/login.html",
        '<button type="submit" disabled>',
        '<button type="submit">',
    ),
    Fault(
        "serve: every host counts as this machine",
        "server/settings.py",
        'if host == "localhost":',
        "if True:",
    ),
    Fault(
        "tokens: compared letter by letter",
        "server/tokens.py",
        "hmac.compare_digest(given",
        "bytes.__eq__(given",
    ),
    Fault(
        "tokens: who may look may add",
        "server/tokens.py",
        "Right.WRITE if is_write else Right.READ if is_read",
        "Right.WRITE if is_write else Right.WRITE if is_read",
    ),
    Fault("tokens: a file that others can read", "server/tokens.py", "mode & 0o077", "mode & 0"),
    Fault(
        "known: wrong tokens are not counted",
        "server/authorization.py",
        "self.count_wrong_token(scope) if is_wrong else None",
        "None",
    ),
    Fault(
        "known: wrong tokens in the form are not counted",
        "server/pages.py",
        "request.state.count_wrong_token(request.scope)",
        "None",
    ),
    Fault(
        "known: the right token is refused after wrong ones",
        "server/authorization.py",
        "        if is_open or right >= (Right.WRITE if is_change else Right.READ):\n",
        "        if is_open or (right and self.wrong_tokens.take(client_of(scope))):\n",
    ),
    Fault(
        "known: a cookie that has ended counts as a guess",
        "server/authorization.py",
        "right is Right.NOTHING and bearer_of(headers) is not None",
        "right is Right.NOTHING",
    ),
    Fault(
        "few enough: guesses take the share of those with a token",
        "server/rate_limit.py",
        "f\"{client_of(scope)} {scope['state']['right']}\"",
        'f"{client_of(scope)}"',
    ),
    Fault(
        "sessions: a cookie outlives the logout",
        "server/pages.py",
        "request.state.sessions.end(request.state.cookie)",
        "pass",
    ),
    Fault(
        "sessions: a cookie lasts for ever",
        "server/tokens.py",
        "if ends.get(key, now) > now",
        "if key in ends",
    ),
    Fault(
        "sessions: those who look end the sessions of others",
        "server/tokens.py",
        "{right: OrderedDict() for right in Right}",
        "dict.fromkeys(Right, OrderedDict())",
    ),
    Fault(
        "sessions: there is no end to them", "server/tokens.py", "if len(ends) > _MOST_SESSIONS:", "if False:"
    ),
    Fault("cookies: all servers of a host share one", "server/settings.py", ":{self.port}", ""),
    Fault("cookies: sent without TLS, too", "server/pages.py", 'request.url.scheme == "https"', "False"),
    Fault(
        "proxies: everybody is believed",
        "server/proxies.py",
        "if not peer or not is_trusted(peer[0], proxies):",
        "if not peer:",
    ),
    Fault(
        "proxies: the client says who it is",
        "server/proxies.py",
        "        if not is_trusted(client, proxies):\n            break\n",
        "",
    ),
    Fault(
        "proxies: the first word on https counts",
        "server/proxies.py",
        '.rpartition(",")[2].strip()',
        '.partition(",")[0].strip()',
    ),
    Fault(
        "proxies: IPv4 within IPv6 is unknown", "server/proxies.py", "return mapped or found", "return found"
    ),
    Fault(
        "proxies: all clients of one share its connections",
        "server/connections.py",
        "if is_full and not is_trusted(address, self.proxies):",
        "if is_full:",
    ),
    Fault(
        "streams: a proxy may keep news back",
        "server/routes_read.py",
        '{"x-accel-buffering": "no"}',
        '{"x-accel-buffering": "yes"}',
    ),
    Fault(
        "head: is no GET", "server/middleware.py", '{**scope, "method": "GET", "state"', '{**scope, "state"'
    ),
    Fault(
        "head: news without end",
        "server/routes_read.py",
        'if getattr(request.state, "is_head", False):',
        "if False:",
    ),
    Fault(
        "known: the login leads anywhere",
        "server/authorization.py",
        '.startswith(("/", "\\\\"))',
        '.startswith("?")',
    ),
    Fault(
        "known: a useless cookie is kept",
        "server/authorization.py",
        'message["type"] == "http.response.start" and is_stale',
        "False",
    ),
    Fault(
        "known: only browsers are asked who they are",
        "server/authorization.py",
        "right >= (Right.WRITE if is_change else Right.READ)",
        "right >= (Right.WRITE if is_change else Right.NOTHING)",
    ),
    Fault(
        "read-only: changes are let through",
        "server/authorization.py",
        "is_change and self.settings.is_read_only",
        "False",
    ),
    Fault(
        "read-only: runs are opened to be added to",
        "server/run_cache.py",
        "None if is_read_only else Session.following",
        "None if False else Session.following",
    ),
    Fault(
        "hosts: any name will do", "server/middleware.py", "self.settings.is_own(host_of(given[0]))", "True"
    ),
    Fault(
        "hosts: one of two is enough", "server/middleware.py", "len(given) == 1 and", "len(given) >= 1 and"
    ),
    Fault("origins: none is looked at", "server/middleware.py", "_place(origin) != host", "False"),
    Fault(
        "origins: the port does not matter",
        "server/middleware.py",
        "_place(origin) != host",
        '_place(origin).partition(":")[0] != host.partition(":")[0]',
    ),
    Fault(
        "origins: fetch metadata is not looked at",
        "server/middleware.py",
        "site not in _OWN for",
        "False for",
    ),
    Fault("headers: no policy", "server/middleware.py", '    "content-security-policy": POLICY,\n', ""),
    Fault(
        "headers: scripts within pages",
        "server/middleware.py",
        "script-src 'self';",
        "script-src 'self' 'unsafe-inline';",
    ),
    Fault(
        "headers: types are guessed", "server/middleware.py", '    "x-content-type-options": "nosniff",\n', ""
    ),
    Fault(
        "headers: an error of a guard is not answered",
        "server/middleware.py",
        'if scope["type"] == "http" and not is_begun:',
        "if False:",
    ),
    Fault(
        "few enough: no limit",
        "server/rate_limit.py",
        "if self.allowance.take(",
        "if True or (",
    ),
    Fault(
        "allowance: all have one",
        "server/rate_limit.py",
        "return network_of(client[0]) if client",
        'return "" if client',
    ),
    Fault("allowance: every address of IPv6 has one", "server/rate_limit.py", ">> 64 << 64", ">> 0 << 0"),
    Fault(
        "whole: no limit by what is announced",
        "server/body_limit.py",
        "int(length) > most",
        "int(length) < 0",
    ),
    Fault("whole: no limit to what arrives", "server/body_limit.py", "if body.size > most:", "if False:"),
    Fault(
        "whole: strangers may send as much as all",
        "server/body_limit.py",
        'if scope["path"] == "/login" else',
        "if False else",
    ),
    Fault(
        "whole: all together may send anything",
        "server/body_limit.py",
        "self._n_held > self.limits.bodies",
        "False",
    ),
    Fault(
        "whole: what was held is held for ever", "server/body_limit.py", "self._n_held -= body.size", "pass"
    ),
    Fault(
        "whole: half a body is waited for",
        "server/body_limit.py",
        "receive), self.limits.patience)",
        "receive), 3600)",
    ),
    Fault(
        "whole: any form will do",
        "server/body_limit.py",
        ".strip().lower() not in BODIES",
        ".strip().lower() in ()",
    ),
    Fault("whole: bodies of those who look", "server/body_limit.py", "if method in SAFE:", "if False:"),
    Fault("json: keys twice", "server/strict_json.py", "if len(found) < len(pairs):", "if False:"),
    Fault(
        "json: NaN",
        "server/strict_json.py",
        "object_pairs_hook=_table, parse_constant=_refuse_constant",
        "object_pairs_hook=_table",
    ),
    Fault("json: towers of brackets", "server/strict_json.py", "    _refuse_depth(found)\n", ""),
    Fault(
        "json: halves of letters",
        "server/strict_json.py",
        "if any(suspect in lowered",
        "if False and any(suspect in lowered",
    ),
    Fault(
        "shapes: numbers without end",
        "server/requests.py",
        "list[Annotated[int, Field(ge=0, le=MOST)]]",
        "list[Annotated[int, Field(ge=0)]]",
    ),
    Fault(
        "shapes: not strict",
        "server/requests.py",
        'strict=True, extra="forbid"',
        'strict=False, extra="forbid"',
    ),
    Fault("shapes: anything more", "server/requests.py", 'extra="forbid"', 'extra="ignore"'),
    Fault("shapes: names that cannot be printed", "server/requests.py", "or not text.isprintable()", ""),
    Fault(
        "questions: a file of arms is read",
        "files/problem_file.py",
        '    if "arms" in entries:\n',
        "    if False:\n",
    ),
    Fault(
        "sheets: data-entry errors are never doubted",
        "server/routes_write.py",
        "read_sheet(data), worker, careful=careful)",
        "read_sheet(data), worker)",
    ),
    Fault(
        "phones: a code of an address that only this machine reaches",
        "server/pages.py",
        "    elif is_loopback(host):\n        return None\n",
        "",
    ),
    Fault(
        "phones: a code of a run that has ended",
        "server/pages.py",
        'if "path" not in facts or facts["is_done"]:',
        'if "path" not in facts:',
    ),
    Fault("sheets: any worker", "server/routes_write.py", "text and checked_name(text)", "text"),
    Fault(
        "trouble: says what went wrong in the server",
        "server/errors.py",
        "        return unforeseen()\n",
        '        return answer(500, "InternalError", repr(error))\n',
    ),
    Fault(
        "trouble: says where the store is",
        "server/errors.py",
        'said.replace(where, "The store") if where else said',
        "said",
    ),
    Fault("trouble: says who uses a database", "server/errors.py", '_CAUSE.sub("", ', "str("),
    Fault(
        "trouble: messages without end",
        "server/errors.py",
        "message if len(message) <= _MOST_SAID else",
        "message if True else",
    ),
    Fault("addresses: plain data of another run", "run_urls.py", r"|\.(?=[a-z]+$)", ""),
    Fault("addresses: a point alone", "run_urls.py", r"|^\.|", "|"),
    Fault("addresses: the sign of escapes", "run_urls.py", '"[~/]', '"[/]'),
    Fault(
        "cache: a removed run is still there", "server/run_cache.py", "if not self.is_there():", "if False:"
    ),
    Fault(
        "cache: a run begun anew is the old one",
        "server/run_cache.py",
        "found is not None and found.mark == last.mark",
        "found is not None",
    ),
    Fault(
        "cache: who looks waits for who adds",
        "server/run_cache.py",
        "acquire(timeout=_PATIENCE)",
        "acquire()",
    ),
    Fault(
        "connections: half a head is waited for",
        "server/connections.py",
        "now - self._asking_since > self.limits.patience",
        "False",
    ),
    Fault(
        "connections: the second head is waited for",
        "server/connections.py",
        "elif self._asking_since is None:",
        "elif False:",
    ),
    Fault(
        "connections: who does not read is waited for",
        "server/connections.py",
        "        elif is_late:\n",
        "        elif False:\n",
    ),
    Fault(
        "connections: who reads slowly is cut off",
        "server/connections.py",
        "left <= before - _SLOWEST",
        "left <= -1 - _SLOWEST",
    ),
    Fault(
        "connections: who gets more than before is cut off",
        "server/connections.py",
        "left > before or ",
        "",
    ),
    Fault(
        "connections: an answer is lost in what is sent",
        "server/connections.py",
        "not in (h11.SEND_BODY, h11.ERROR)",
        "not in ()",
    ),
    Fault(
        "connections: no limit for an address",
        "server/connections.py",
        "> self.limits.connections\n",
        "> 10**9\n",
    ),
    Fault(
        "connections: what is no HTTP in other words",
        "server/connections.py",
        "def send_400_response(",
        "def send_no_400_response(",
    ),
    Fault(
        "streams: no limit",
        "server/routes_read.py",
        "context.n_streams >= context.settings.limits.streams",
        "False",
    ),
    Fault("streams: not counted out", "server/routes_read.py", "self._house.n_streams -= 1", "pass"),
    Fault(
        "streams: go on when the server ends", "server/serving.py", "        self.context.closing.set()\n", ""
    ),
    Fault(
        "watching: trouble is not told",
        "server/watching.py",
        "self._end(type(error).__name__, str(error))",
        "pass",
    ),
    Fault(
        "watching: a fault is not told",
        "server/watching.py",
        'self._end("InternalError", "internal server error.")',
        "pass",
    ),
    Fault("cache: large runs stay open", "server/run_cache.py", "or n_tickets > _MOST_TICKETS", ""),
    Fault(
        "cache: the run that was used last is closed",
        "server/run_cache.py",
        "_, closed = self._open.popitem(last=False)",
        "_, closed = self._open.popitem(last=True)",
    ),
    Fault(
        "cache: rounds take no memory",
        "server/run_cache.py",
        "self.size += sum(len(round.tickets) + _A_ROUND for round in new)",
        "pass",
    ),
    Fault(
        "summaries: read every time",
        "server/run_cache.py",
        "if known is None or not known.holds(self.store, name):",
        "if True:",
    ),
    Fault(
        "summaries: hold for ever",
        "server/run_cache.py",
        "if known is None or not known.holds(self.store, name):",
        "if known is None:",
    ),
    Fault("summaries: leases do not end", "server/run_cache.py", "or time.monotonic() >= self._until", ""),
    Fault(
        "summaries: the last lease that ends counts",
        "server/run_cache.py",
        "(ends[ends > now] - now).min(initial=np.inf)",
        "max(ends[ends > now] - now, default=np.inf)",
    ),
    Fault(
        "summaries: leases that end while a run is looked at are overlooked",
        "server/run_cache.py",
        "        ends = round.leases.until(",
        "        self.shown = view(log)\n        now = log.now()\n"
        "        view = lambda _: self.shown\n        ends = round.leases.until(",
    ),
    Fault(
        "summaries: workers are never gone", "server/run_cache.py", " or any(map(is_gone, self._holders))", ""
    ),
    Fault("summaries: a removed run is still there", "server/run_cache.py", "== [mark]", "in ([], [mark])"),
    Fault(
        "summaries: kept without end",
        "server/run_cache.py",
        "if len(self._summaries) > _MOST_SUMMARIES:",
        "if False:",
    ),
    Fault(
        "cache: closed runs stay in memory",
        "server/run_cache.py",
        "partial(_passed_on, weakref.ref(self))",
        "self._count",
    ),
    Fault(
        "requests: all others wait while a large one is parsed",
        "server/strict_json.py",
        "return parsed(body) if len(body) < _LARGE else await asyncio.to_thread(parsed, body)",
        "return parsed(body)",
    ),
    Fault(
        "watching: a stream goes on after the logout",
        "server/watching.py",
        "while not closing.is_set() and may_watch():",
        "while not closing.is_set():",
    ),
    Fault(
        "watching: streams end for clients that send a token",
        "server/authorization.py",
        "is_by_cookie = self.settings.tokens is not None and bearer_of(headers) is None",
        "is_by_cookie = self.settings.tokens is not None",
    ),
)
