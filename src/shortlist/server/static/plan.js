/** The plan calculator, which can also start a run. */
import { Lost, notice, talk } from "./connection.js";
import { count, counted, sentence } from "./forms.js";
import { whenSubmitted } from "./frame.js";
import { arms, bounds, number } from "./parse.js";

const PAUSE = 250; // milliseconds after the last key before a request is sent
const LONGEST_LINK = 4000; // maximum number of characters of the arms in a URL
const FIELDS = ["m", "epsilon", "delta", "goal", "noise", "guarantee", "bounds", "arms"];
const NUMBERS = ["m", "epsilon", "delta"];
const WITHOUT_VARIANCES = ["gaussian-unknown", "bernoulli", "bounded"];
const LONGEST_BAR = 2.5; // multiple of the best; longer bars are cut off

/** @param {string} id @returns {any} */
const get = (id) => document.getElementById(id);
let timer = 0;
/** @type {AbortController | null} */
let asking = null;

/** Fill in the form from the URL. */
function fill() {
  const given = new URLSearchParams(location.search);
  const listed = given.get("variances")?.split(",").join("\n");
  if (listed && !given.has("arms")) given.set("arms", listed);
  for (const key of FIELDS) if (given.has(key)) set(get(key), given.get(key) ?? "");
  if (get("name")) get("name").value = given.get("name") ?? "";
}

/** @param {any} field @param {string} value */
function set(field, value) {
  const isOffered = field.tagName !== "SELECT" || [...field.options].some((option) => option.value === value);
  if (isOffered) field.value = value;
}

/** @param {number} pause */
function later(pause) {
  clearTimeout(timer);
  get("plan").setAttribute("aria-busy", "true");
  timer = setTimeout(plan, pause);
}

/** The question in the form. */
function question() {
  /** @type {Record<string, any>} */
  const asked = Object.fromEntries(NUMBERS.map((key) => [key, number(get(key).value)]));
  for (const key of ["goal", "noise", "guarantee"]) asked[key] = get(key).value;
  const declared = bounds(get("bounds").value);
  if (asked.noise === "bernoulli") delete declared.rewards; // it is the same
  return { ...asked, ...declared, ...arms(get("arms").value, WITHOUT_VARIANCES.includes(asked.noise)) };
}

async function plan() {
  asking?.abort();
  const own = (asking = new AbortController());
  try {
    get("arms-read").textContent = ""; // until they have been parsed
    const asked = question();
    get("arms-read").textContent = read(asked);
    link();
    draw(await talk("/plan", asked, own.signal));
    notice();
    get("plan-error").textContent = "";
    get("plan-found").classList.remove("stale");
  } catch (error) {
    if (own.signal.aborted) return;
    fail(/** @type {Error} */ (error));
  }
  get("plan").setAttribute("aria-busy", "false");
}

/** @param {Error} error */
function fail(error) {
  get("plan-found").classList.add("stale");
  if (error instanceof Lost) {
    notice(error);
    later(2000);
  } else {
    get("plan-error").textContent = sentence(error.message);
  }
}

/** A summary of the arms. @param {Record<string, any>} asked */
function read(asked) {
  if (asked.n) return counted(asked.n, "arm");
  const values = asked.variances ?? asked.scales;
  if (!values) return `${counted(asked.names.length, "arm")}, by name`;
  const sizes = values.filter((/** @type {any} */ one) => typeof one === "number");
  const what = asked.scales ? "scales" : "variances";
  if (!sizes.length) return counted(values.length, "arm");
  const [low, high] = [least(sizes), -least(sizes.map((/** @type {number} */ one) => -one))];
  const spread = low === high ? `all with ${what.slice(0, -1)} ${low}` : `${what} from ${low} to ${high}`;
  return `${counted(values.length, "arm")}, ${spread}`;
}

/** @param {number[]} values */
const least = (values) => values.reduce((a, b) => (b < a ? b : a));

/** Put the question into the URL, so that it can be shared. */
function link() {
  const said = new URLSearchParams(FIELDS.map((key) => [key, get(key).value]));
  if (get("arms").value.length > LONGEST_LINK) said.delete("arms");
  history.replaceState(null, "", `${location.pathname}?${said}`);
}

