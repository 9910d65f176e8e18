/** Parses numbers and arms. Invalid numbers are passed on as text, so that the library reports them. */

import { count } from "./forms.js";

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;
const WITH_COMMA = /^[+-]?\d+,\d+$/;
const TWO_WAYS = /^[+-]?[1-9]\d{0,2},\d{3}$/; // 1,234 may mean 1.234 or 1234
const WHOLE_NUMBERS = /^[+-]?\d+(,\d+)+$/;
const LARGE = /^[+-]?\d{1,3}((,\d{3})+\.\d*|(\.\d{3})+,\d+)$/; // 1,234.5 or 1.234,5
const MOST_SHOWN = 6; // rewards of each reading, in a message
const MOST_ARMS = 1_000_000;

/** A number, the text itself if it is not a number, or undefined if it is empty. A decimal comma is accepted,
 * since many phones offer no point, unless it could also be a thousands separator.
 * @param {string} text @returns {number | string | undefined} */
export function number(text) {
  const cell = text.trim().replace("−", "-");
  if (!cell) return undefined;
  if (NUMBER.test(cell)) return Number(cell);
  return WITH_COMMA.test(cell) && !TWO_WAYS.test(cell) ? Number(cell.replace(",", ".")) : cell;
}

/** Whether a number is ambiguous. @param {string} text */
export const isUnclear = (text) => TWO_WAYS.test(text.trim());

/** All rewards of a ticket, separated by white space, semicolons, or commas followed by white space. A comma between
 * digits is a decimal comma. Without any white space, commas separate numbers that have decimal points. What can be
 * read in two ways is described by `unclear`. The rule for sheets is the same: see typed_numbers.py.
 * @param {string} text @param {number} wanted @returns {{values: (number | string)[], unclear: string}} */
export function rewards(text, wanted) {
  const split = text.replaceAll("−", "-").split(/[\s;]+/);
  const tokens = split.map((token) => token.replace(/,+$/, "")).filter(Boolean);
  const hasLists = tokens.some((token) => token.includes(",") && isList(token));
  const isDecimal = tokens.some((token) => WITH_COMMA.test(token) && !TWO_WAYS.test(token));
  let unclear = "";
  const values = tokens.flatMap((token) => {
    const isAlone = tokens.length === 1 && wanted === 2;
    const isPair = WITH_COMMA.test(token) && (hasLists || isAlone);
    const isLong = WHOLE_NUMBERS.test(token) && !WITH_COMMA.test(token);
    if (isPair || isLong || LARGE.test(token)) unclear ||= readings(token);
    else if (token.includes(",") && isList(token)) return token.split(",").map(Number);
    else if (WITH_COMMA.test(token) && isDecimal) return [Number(token.replace(",", "."))];
    else if (TWO_WAYS.test(token)) unclear ||= `${token} is ambiguous: ${thousands(token)}`;
    return [number(token) ?? token];
  });
  return { values, unclear };
}

/** Whether commas separate numbers in a token without white space. @param {string} token */
const isList = (token) => !WHOLE_NUMBERS.test(token) && token.split(",").every((part) => NUMBER.test(part));

/** @param {string} token */
export const thousands = (token) => `write ${token.replace(",", ".")} or ${token.replace(",", "")}.`;

/** A sentence with both readings of a token. @param {string} token */
function readings(token) {
  const parts = token.split(",");
  const pairs = parts.flatMap((part, place) => (place % 2 ? [] : [parts.slice(place, place + 2).join(".")]));
  const isPoint = token.lastIndexOf(".") > token.lastIndexOf(",");
  const large = isPoint ? token.replaceAll(",", "") : token.replaceAll(".", "").replace(",", ".");
  const both = [parts, WHOLE_NUMBERS.test(token) ? pairs : [large]].map((numbers) => {
    const shown = numbers.slice(0, MOST_SHOWN).join(", ") + (numbers.length > MOST_SHOWN ? ", ..." : "");
    return `${numbers.length === 1 ? "one reward" : `${count(numbers.length)} rewards`} (${shown})`;
  });
  const advice = "Write decimals with a point, and separate rewards by spaces or line breaks.";
  return `'${token.slice(0, 60)}' can be read as ${both.join(" or ")}. ${advice}`;
}

