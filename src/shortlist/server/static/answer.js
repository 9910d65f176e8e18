/** The form for answers by hand: take tickets, enter results, send them. */
import { show } from "./bind.js";
import { Following, Refused, persist, talk } from "./connection.js";
import { offerWithdrawal } from "./correct.js";
import { keep, kept } from "./drafts.js";
import { counted, moment, name, nextFor, sentence } from "./forms.js";
import { whenSubmitted } from "./frame.js";
import { Card, SLIP } from "./ticket.js";

/** @param {string} id @returns {any} */
const get = (id) => document.getElementById(id);
const main = /** @type {HTMLElement} */ (get("main"));
const path = main.dataset.path ?? "";
const room = `tickets.${main.dataset.code}`; // local storage key for the tickets of this run
const MOST_TAKEN = 10; // tickets, unless a number is entered
const FEW_PULLS = 30; // of a ticket whose rewards are easily entered one by one
const LONGEST_REASON = 80; // in a summary
const EARLIER = /^(.*) (has the .*?), far .* withdraw ticket (\S+); if it is right, list the ticket/s; // a recorded answer is doubted
/** @type {Card[]} */
let cards = [];
let isLimited = false; // whether a number of tickets was entered
/** @type {Set<string>} */
const confirmed = new Set(); // tickets whose recorded answers were doubted, and are right
let earlier = ""; // the ticket of a recorded answer that is doubted: nothing is sent until that is settled
/** @type {any} */
let latest = null; // data of the run, as last shown
let doubtedTable = ""; // a table that the server doubted: sent again only if its box is ticked

function start() {
  get("worker").value = kept("worker", "");
  for (const radio of radios()) {
    radio.addEventListener("change", () => {
      keep("entered", radio.value);
      choose(radio.value);
    });
  }
  get("limit").addEventListener("input", () => {
    isLimited = true;
  });
  new ResizeObserver(clearBar).observe(get("bar"));
  get("worker").addEventListener("change", () => keep("worker", get("worker").value));
  get("release").addEventListener("click", doing(release));
  whenSubmitted(get("take"), doing(() => take()));
  whenSubmitted(get("answers"), doing(send));
  if (get("feed")) whenSubmitted(get("feed"), doing(feed));
  for (const key of ["sheet", "label"]) get(key)?.addEventListener("input", () => doubtTable(""));
  offerWithdrawal(get("earlier").querySelector(".correction"), {
    path,
    ticket: () => earlier,
    by: worker,
    say: (words) => tell("earlier-said", words, true),
    then: () => {
      doubtEarlier("");
      return take("The recorded answer was withdrawn. Enter the right one, and send all.");
    },
  });
  get("earlier-right").addEventListener("change", count);
  deal(kept(room, { tickets: [] }));
}

const worker = () => get("worker").value.trim();

/** Show that a recorded answer is doubted; with an empty message, no longer. @param {string} message */
function doubtEarlier(message) {
  const [, arm, what, ticket] = EARLIER.exec(message) ?? ["", "", "", ""];
  earlier = ticket;
  get("earlier").hidden = !ticket;
  get("earlier-right").checked = false;
  get("earlier").querySelector(".correction").hidden = !ticket;
  const reason = message.replace(/ If it is wrong: .*/s, "");
  tell("earlier-said", ticket && `${reason} This is the recorded answer: withdraw it, or tick the box.`, true);
  get("earlier-words").textContent = `${name(arm, 40)} ${what.split(",")[0]}: that is right`;
}

/** A recorded answer was withdrawn: its card takes another one. */
function reopened() {
  const left = cards.filter((card) => !card.isDone);
  keep(room, { ...kept(room, {}), tickets: left.map((card) => card.ticket) });
  choose(kept("entered") ?? usual());
}

/** Get the new state of the run after an answer was withdrawn here. @param {Card} card */
async function withdrawn(card) {
  reopened();
  update(await persist(() => talk(`${path}.json`)));
  focus(card);
}

