/** Formats for data in pages. The server uses the same formats: see pages.py. */

const TURNING = /[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]/g;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffe\uffff]/g;

/** @param {number} value */
export const count = (value) => Math.round(value).toLocaleString("en-US");

/** A count; empty if it is zero. @param {number} value */
export const some = (value) => (value ? count(value) : "");

/** A share in percent: 12 %, 0.3 %, below 0.1 %. @param {number} share */
export function percent(share) {
  if (share > 0 && share < 0.001) return "below 0.1 %";
  return share >= 0.0995 || share === 0 ? `${(100 * share).toFixed(0)} %` : `${(100 * share).toFixed(1)} %`;
}

/** A local time, with the date unless it is today. @param {string} iso */
export function moment(iso) {
  const at = new Date(iso);
  const now = new Date();
  const isToday = at.toDateString() === now.toDateString();
  const second = isToday ? { second: /** @type {const} */ ("2-digit") } : {};
  const clock = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...second });
  if (isToday) return clock;
  const year = at.getFullYear() === now.getFullYear() ? {} : { year: /** @type {const} */ ("numeric") };
  return `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...year })}, ${clock}`;
}

/** A user-supplied name, with control characters replaced; a long name loses its middle.
 * @param {string} text @param {number} [most] */
export function name(text, most = 200) {
  const seen = text.replace(CONTROL, (sign) => ({ "\n": "\\n", "\r": "\\r", "\t": "\\t" })[sign] ?? "\ufffd");
  const plain = [...seen.replace(TURNING, "\ufffd")];
  if (plain.length <= most) return plain.join("");
  const end = Math.floor((most - 1) / 2);
  return `${plain.slice(0, most - 1 - end).join("")}…${plain.slice(plain.length - end).join("")}`;
}

/** @param {number} n @param {string} thing */
export const counted = (n, thing) => `${count(n)} ${thing}${n === 1 ? "" : "s"}`;

/** Text with its first letter capitalised. @param {string} words */
export const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** @type {Record<string, (value: any) => string>} */
export const forms = { text: String, count, some, percent, moment, name };

/** The next step of a run from the point of view of a worker: who holds tickets need not wait for them.
 * @param {any} facts @param {string} worker */
export function nextFor(facts, worker) {
  const held = facts.holders.find((/** @type {any} */ one) => one.worker === worker)?.n_tickets ?? 0;
  if (!held || facts.is_done || facts.suspended !== null) return facts.next;
  const others = facts.next.startsWith("measure: ") ? `; ${facts.next.slice("measure: ".length)}` : "";
  return `measure: you hold ${counted(held, "ticket")}${others}`;
}
