/** Correcting a recorded answer: it is withdrawn, with a reason, and can be entered again. */
import { Refused, persist, talk } from "./connection.js";
import { sentence } from "./forms.js";

/** Let a person withdraw the answer to a ticket: a reason, and a button.
 * @param {HTMLElement} part the input and the button
 * @param {{path: string, ticket: () => string, by: () => string, then: () => any, say: (words: string) => void}} what */
export function offerWithdrawal(part, { path, ticket, by, then, say }) {
  const why = /** @type {HTMLInputElement} */ (part.querySelector(".why"));
  const button = /** @type {HTMLButtonElement} */ (part.querySelector("button"));
  button.disabled = false;
  why.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // it would send answers
    button.click();
  });
  button.addEventListener("click", async () => {
    if (!why.value.trim()) {
      say("Say why the recorded answer is wrong, for the log.");
      return why.focus();
    }
    button.disabled = true;
    try {
      const wish = { ticket: ticket(), why: why.value.trim(), by: by() || "somebody" };
      await persist(() => talk(`${path}/withdraw`, wish));
      why.value = "";
      part.hidden = true;
      await then();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      say(sentence(error.message.replaceAll("`", "")));
    } finally {
      button.disabled = false;
    }
  });
}