/** Scroll what is focused to a place above the bar, not behind it. */
function clearBar() {
  document.documentElement.style.scrollPaddingBottom = `${get("bar").offsetHeight + 8}px`;
}

/** @param {Card | undefined} card */
function focus(card) {
  clearBar();
  card?.focus();
}

/** @returns {HTMLInputElement[]} */
const radios = () => [...document.querySelectorAll('input[name="kind"]')].map((one) => /** @type {any} */ (one));

/** A click handler that ignores other clicks until it is done. @param {() => Promise<void>} what */
function doing(what) {
  return async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (main.dataset.busy) return;
    main.dataset.busy = "1";
    try {
      await what();
    } catch (error) {
      tell("take-said", sentence(/** @type {Error} */ (error).message), true);
    } finally {
      delete main.dataset.busy;
    }
  };
}

/** @param {string} id @param {string} words @param {boolean} [isWrong] */
function tell(id, words, isWrong = false) {
  get(id).textContent = words;
  get(id).classList.toggle("error", isWrong);
}

/** @param {string} before what to say first */
async function take(before = "") {
  tell("take-said", "");
  const worker = get("worker").value.trim();
  const limit = isLimited ? get("limit").value.trim() : String(MOST_TAKEN);
  keep("worker", worker);
  const wish = { worker, limit: /^\d+$/.test(limit) ? Number(limit) : limit };
  const asked = await persist(() => talk(`${path}/ask`, wish));
  const names = new Set(asked.tickets.map((/** @type {any} */ one) => one.ticket));
  const filled = cards.filter((card) => !card.isDone && !card.isEmpty && !names.has(card.ticket.ticket));
  const { needs_variances } = asked;
  const fresh = asked.tickets.map((/** @type {any} */ one) => ({ ...one, needs_variances }));
  deal({ ...asked, tickets: [...filled.map((card) => card.ticket), ...fresh] });
  const said = `${before} ${words(asked)}`.trim();
  tell(asked.tickets.length ? "sent-said" : "take-said", said);
  if (asked.tickets.length) focus(cards[0]);
}

/** @param {any} asked */
function words(asked) {
  const n = asked.tickets.length;
  if (n) return `You have ${counted(n, "ticket")} of round ${asked.round}.`;
  if (asked.is_done) return "The run has ended; nothing is left to measure.";
  const others = asked.waiting_for.map(
    (/** @type {any} */ one) =>
      `${name(one.worker, 60)} (${counted(one.n_tickets, "ticket")} until ${moment(one.until)})`,
  );
  if (!others.length) return "No tickets are available now.";
  const own = worker();
  const alike = asked.waiting_for.find((/** @type {any} */ one) => one.worker.toLowerCase() === own.toLowerCase());
  const named = alike ? ` If you are ${name(alike.worker, 60)}, enter the name as it is written here.` : "";
  return `All open tickets are leased to other workers: ${others.slice(0, 5).join(", ")}. Try again later.${named}`;
}

async function release() {
  const worker = get("worker").value.trim();
  await persist(() => talk(`${path}/release`, { worker }));
  deal({ tickets: [] });
  const rest = "Your entries are kept in case you take the same tickets again.";
  tell("take-said", `Your tickets were given back. ${rest}`);
}

/** A card for a ticket. @param {any} ticket */
function made(ticket) {
  const card = new Card(ticket, () => count(), { path, by: worker, then: withdrawn });
  if (latest) card.follow(latest); // what was withdrawn before is no news
  return card;
}

/** Show tickets, and save them on the device. @param {any} asked */
function deal(asked) {
  const shown = new Map(cards.filter((card) => !card.isDone).map((card) => [card.ticket.ticket, card]));
  cards = asked.tickets.map((/** @type {any} */ ticket) => shown.get(ticket.ticket) ?? made(ticket));
  get("tickets").replaceChildren(...cards.map((card) => card.element));
  get("answers").hidden = !cards.length;
  const until = asked.until ? `Leased to you until ${moment(asked.until)}` : "";
  get("reserved").textContent = until && `${until}. Later answers are accepted, too.`;
  get("choice").hidden = cards.every((card) => card.ticket.items);
  const isPilot = cards.some((card) => card.ticket.needs_variances);
  get("kind-mean").textContent = isPilot ? "mean and variance" : "the mean";
  keep(room, cards.length ? asked : null);
  choose(kept("entered") ?? usual());
}

