/** A ticket as a card: the request, the input fields, and the outcome. */
import { offerWithdrawal } from "./correct.js";
import { keep, kept } from "./drafts.js";
import { counted, name, sentence } from "./forms.js";
import { isUnclear, number, rewards, thousands } from "./parse.js";

const FIELDS = ["mean", "variance", "rewards"];
export const SLIP = /data-entry error/;
const CONFLICT = / To correct it, withdraw ticket \S+, then send this again\./;
const FAR = /^the (mean|reward) (\S+) /; // what is doubted, after the name of the arm

/** @typedef {{ticket: string, name: string, pulls: number, needs_variances: boolean, items?: string[], seeds?: number[]}} Ticket */

export class Card {
  /** @param {Ticket} ticket @param {() => void} onInput
   * @param {{path: string, by: () => string, then: (card: Card) => any}} withdrawal */
  constructor(ticket, onInput, withdrawal) {
    const pattern = /** @type {HTMLTemplateElement} */ (document.getElementById("ticket"));
    this.element = /** @type {HTMLElement} */ (pattern.content.firstElementChild?.cloneNode(true));
    this.ticket = ticket;
    this.kind = "mean";
    this.isDone = false;
    this.why = ""; // why the answer was refused
    this.doubted = ""; // an answer that the server doubted: sent again only if its box is ticked
    this.find(".arm").textContent = name(ticket.name);
    const unit = ticket.seeds ? "block" : ticket.items ? "item" : "pull";
    this.find(".wanted").textContent = `${counted(ticket.pulls, unit)} wanted`;
    this.find(".code").textContent = ticket.ticket;
    this.find(".with-variance").hidden = !ticket.needs_variances;
    this.find(".result").id = `${ticket.ticket}-result`;
    const draft = kept(this.room, {});
    for (const key of FIELDS) this.prepare(key, draft[key] ?? "", onInput);
    this.find(".right").id = `${ticket.ticket}-right`;
    this.find(".right").setAttribute("aria-describedby", `${ticket.ticket}-result`);
    this.find(".right").addEventListener("change", onInput);
    this.withdrawals = 0; // that are known here
    offerWithdrawal(this.find(".correction"), {
      ...withdrawal,
      ticket: () => ticket.ticket,
      say: (words) => this.say(words, "error"),
      then: () => {
        this.withdrawals += 1; // news of it may come after the next answer was sent
        this.reopen("The recorded answer was withdrawn. Enter the right one, and send it.");
        return withdrawal.then(this);
      },
    });
    this.find(".correct").addEventListener("click", () => this.correct());
    this.read();
  }

  /** @param {string} selector @returns {any} */
  find(selector) {
    return this.element.querySelector(selector);
  }

  /** The round of the ticket. */
  get round() {
    return Number(/-r(\d+)-a/.exec(this.ticket.ticket)?.[1]);
  }

  get room() {
    return `draft.${this.ticket.ticket}`;
  }

  /** @param {string} key @param {string} value @param {() => void} onInput */
  prepare(key, value, onInput) {
    const field = this.find(`.${key}`);
    field.id = `${this.ticket.ticket}-${key}`;
    field.value = value;
    field.setAttribute("aria-describedby", `${this.ticket.ticket}-result`);
    this.find(`.${key}-label`).htmlFor = field.id;
    field.addEventListener("input", () => {
      keep(this.room, Object.fromEntries(FIELDS.map((one) => [one, this.find(`.${one}`).value])));
      this.trust();
      this.say("", "");
      this.read();
      this.grow();
      onInput();
    });
  }

