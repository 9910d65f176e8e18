/** Logs in with a token, and continues to the page that was requested. */
import { talk } from "./connection.js";
import { sentence } from "./forms.js";
import { whenSubmitted } from "./frame.js";

/** The page to continue to, on this server only. @param {string} search */
export function goal(search) {
  const wanted = new URLSearchParams(search).get("next") ?? "/";
  const isHere = /^\/(?![/\\])/.test(wanted) && new URL(wanted, location.origin).origin === location.origin;
  return isHere ? wanted : "/";
}

const form = /** @type {HTMLFormElement | null} */ (document.getElementById("login"));
const error = /** @type {HTMLElement} */ (document.getElementById("login-error"));

/** @param {Event} event */
async function logIn(event) {
  event.preventDefault();
  error.textContent = "";
  const token = /** @type {HTMLInputElement} */ (document.getElementById("token"));
  try {
    await talk("/login", { token: token.value });
    location.assign(goal(location.search));
  } catch (trouble) {
    const words = /** @type {Error} */ (trouble).message;
    error.textContent = sentence(words || "the server cannot be reached. Try again.");
    token.select();
  }
}

if (form) whenSubmitted(form, logIn);