/** How answers are entered unless somebody chose: all rewards, if they are few and their variance is needed. */
function usual() {
  const isFew = cards.some((card) => card.ticket.needs_variances && card.ticket.pulls <= FEW_PULLS);
  return isFew ? "rewards" : "mean";
}

/** @param {string} kind */
function choose(kind) {
  for (const radio of radios()) radio.checked = radio.value === kind;
  for (const card of cards) card.choose(kind);
  count();
}

/** The tickets whose answers Send sends: doubted ones only if somebody says that they are right. */
const sendable = () => cards.filter((card) => !card.isDone && !card.isEmpty && !card.isHeld);

function count() {
  const ready = sendable().length;
  get("send").textContent = ready ? `Send ${counted(ready, "answer")}` : "Send";
}

async function send() {
  if (earlier && get("earlier-right").checked) confirmed.add(earlier);
  doubtEarlier("");
  const held = cards.filter((card) => card.isHeld);
  const ready = sendable();
  if (!ready.length) {
    tell("sent-said", holding(held) || "No answer has been entered yet.", true);
    return focus(held[0]);
  }
  tell("sent-said", "Sending …");
  for (const card of ready) card.sending();
  const sums = { taken: 0, known: 0, conflicting: 0 };
  for (const card of ready.filter((card) => card.unclear)) card.refuse(card.unclear);
  const clear = ready.filter((card) => !card.unclear);
  const wishes = clear.map((card) => ({ card, answer: card.answer, isSure: card.isSure })); // now, not when it is their turn
  const [sure, others] = [true, false].map((isSure) => wishes.filter((wish) => wish.isSure === isSure));
  const replies = [await record(others, true), await record(sure, false)].filter(Boolean);
  for (const told of replies) {
    for (const key of /** @type {const} */ (["taken", "known", "conflicting"])) sums[key] += told[key];
  }
  const unsent = earlier ? clear.filter((card) => !card.isDone && !card.why) : [];
  for (const card of unsent) card.say("", "");
  const wrong = ready.filter((card) => !card.isDone && !unsent.includes(card));
  const left = cards.filter((card) => !card.isDone);
  keep(room, left.length ? { ...kept(room, {}), tickets: left.map((card) => card.ticket) } : null);
  count();
  const isDone = replies.some((told) => told.is_done);
  const n_open = left.length - wrong.length - held.length;
  const said = [summary(sums, wrong, n_open, isDone), isDone ? "" : holding(held)].filter(Boolean).join(" ");
  if (unsent.length) return asking(unsent.length);
  tell("sent-said", said, wrong.length + held.length > 0);
  focus(wrong[0] ?? held[0]);
  if (!left.length && !isDone && !sums.conflicting) await take(said);
}

/** Say that answers were not sent, since a recorded one is doubted. @param {number} n */
function asking(n) {
  tell("sent-said", `${counted(n, "answer")} not sent: see above.`, true);
  clearBar();
  get("earlier").scrollIntoView({ block: "nearest" });
  get("earlier-right").focus({ preventScroll: true });
}

/** Send answers in one request, without those that are refused; return the response, or null if none was recorded.
 * @param {{card: Card, answer: any}[]} some @param {boolean} careful */
async function record(some, careful) {
  const worker = get("worker").value.trim() || "somebody";
  while (some.length) {
    const answers = some.map((wish) => wish.answer);
    try {
      const told = await persist(() => talk(`${path}/tell`, { worker, answers, careful, confirmed: [...confirmed] }));
      for (const { card } of some) card.finish(told);
      return told;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (EARLIER.test(error.message)) {
        doubtEarlier(error.message);
        return null;
      }
      const wrong = refused(some.map((wish) => wish.card), error.message);
      for (const { card, answer } of some) if (wrong.includes(card)) card.refuse(error.message, answer);
      some = some.filter((wish) => !wrong.includes(wish.card));
    }
  }
  return null;
}

