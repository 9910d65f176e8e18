/** Requests to the server, and messages when it cannot be reached. */

import { sentence } from "./forms.js";

const PATIENCE = 15_000; // milliseconds to wait for an answer
const BEAT = 30_000; // milliseconds without an event after which a page polls
const SOON = 500;
const LATE = 3_000; // milliseconds before trying again, at first and at most

/** The server refused a request, with a reason. */
export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The server could not be reached. */
export class Lost extends Error {}

/** Send a POST request, or GET without a body; return the response.
 * @param {string} path @param {any} [body] @param {AbortSignal} [signal] @returns {Promise<any>} */
export async function talk(path, body, signal) {
  const limit = AbortSignal.timeout(body === undefined ? PATIENCE : 4 * PATIENCE);
  const until = signal ? AbortSignal.any([signal, limit]) : limit;
  /** @type {RequestInit} */
  const how = { signal: until, headers: { accept: "application/json" } };
  if (body !== undefined) {
    how.method = "POST";
    how.headers = { ...how.headers, "content-type": "application/json" };
    how.body = JSON.stringify(body);
  }
  let response, said;
  try {
    response = await fetch(path, how);
    said = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Lost();
  }
  const found = parsed(said);
  if (response.ok && found !== null) return found;
  if (found?.error?.message) throw new Refused(response.status, found.error.message);
  if (response.status >= 502) throw new Lost(); // from a proxy that cannot reach the server
  throw new Refused(response.status, `the server answered with status ${response.status}.`);
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Show a connection error at the top of the page; hide it if there is none.
 * @param {any} [error] */
export function notice(error) {
  const place = /** @type {HTMLElement} */ (document.getElementById("notice"));
  const isLost = error instanceof Lost;
  const words = isLost ? "Connection lost, trying again …" : error ? `${sentence(error.message)} ` : "";
  if (place.dataset.words === words) return;
  place.dataset.words = words;
  place.replaceChildren(words);
  if (error?.status === 401) place.append(loginLink());
  place.hidden = !words;
}

function loginLink() {
  const link = document.createElement("a");
  link.href = `/login?next=${encodeURIComponent(location.pathname)}`;
  link.textContent = "Log in";
  return link;
}

/** Retry until the server is reached.
 * @template T @param {() => Promise<T>} what @returns {Promise<T>} */
export async function persist(what) {
  for (let wait = SOON; ; wait = Math.min(2 * wait, LATE)) {
    try {
      const found = await what();
      notice();
      return found;
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      notice(error);
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}

/** Fetch data at regular intervals while the page is visible.
 * @param {() => string} path @param {(facts: any) => void} take @param {number} every milliseconds */
export function poll(path, take, every) {
  let wait = every;
  const look = async () => {
    try {
      if (!document.hidden) {
        take(await talk(path()));
        notice();
      }
      wait = every;
    } catch (error) {
      notice(error);
      wait = Math.min(every, LATE);
    }
    setTimeout(look, wait);
  };
  setTimeout(look, wait);
  document.addEventListener("visibilitychange", async () => {
    if (!document.hidden) await talk(path()).then(take, () => {});
  });
}

/**
 * Follow a run while the page is visible; reconnect whenever the connection breaks.
 *
 * A browser opens few connections to one server, and each page that follows a run uses one. So hidden pages
 * close theirs.
 */
export class Following {
  /** @param {string} path @param {(facts: any) => void} take */
  constructor(path, take) {
    this.path = path;
    this.take = take;
    /** @type {EventSource | null} */
    this.source = null;
    this.timer = 0;
    this.wait = SOON;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    window.addEventListener("pagehide", () => this.close());
    window.addEventListener("pageshow", () => this.open());
    setInterval(() => this.source && this.ask(), BEAT);
    this.open();
  }

  open() {
    if (this.source || document.hidden) return;
    clearTimeout(this.timer);
    const source = new EventSource(`${this.path}/events`);
    source.addEventListener("open", () => {
      this.wait = SOON;
      notice();
    });
    source.addEventListener("run", (event) => this.take(JSON.parse(event.data)));
    source.addEventListener("error", () => this.source === source && this.again());
    this.source = source;
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  async again() {
    this.close();
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(2 * this.wait, LATE);
    await this.ask(); // the stream does not say why it broke
  }

  async ask() {
    try {
      this.take(await talk(`${this.path}.json`));
      notice();
    } catch (error) {
      notice(error);
      if (error instanceof Lost && this.source) this.again();
    }
  }
}
