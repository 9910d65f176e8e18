/** Unsent input, saved on the device so that it is not lost. */

const ROOM = "shortlist";

/** @param {string} key @param {any} [otherwise] */
export function kept(key, otherwise = null) {
  try {
    return JSON.parse(localStorage.getItem(`${ROOM}.${key}`) ?? "null") ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Save a value; null removes it. Return whether it could be saved.
 * @param {string} key @param {any} value */
export function keep(key, value) {
  try {
    if (value === null) localStorage.removeItem(`${ROOM}.${key}`);
    else localStorage.setItem(`${ROOM}.${key}`, JSON.stringify(value));
    return true;
  } catch {
    return false; // storage is disabled or full
  }
}