  /** Switch between input of the mean and of all rewards. @param {string} kind */
  choose(kind) {
    const { items, seeds } = this.ticket;
    kind = items ? "rewards" : kind; // every item has a score of its own
    if (this.doubted && kind !== this.kind) {
      this.trust();
      this.say("", "");
    }
    this.kind = kind;
    this.find(".means").hidden = kind !== "mean";
    this.find(".all").hidden = kind !== "rewards";
    const { pulls } = this.ticket;
    const wanted = pulls === 1 ? "The reward" : pulls === 2 ? "Both rewards" : `All ${counted(pulls, "reward")}`;
    const each = seeds ? items?.map((block, place) => `${block} (seed ${seeds[place]})`) : items;
    this.find(".rewards-label").textContent = each
      ? `The ${seeds ? "reward in each block" : "score on each item"}, in this order: ${each.join(", ")}`
      : wanted + (pulls > 1 ? ", one per line or separated by spaces" : "");
    this.read();
    this.grow();
  }

  /** Make the field for all rewards as high as its content. */
  grow() {
    const field = this.find(".rewards");
    field.style.height = "auto";
    if (field.scrollHeight) field.style.height = `${field.scrollHeight + field.offsetHeight - field.clientHeight}px`;
  }

  get isEmpty() {
    const used = this.kind === "rewards" ? ["rewards"] : ["mean", "variance"];
    return used.every((key) => !this.find(`.${key}`).value.trim());
  }

  /** Show how ambiguous input is parsed. */
  read() {
    const place = this.find(".read");
    place.textContent = "";
    if (this.isEmpty || this.isDone) return;
    if (this.kind === "rewards") {
      const { values, unclear } = this.typed;
      const mean = values.reduce((/** @type {number} */ sum, one) => sum + Number(one), 0) / values.length;
      const share = `${values.length} of ${counted(this.ticket.pulls, "reward")}`;
      place.textContent = unclear || `${share}; their mean is ${rounded(mean)}`;
    } else {
      const readings = ["mean", "variance"].map((key) => reading(key, this.find(`.${key}`).value));
      place.textContent = readings.filter(Boolean).join(" ");
    }
  }

  get typed() {
    return rewards(this.find(".rewards").value, this.ticket.pulls);
  }

  /** Why the answer cannot be sent: it can be read in two ways. */
  get unclear() {
    if (this.kind === "rewards") return this.typed.unclear;
    const fields = this.ticket.needs_variances ? ["mean", "variance"] : ["mean"];
    const text = fields.map((key) => this.find(`.${key}`).value.trim()).find(isUnclear);
    return text ? `${text} is ambiguous: ${thousands(text)}` : "";
  }

  /** The answer to send. */
  get answer() {
    const { ticket } = this.ticket;
    if (this.kind === "rewards") return { ticket, rewards: this.typed.values };
    const told = { ticket, mean: number(this.find(".mean").value) };
    return this.ticket.needs_variances ? { ...told, variance: number(this.find(".variance").value) } : told;
  }

  /** Whether the answer was doubted, and somebody says that it is right as it was sent. */
  get isSure() {
    return this.doubted !== "" && JSON.stringify(this.answer) === this.doubted && this.find(".right").checked;
  }

  /** Whether the answer was doubted, and nobody says that it is right: it is not sent. */
  get isHeld() {
    return !this.isDone && this.doubted !== "" && !this.isSure;
  }

  /** Forget that the answer was doubted: it is another one now. */
  trust() {
    this.doubted = "";
    this.find(".right").checked = false;
    this.find(".insist").hidden = true;
  }

  /** Ask whether an answer that was doubted is right. @param {string} sent the answer @param {string} why */
  doubt(sent, why) {
    this.doubted = sent;
    const [, what, value] = FAR.exec(this.withoutName(why)) ?? [];
    this.find(".insist-words").textContent = what ? `The ${what} ${value} is right` : "The answer is right";
    this.find(".insist").hidden = false;
  }

  /** A message without the name of the arm. @param {string} why */
  withoutName(why) {
    return why.startsWith(`${this.ticket.name}: `) ? why.slice(this.ticket.name.length + 2) : why;
  }

  /** What the server said about another answer that was recorded. @param {string} words */
  conflict(words) {
    return words.replace(CONFLICT, "").trim().replace(`${this.ticket.name} has `, "The recorded answer is ");
  }

  /** Show that the answer is on its way. */
  sending() {
    this.why = "";
    this.say("Sending …", "");
  }