/** @param {any} found */
function draw(found) {
  get("plan-found").hidden = false;
  get("plan-why").textContent = found.why;
  const bound = found.lower_bound?.pulls ?? 0;
  const floor = bound > 0 ? `; any algorithm needs at least ${written(bound)} on average in its worst case` : "";
  get("plan-bound").textContent = found.lower_bound ? floor : "; no lower bound is proved for rewards of this kind";
  const good = found.strategies.filter((/** @type {any} */ row) => row.is_certified);
  const others = found.strategies.filter((/** @type {any} */ row) => !row.is_certified);
  const isUnknown = good.length > 0 && good.every((/** @type {any} */ row) => row.worst_case_pulls === null);
  const isOther = (/** @type {any} */ row) => row.strategy !== found.best;
  get("plan-unknown").hidden = !isUnknown;
  get("plan-table").hidden = isUnknown;
  get("plan-more").hidden = !isUnknown || good.length < 2;
  get("plan-more-rows").replaceChildren(...(isUnknown ? good : []).filter(isOther).map(other));
  const caps = good.map((/** @type {any} */ row) => row.worst_case_pulls ?? 0);
  const longest = Math.min(Math.max(...caps), LONGEST_BAR * (caps[0] ?? 1));
  const rows = good.map((/** @type {any} */ row) => line(row, found.best, bound, longest));
  get("plan-rows").replaceChildren(...(isUnknown ? [] : rows));
  get("plan-notes").replaceChildren(...others.map(note));
  get("plan-others").hidden = !others.length;
  offer(found.strategies);
}

/** @param {number} pulls */
const written = (pulls) => (pulls >= 100 ? count(pulls) : pulls.toPrecision(3));

/** @param {any} row @param {string} best @param {number} bound @param {number} longest */
function line(row, best, bound, longest) {
  const made = document.createElement("tr");
  const first = document.createElement("th");
  first.scope = "row";
  first.append(row.strategy);
  if (row.strategy === best) {
    made.className = "best";
    const mark = document.createElement("small");
    mark.textContent = "best here";
    first.append(" ", mark);
  }
  const gap = row.gap === null ? "" : `${row.gap.toFixed(row.gap < 10 ? 2 : 1)}`;
  const rounds = row.rounds === null ? "no limit" : count(row.rounds);
  const pulls = row.worst_case_pulls === null ? "unknown before the pilot" : count(row.worst_case_pulls);
  made.append(first, bar(row.worst_case_pulls, bound, longest), ...[pulls, rounds, gap].map(cell));
  return made;
}

/** @param {string} words */
function cell(words) {
  const made = document.createElement("td");
  made.textContent = words;
  return made;
}

/** @param {number | null} pulls @param {number} bound @param {number} longest */
function bar(pulls, bound, longest) {
  const made = document.createElement("td");
  made.className = "bar-cell";
  if (!pulls || !longest) return made;
  const track = document.createElement("span");
  track.className = "track clear";
  const filled = document.createElement("span");
  filled.className = pulls > longest ? "made over" : "made";
  filled.style.width = `${Math.min(100, (100 * pulls) / longest)}%`;
  track.append(filled);
  if (bound > 0) {
    const floor = document.createElement("span");
    floor.className = "floor";
    floor.style.left = `${Math.min(100, (100 * bound) / longest)}%`;
    track.append(floor);
  }
  made.append(track);
  return made;
}

/** A strategy whose maximum number of pulls is unknown. @param {any} row */
function other(row) {
  const made = document.createElement("li");
  made.textContent = row.strategy + (row.rounds === null ? "" : `, in ${counted(row.rounds, "round")} at most`);
  return made;
}

/** @param {any} row */
function note(row) {
  const made = document.createElement("li");
  const name = document.createElement("b");
  name.textContent = row.strategy;
  made.append(name, `: ${row.note}`);
  return made;
}

/** List the strategies of a plan in the menu. @param {any[]} rows */
function offer(rows) {
  const select = get("strategy");
  if (!select) return;
  const before = select.value;
  const names = ["auto", ...rows.map((row) => row.strategy)];
  select.replaceChildren(...names.map((name) => new Option(name, name, false, name === before)));
}

/** @param {SubmitEvent} event */
async function begin(event) {
  event.preventDefault();
  const error = get("begin-error");
  error.textContent = "";
  try {
    const wish = { name: get("name").value, strategy: get("strategy").value, question: question() };
    const begun = await talk("/runs", wish);
    location.assign(begun.path);
  } catch (trouble) {
    const said = /** @type {Error} */ (trouble).message;
    error.textContent = sentence(said || "the server cannot be reached. Try again.");
    get("name").focus();
  }
}

fill();
get("question").addEventListener("input", () => later(PAUSE));
get("question").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
if (get("begin")) whenSubmitted(get("begin"), begin);
plan();
