// Papers, statements and their contents are templates until they are opened. Also: links, downloads, copying, printing.
window.iclab = (() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);

  // Insert the template that a node names, once, and those inside it that are not in a closed part.
  const load = (node) => {
    const template = byId(node.dataset.load);
    delete node.dataset.load;
    if (template) node.append(template.content.cloneNode(true));
    for (const inner of all("[data-load]:not(details)", node)) {
      const closed = inner.closest("[hidden]");
      if (!closed || !node.contains(closed)) load(inner);
    }
    document.dispatchEvent(new CustomEvent("loaded", { detail: node }));
  };
  const open = (button, wanted = true) => {
    const part = byId(button.dataset.open), row = part.closest("tr");
    (row || part).hidden = !wanted;
    if (wanted && part.dataset.load) load(part);
    button.setAttribute("aria-expanded", String(wanted));
  };
  const isOpen = (button) => button.getAttribute("aria-expanded") === "true";
  const paper = (name) => {
    const part = byId(`inside:${name}`);
    if (part?.dataset.load) load(part);
    return part;
  };
  document.addEventListener("toggle", (event) => { if (event.target.open && event.target.dataset.load) load(event.target); }, true);

  // A statement by its id, after its paper's table is inserted.
  const statement = (id) => {
    if (!byId(id)) paper(id.split("/", 1)[0]);
    return byId(id);
  };
  const follow = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (!id || id.startsWith("q=") || id.includes("&")) return;
    const target = statement(id);
    if (!target) return;
    document.dispatchEvent(new CustomEvent("followed"));
    const around = target.closest("section.paper");
    if (around) open(around.querySelector("h2 .opener"));
    const own = target.querySelector(".opener");
    if (own) open(own);
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);

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
  const copy = async (button) => {
    try { await navigator.clipboard.writeText(button.dataset.copy); } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
      return;
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };
  const choose = (button) => {
    const around = button.closest("tr.opened");
    for (const other of all("button.reading", around)) other.setAttribute("aria-pressed", String(other === button));
    for (const part of all(".parts-of", around)) part.hidden = part.dataset.reading !== button.dataset.reading;
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.matches(".opener")) open(button, !isOpen(button));
    else if (button?.matches(".copy")) copy(button);
    else if (button?.matches(".reading")) choose(button);
    else if (button?.dataset.save) {
      const figure = button.closest("figure"), kind = button.dataset.save, [content, type] = contents[kind](figure);
      save(`${figure.dataset.name}.${kind}`, content, type);
    } else if (!button && !event.target.closest("a, input, select, label") && !String(getSelection())) {
      const own = event.target.closest("tbody.statement > tr:not(.opened)")?.querySelector(".opener");
      if (own) open(own, !isOpen(own));  // a row is as large a target as it looks
    }
  });

  // A print cannot be opened: show every paper's table, and the statements that were open.
  let closed = [];
  addEventListener("beforeprint", () => {
    const papers = all("section.paper h2 .opener").filter((button) => !isOpen(button));
    for (const button of papers) open(button);
    const parts = all("details:not([open])");
    for (const part of parts) { part.open = true; if (part.dataset.load) load(part); }
    closed = [() => papers.forEach((button) => open(button, false)), () => parts.forEach((part) => { part.open = false; })];
  });
  addEventListener("afterprint", () => { for (const undo of closed) undo(); closed = []; });

  // Under `iclab serve`: load the page again when the run has written a new one.
  if (document.body.dataset.live) new EventSource("events").addEventListener("page", () => location.reload());

  return { all, byId, follow, paper, statement };
})();
