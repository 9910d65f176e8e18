/** What somebody has typed and not sent yet: kept on the device, so that nothing is lost on the way. */

const ROOM = "shortlist";

/** @param {string} key @param {any} [otherwise] */
export function kept(key, otherwise = null) {
  try {
    return JSON.parse(localStorage.getItem(`${ROOM}.${key}`) ?? "null") ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keep something; null to forget it. Return whether it could be kept.
 * @param {string} key @param {any} value */
export function keep(key, value) {
  try {
    if (value === null) localStorage.removeItem(`${ROOM}.${key}`);
    else localStorage.setItem(`${ROOM}.${key}`, JSON.stringify(value));
    return true;
  } catch {
    return false; // the device does not allow it, or is full
  }
}
