/** Shared by all pages: local times, and logging out. */
import { talk } from "./connection.js";
import { moment } from "./forms.js";

for (const one of document.querySelectorAll("time")) if (one.dateTime) one.textContent = moment(one.dateTime);

document.getElementById("logout")?.addEventListener("click", async () => {
  await talk("/logout", {}).catch(() => {});
  location.assign("/login");
});
