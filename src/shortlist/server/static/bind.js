/**
 * Shows plain data in a page. Attributes of an element bind it to the data:
 *
 *   data-say="key"       its text (data-form: the format, see forms.js)
 *   data-if, data-unless whether it is visible
 *   data-width, -left    a share, as a width or a position
 *   data-kind="key"      its class, after data-base
 *   data-href="key"      its link
 *   data-list="key"      its children, one per list item, copied from the <template> in it;
 *                        data-key identifies an item across updates
 *   data-figure="key"    a figure of the report
 *
 * Only figures are parsed as HTML: the server draws them and escapes user input. Everything else is text.
 * Unchanged elements are not touched, so that focus and selection are kept.
 */
import { forms } from "./forms.js";

/** @param {any} facts @param {string} key */
export const at = (facts, key) => key.split(".").reduce((found, part) => found?.[part], facts);

/** @param {any} value */
const is = (value) => (Array.isArray(value) ? value.length > 0 : Boolean(value));

/** @param {Element} root @param {string} attribute @returns {HTMLElement[]} */
function own(root, attribute) {
  const inside = [...root.querySelectorAll(`[${attribute}]`)].filter(
    (one) => (one.parentElement?.closest("[data-list]") ?? null) === root.closest("[data-list]"),
  );
  return /** @type {HTMLElement[]} */ (root.hasAttribute(attribute) ? [root, ...inside] : inside);
}

/** Show data in an element and its descendants. @param {HTMLElement} root @param {any} facts */
export function show(root, facts) {
  for (const one of own(root, "data-say")) {
    const value = at(facts, one.dataset.say ?? "");
    const words = value === null || value === undefined ? "" : forms[one.dataset.form ?? "text"](value);
    if (one.textContent !== words) one.textContent = words;
    if (one instanceof HTMLTimeElement && value) one.dateTime = value;
  }
  for (const one of own(root, "data-if")) one.hidden = !is(at(facts, one.dataset.if ?? ""));
  for (const one of own(root, "data-unless")) one.hidden = is(at(facts, one.dataset.unless ?? ""));
  for (const one of own(root, "data-width")) one.style.width = share(at(facts, one.dataset.width ?? ""));
  for (const one of own(root, "data-left")) one.style.left = share(at(facts, one.dataset.left ?? ""));
  for (const one of own(root, "data-kind")) setClass(one, facts);
  for (const one of own(root, "data-href")) setHref(/** @type {HTMLAnchorElement} */ (one), facts);
  for (const one of own(root, "data-list")) {
    if (one !== root) list(one, at(facts, one.dataset.list ?? "") ?? []);
  }
  for (const one of own(root, "data-figure")) {
    const drawn = at(facts, one.dataset.figure ?? "") ?? "";
    become(one, new DOMParser().parseFromString(drawn, "text/html").body);
  }
}

/** @param {number | null | undefined} value */
const share = (value) => `${(100 * (value ?? 0)).toFixed(2)}%`;

/** @param {HTMLElement} one @param {any} facts */
function setClass(one, facts) {
  const name = `${one.dataset.base ?? ""} ${at(facts, one.dataset.kind ?? "") ?? ""}`.trim();
  if (one.className !== name) one.className = name;
}

/** @param {HTMLAnchorElement} one @param {any} facts */
function setHref(one, facts) {
  const path = at(facts, one.dataset.href ?? "");
  if (path?.startsWith("/") && one.getAttribute("href") !== path) one.setAttribute("href", path);
}

/** @param {HTMLTemplateElement} pattern */
const copied = (pattern) => /** @type {HTMLElement} */ (pattern.content.firstElementChild?.cloneNode(true));

/** @param {HTMLElement} parent @param {any[]} items */
function list(parent, items) {
  const pattern = /** @type {HTMLTemplateElement} */ (parent.querySelector(":scope > template"));
  const rows = /** @type {HTMLElement[]} */ ([...parent.children].filter((one) => one !== pattern));
  const before = new Map(rows.map((row, place) => [row.dataset.key ?? String(place), row]));
  /** @type {Element} */
  let last = pattern;
  items.forEach((item, place) => {
    const key = parent.dataset.key ? String(item[parent.dataset.key]) : String(place);
    const row = before.get(key) ?? copied(pattern);
    before.delete(key);
    row.dataset.key = key;
    if (last.nextElementSibling !== row) last.after(row);
    show(row, item);
    last = row;
  });
  for (const row of before.values()) row.remove();
}

/** Replace the content of an element by that of another; open details stay open. @param {Element} old @param {Element} fresh */
function become(old, fresh) {
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((node, place) => {
    const there = before[place];
    if (!there) old.append(node);
    else if (there.nodeName !== node.nodeName) there.replaceWith(node);
    else if (there instanceof Element && node instanceof Element) {
      setAttributes(there, node);
      become(there, node);
    } else if (there.nodeValue !== node.nodeValue) there.nodeValue = node.nodeValue;
  });
  for (const node of before.slice(after.length)) node.remove();
}

/** @param {Element} old @param {Element} fresh */
function setAttributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const name of old.getAttributeNames()) {
    if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
}
