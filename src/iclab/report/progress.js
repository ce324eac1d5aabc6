// Follows a run: updates numbers and words as they come, and reloads when there is a new page.
(() => {
  const byId = (id) => document.getElementById(id);
  const rows = new Map([...document.querySelectorAll("article[data-id]")].map((row) => [row.dataset.id, row]));
  const show = (status) => {
    if (!status) return;
    if (status.statements.some((entry) => !rows.has(entry.id))) { location.reload(); return; }
    byId("bar").value = status.fraction;
    byId("percent").textContent = `${Math.round(100 * status.fraction)} %`;
    byId("left").textContent = status.left;
    byId("what").textContent = status.going ? status.what : "the run has stopped; to continue, repeat the command with the same --out";
    for (const entry of status.statements) {
      const row = rows.get(entry.id), chip = row.querySelector(".chip"), said = entry.answer || entry.state;
      chip.textContent = said;
      chip.className = `chip ${said.replaceAll(" ", "-")}`;
      row.querySelector(".parts").textContent = `${entry.done} of ${entry.needs} experiments`;
      if (entry.answer) row.querySelector(".figures").textContent = entry.words;
    }
  };
  const events = new EventSource("events");
  events.addEventListener("status", (event) => show(JSON.parse(event.data)));
  events.addEventListener("page", () => location.reload());
})();
