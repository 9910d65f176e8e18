/** Parses numbers and arms. Invalid numbers are passed on as text, so that the library reports them. */

import { count } from "./forms.js";

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;
const WITH_COMMA = /^[+-]?\d+,\d+$/;
const TWO_WAYS = /^[+-]?[1-9]\d{0,2},\d{3}$/; // 1,234 may mean 1.234 or 1234
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

/** All rewards of a ticket, separated by spaces, commas, semicolons or lines. Commas within numbers are
 * decimal commas if that gives the expected number of rewards.
 * @param {string} text @param {number} wanted @returns {(number | string)[]} */
export function rewards(text, wanted) {
  const all = cells(text, /[\s,;]+/);
  const withCommas = cells(text, /[\s;]+|,\s+/);
  const areNumbers = withCommas.every((cell) => NUMBER.test(cell) || WITH_COMMA.test(cell));
  const isDecimal = withCommas.length === wanted && areNumbers;
  if (all.length === wanted || !isDecimal) return all.map((cell) => number(cell) ?? cell);
  return withCommas.map((cell) => Number(cell.replace(",", ".")));
}

/** The bounds of rewards in the format of POST /plan: two numbers, or 0/1. @param {string} text
 * @returns {Record<string, any>} */
export function bounds(text) {
  if (!text.trim()) return {};
  return text.trim() === "0/1" ? { rewards: "bernoulli" } : { bounds: rewards(text, 2) };
}

/** @param {string} text @param {RegExp} between */
const cells = (text, between) => text.trim().replaceAll("−", "-").split(between).filter(Boolean);

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
