/** Shared by all pages: local times, logging out, and forms that wait for their scripts. */
import { talk } from "./connection.js";
import { moment } from "./forms.js";

for (const one of document.querySelectorAll("time")) if (one.dateTime) one.textContent = moment(one.dateTime);

/** Enable buttons. They are disabled until something listens to them: a browser that sends a form by itself
 * would lose what was entered, and show it in the address. @param {Element} part */
function enable(part) {
  for (const button of part.querySelectorAll("button")) button.disabled = false;
}

/** Call a function when a form is sent. @param {HTMLElement} form @param {(event: any) => void} send */
export function whenSubmitted(form, send) {
  form.addEventListener("submit", send);
  enable(form);
}

const logout = /** @type {HTMLButtonElement | null} */ (document.getElementById("logout"));
logout?.addEventListener("click", async () => {
  await talk("/logout", {}).catch(() => {});
  location.assign("/login");
});
if (logout) logout.disabled = false;
