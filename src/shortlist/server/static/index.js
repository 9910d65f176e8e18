/** The list of runs, kept up to date. */
import { show } from "./bind.js";
import { poll } from "./connection.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));

poll(() => `/index.json?page=${main.dataset.page}`, (facts) => show(main, facts), 3000);
