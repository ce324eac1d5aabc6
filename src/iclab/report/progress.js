// Follows a run: numbers and words are replaced as they come; another page is loaded when there is one.
(() => {
  const byId = (id) => document.getElementById(id);
  const rows = new Map([...document.querySelectorAll("article[data-id]")].map((row) => [row.dataset.id, row]));
  const number = (value) => value === null || value === undefined ? "–" : Number(value).toPrecision(3).replace(/\.?0+(e|$)/, "$1");
  const show = (status) => {
    if (!status) return;
    if (status.claims.some((claim) => !rows.has(claim.id))) { location.reload(); return; }
    byId("bar").value = status.fraction;
    byId("percent").textContent = `${Math.round(100 * status.fraction)} %`;
    byId("left").textContent = status.left;
    byId("what").textContent = status.going ? status.what : "the run has stopped; the same command with the same --out continues it";
    for (const claim of status.claims) {
      const row = rows.get(claim.id), chip = row.querySelector(".chip"), said = claim.verdict || claim.state;
      chip.textContent = said;
      chip.className = `chip ${said}`;
      row.querySelector(".parts").textContent = `${claim.done} of ${claim.needs} experiments`;
      if (claim.verdict) row.querySelector(".figures").textContent = `${number(claim.measured)} [${number(claim.low)}, ${number(claim.high)}]`;
    }
  };
  const events = new EventSource("events");
  events.addEventListener("status", (event) => show(JSON.parse(event.data)));
  events.addEventListener("page", () => location.reload());
})();
