// Filters, links into closed parts, downloads, copying, printing. The page is complete without any of it.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);

  // Filters.
  const form = byId("statements"), search = byId("search"), which = byId("which");
  const statements = all("article.statement").map((node) => ({
    node, id: node.id, answer: node.dataset.answer, paper: node.closest("section").dataset.paper,
    text: `${node.id} ${node.querySelector(".said").textContent} ${node.querySelector(".found").textContent}`.toLowerCase(),
  }));
  const answers = () => all("input[type=checkbox]:checked", form).map((box) => box.value);
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), chosen = answers();
    const active = Boolean(words.length || chosen.length || which.value);
    const visible = new Set();
    for (const entry of statements) {
      const fits = (!which.value || entry.paper === which.value) && (!chosen.length || chosen.includes(entry.answer))
        && words.every((word) => entry.text.includes(word));
      entry.node.hidden = !fits;
      if (fits) visible.add(entry.id);
    }
    for (const figure of all("figure[data-statements]")) {
      figure.hidden = active && !figure.dataset.statements.split(" ").some((id) => visible.has(id));
    }
    for (const section of all("section.paper")) section.hidden = !all("article.statement", section).some((node) => !node.hidden);
    byId("shown").textContent = active ? `${visible.size} of ${statements.length} statements` : `${statements.length} statements`;
    byId("nothing").hidden = visible.size > 0;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  byId("clear").addEventListener("click", () => form.reset());
  for (const button of all("button.count")) {
    button.addEventListener("click", () => {
      which.value = button.dataset.paper;
      search.value = "";
      for (const box of all("input[type=checkbox]", form)) box.checked = box.value === button.dataset.answer;
      filter();
      form.scrollIntoView();
    });
  }

  // A link to a statement opens it, and shows it if a filter hides it.
  const follow = () => {
    const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.closest("[hidden]")) { form.reset(); setTimeout(() => { filter(); target.scrollIntoView(); }); }
    const details = target.matches("details") ? target : target.matches("article.statement") && target.querySelector("details");
    if (details) details.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();

  // Downloads: the drawing as it was made, without the theme's colours.
  const save = (name, content, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const contents = {
    svg: (figure) => {
      const text = new XMLSerializer().serializeToString(figure.querySelector("svg"));
      return [`<?xml version="1.0" encoding="utf-8"?>\n${text.replace(/var\(--[\w-]+, (#[0-9a-fA-F]{6})\)/g, "$1")}`, "image/svg+xml"];
    },
    csv: (figure) => [JSON.parse(figure.querySelector("script[type='text/csv']").textContent), "text/csv;charset=utf-8"],
  };
  for (const button of all("button[data-save]")) {
    button.addEventListener("click", () => {
      const figure = button.closest("figure"), kind = button.dataset.save, [content, type] = contents[kind](figure);
      save(`${figure.dataset.name}.${kind}`, content, type);
    });
  }

  for (const button of all("button.copy")) {
    button.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(button.dataset.copy); } catch {
        getSelection().selectAllChildren(button.previousElementSibling);
        return;
      }
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
  }

  // On paper nothing can be opened: everything is.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of closed) part.open = false; });

  // Under `iclab serve`: load the page again when the run has written a new one.
  if (document.body.dataset.live) {
    const events = new EventSource("events");
    events.addEventListener("page", () => location.reload());
  }
})();