/** The tickets that a refusal is about: the one that it names, or all. @param {Card[]} some @param {string} message */
function refused(some, message) {
  const place = Number(/^entry (\d+): /.exec(message)?.[1]) - 1;
  const named = some.filter((card, k) => k === place || message.startsWith(`${card.ticket.name}: `));
  return named.length ? named : some;
}

/** Ask whether a table that was doubted is right; with no table, no longer ask. @param {string} table */
function doubtTable(table) {
  doubtedTable = table;
  get("insist").checked = false;
  get("insist-choice").hidden = !table;
}

async function feed() {
  tell("fed-said", "Sending …");
  const worker = get("worker").value.trim() || "somebody";
  const table = { sheet: get("sheet").value, label: get("label").value.trim() };
  const isSure = get("insist").checked && JSON.stringify(table) === doubtedTable;
  const wish = { worker, ...table, insist: isSure, careful: true };
  try {
    const fed = await persist(() => talk(`${path}/feed`, wish));
    const { new: added, known, corrected } = fed.rows;
    const counts = `${counted(added, "row")} added, ${known} already known, ${corrected} corrected.`;
    tell("fed-said", [counts, ...fed.lines].join(" "));
    for (const key of ["sheet", "label"]) get(key).value = ""; // the next table is of another day
    doubtTable("");
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    doubtTable(SLIP.test(error.message) ? JSON.stringify(table) : "");
    tell("fed-said", sentence(error.message.replaceAll("`", "")), true);
  }
}

/** A summary of what happened to the answers.
 * @param {{taken: number, known: number, conflicting: number}} sums @param {Card[]} wrong the refused ones
 * @param {number} open @param {boolean} isDone */
function summary(sums, wrong, open, isDone) {
  const parts = [`${sums.taken} added`];
  if (sums.known) parts.push(`${sums.known} already recorded`);
  if (sums.conflicting) parts.push(`${sums.conflicting} in conflict`);
  if (open) parts.push(`${open} still open`);
  const said = `${parts.join(", ")}.${wrong.length ? ` ${refusal(wrong)}` : ""}`;
  if (isDone) return `${said} The run has ended.`;
  return sums.conflicting && !open && !wrong.length ? `${said} Take more tickets below.` : said;
}

/** Which doubted answers were not sent; empty if there are none. @param {Card[]} held */
function holding(held) {
  if (!held.length) return "";
  if (held.length > 1) return `${held.length} doubted answers were not sent: see their tickets.`;
  return `${name(held[0].ticket.name, 40)} was not sent: tick its box if it is right, or correct it.`;
}

/** Which answers were refused, and why the first was. @param {Card[]} wrong */
function refusal(wrong) {
  const [first, ...others] = wrong.map((card) => name(card.ticket.name, 40));
  const more = others.length > 1 ? ` and ${others.length} others` : others.length ? ` and ${others[0]}` : "";
  if (more) return `${first}${more} refused: see their tickets.`;
  const reason = wrong[0].withoutName(wrong[0].why);
  const start = /^.*?[.?!](?=\s|$)/.exec(reason)?.[0] ?? reason;
  return `${first} refused: ${start.length <= LONGEST_REASON ? start : "see its ticket."}`;
}

/** Show new data of the run, from the point of view of the worker here. @param {any} facts */
function update(facts) {
  latest = facts;
  const worker = get("worker")?.value.trim();
  show(main, { ...facts, next: nextFor(facts, worker) });
  if (!get("take")) return;
  if (!isLimited) get("limit").value = String(Math.max(1, Math.min(facts.n_open, MOST_TAKEN)));
  get("answers").classList.toggle("ended", facts.is_done);
  if (cards.filter((card) => card.follow(facts)).length) reopened();
  if (facts.is_done) keep(room, null);
}

new Following(path, update);
if (get("take")) start();