  /** Show why an answer was refused. @param {string} message @param {any} [sent] */
  refuse(message, sent = this.answer) {
    this.trust();
    const isSame = JSON.stringify(this.answer) === JSON.stringify(sent); // not edited while it was sent
    const advice = isSame ? " If it is right, tick the box and send it again." : "";
    const words = message.replace(/^entry \d+: /, "").replace(/ Nothing was added\.$/, "");
    const isConflict = CONFLICT.test(words);
    this.why = isConflict ? this.conflict(words) : words.replace(/ If it is right, send it without `careful`\./, advice).replaceAll("`", "");
    if (isSame && SLIP.test(message)) this.doubt(JSON.stringify(sent), this.why);
    this.say(this.why, "error");
    this.find(".correction").hidden = !isConflict;
    if (this.unclear) this.find(".read").textContent = ""; // it says the same
  }

  /** Show that the answer was recorded. @param {any} told */
  finish(told) {
    this.trust();
    this.isDone = true;
    const other = told.conflicts.find((/** @type {any} */ one) => one.ticket === this.ticket.ticket);
    const words = other && `${other.kept} was recorded first and is kept; your ${other.refused} is recorded as a conflict.`;
    if (other) this.say(`Conflict: ${words}`, "error");
    else this.say(told.taken ? "✓ Recorded." : "✓ Already recorded with the same value.", "good");
    keep(this.room, null);
    this.element.classList.add("done");
    for (const key of FIELDS) this.find(`.${key}`).readOnly = true;
    this.find(".read").textContent = "";
    this.find(".correction").hidden = true;
    this.find(".correct").hidden = told.is_done || told.round !== this.round;
  }

  /** Ask why a recorded answer is wrong. */
  correct() {
    this.find(".correct").hidden = true;
    this.find(".correction").hidden = false;
    this.find(".why").focus();
  }

  /** Take an answer again after the recorded one was withdrawn. @param {string} words */
  reopen(words) {
    this.isDone = false;
    this.element.classList.remove("done");
    for (const key of FIELDS) this.find(`.${key}`).readOnly = false;
    for (const part of [".correct", ".correction"]) this.find(part).hidden = true;
    this.say(words, "");
    this.read();
  }

  /** Follow the run: a recorded answer may be withdrawn elsewhere, and cannot be once its round is decided.
   * Return whether the card takes an answer again. @param {any} facts */
  follow(facts) {
    const own = facts.withdrawn.filter((/** @type {any} */ one) => one.ticket === this.ticket.ticket);
    const isBack = this.isDone && own.length > this.withdrawals;
    this.withdrawals = Math.max(this.withdrawals, own.length);
    if (isBack) this.reopen(`The recorded answer was withdrawn: ${own.at(-1).why} Enter it again.`);
    if (facts.is_done || facts.round !== this.round) {
      for (const part of [".correct", ".correction"]) this.find(part).hidden = true;
    }
    return isBack;
  }

  /** @param {string} words @param {string} kind */
  say(words, kind) {
    const place = this.find(".result");
    place.textContent = sentence(words);
    place.className = `result ${kind}`;
    const isWrong = String(kind === "error" && !this.isDone);
    for (const key of FIELDS) this.find(`.${key}`).setAttribute("aria-invalid", isWrong);
  }

  /** Go to the field, with the whole ticket in view or, if it is too high, its message. */
  focus() {
    this.find(this.kind === "rewards" ? ".rewards" : ".mean").focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "nearest" });
    const place = this.find(".result");
    if (place.textContent) place.scrollIntoView({ block: "nearest" });
    if (this.doubted) this.find(".insist").scrollIntoView({ block: "nearest" });
  }
}

/** @param {string} key @param {string} text */
function reading(key, text) {
  if (isUnclear(text)) return `${text} is ambiguous: ${thousands(text)}`;
  const isRead = text.includes(",") && typeof number(text) === "number";
  return isRead ? `The ${key} is read as ${number(text)}.` : "";
}

/** @param {number} value */
function rounded(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(6))) : "undefined: not all of them are numbers";
}