/** The bounds of rewards in the format of POST /plan: two numbers, or 0/1. @param {string} text
 * @returns {Record<string, any>} */
export function bounds(text) {
  if (!text.trim()) return {};
  const two = text.trim().replace(/^([^\s,;]+),([^\s,;]+)$/, "$1 $2"); // one number is no interval
  return two === "0/1" ? { rewards: "bernoulli" } : { bounds: rewards(two, 2).values };
}

/** The arms of a question in the format of POST /plan. @param {string} text @param {boolean} isUnknown
 * @returns {Record<string, any>} */
export function arms(text, isUnknown) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  if (isUnknown) return unknownArms(lines);
  const header = lines.length ? heading(lines[0]) : null;
  /** @type {any[]} */
  const values = [];
  /** @type {string[]} */
  const names = [];
  for (const line of header ? lines.slice(1) : lines) addLine(line, header, values, names);
  const kind = header?.kind ?? "variances";
  if (!names.some((name) => name !== undefined)) return { [kind]: values };
  return { [kind]: values, names: values.map((_, place) => names[place] ?? `arm-${place}`) };
}

/** @param {string[]} lines */
function unknownArms(lines) {
  const many = lines.length === 1 && /^(?:\S+\s*[x×*]\s*)?(\d+)$/.exec(lines[0].trim()); // 10, or 0.25 x 10
  if (many) return { n: Number(many[1]) };
  const names = lines.map((line) => row(line)[0].trim());
  return { names: ["name", "arm"].includes(names[0]?.toLowerCase()) ? names.slice(1) : names };
}

/** @param {string} line @param {{name: number, value: number, width: number, between: string} | null} header
 * @param {any[]} values @param {string[]} names */
function addLine(line, header, values, names) {
  const many = /^(\S+)\s*[x×*]\s*(\d+)$/.exec(line.trim());
  if (many) {
    if (values.length + Number(many[2]) > MOST_ARMS) {
      throw new Error(`there are more than ${count(MOST_ARMS)} arms, which is the maximum.`);
    }
    for (let k = Number(many[2]); k > 0; k -= 1) values.push(number(many[1]));
    return;
  }
  const found = row(line, header?.between);
  if (!header && (found.length === 1 || WITH_COMMA.test(line.trim()))) {
    values.push(found.length === 1 ? number(line) : line.trim()); // 0,25 is not an arm named 0
    return;
  }
  const { name, value, width } = header ?? { name: 0, value: 1, width: 2 };
  if (found.slice(width).some((cell) => cell.trim())) {
    throw new Error(
      `the line '${line.trim()}' has ${found.length} cells; it must have ${width}. Write decimals with a point, or ` +
        "separate cells by semicolons.",
    );
  }
  if (name >= 0) names[values.length] = (found[name] ?? "").trim();
  values.push(number(found[value] ?? "") ?? "");
}

/** The columns of a CSV header; null if the line is not a header. @param {string} line */
function heading(line) {
  const between = separator(line);
  const titles = row(line, between).map((cell) => cell.trim().toLowerCase());
  const name = titles.findIndex((one) => one === "name" || one === "arm");
  for (const [title, kind] of [["variance", "variances"], ["scale", "scales"]]) {
    const value = titles.indexOf(title);
    if (value >= 0) return { kind, value, name, width: titles.length, between };
  }
  return null;
}

/** The separator of the cells of a line; in a tie, commas are decimal commas. @param {string} line */
function separator(line) {
  const n = (/** @type {string} */ sign) => line.split(sign).length;
  return ["\t", ";", ","].reduce((best, one) => (n(one) > n(best) ? one : best));
}

/** The cells of a line of CSV; quoted cells may contain the separator. @param {string} line @param {string} between */
function row(line, between = separator(line)) {
  /** @type {string[]} */
  const found = [""];
  let isQuoted = false;
  for (const letter of line) {
    if (letter === '"') isQuoted = !isQuoted;
    else if (letter === between && !isQuoted) found.push("");
    else found[found.length - 1] += letter;
  }
  return found;
}
