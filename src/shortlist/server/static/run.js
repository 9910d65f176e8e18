/** The page of a run, updated live. */
import { show } from "./bind.js";
import { Following } from "./connection.js";
import { kept } from "./drafts.js";
import { name, nextFor } from "./forms.js";

const BETWEEN = 20_000; // milliseconds between announcements, except when the state changes

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const spoken = /** @type {HTMLElement} */ (document.getElementById("spoken"));
let said = { at: -BETWEEN, state: "" };

/** Announce the progress to screen readers: at intervals, and when the state changes.
 * @param {any} facts */
function speak(facts) {
  if (facts.state === said.state && performance.now() - said.at < BETWEEN) return;
  said = { at: performance.now(), state: facts.state };
  spoken.textContent = `${facts.label}. ${facts.headline}. ${facts.progress}.`;
}

/** @param {any} facts */
function take(facts) {
  show(main, { ...facts, next: nextFor(facts, kept("worker", "").trim()) });
  document.title = `${name(facts.run, 60)}: ${facts.headline}`;
  speak(facts);
}

new Following(main.dataset.path ?? "", take);
