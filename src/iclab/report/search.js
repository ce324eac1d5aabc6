// Search by text, paper and answer. Exact numbers come first; the address keeps the search after the #.
(() => {
  const { all, byId, follow, paper, statement } = window.iclab;
  const NOUNS = { thm: "theorem", theorems: "theorem", prop: "proposition", cor: "corollary", lem: "lemma", lemmas: "lemma", rem: "remark",
    fig: "figure", figs: "figure", figures: "figure", tab: "table", eq: "equation", eqs: "equation", equations: "equation", sec: "section" };
  const NUMBER = /\b(theorem|proposition|corollary|lemma|remark|figure|table|equation|insight|section)\s*\(?([a-z]?\.?\d[\w.]*|[a-z]\d+)\)?(?:\s*\(?([a-z])\b\)?)?/g;

  // "Fig. 1 (A)" and "fig1a" are "figure 1a".
  const plain = (text) => text.toLowerCase().replace(/\b([a-z]{2,})\.?\s*(?=\(?[\d(])/g, (word, noun) => `${NOUNS[noun] ?? noun} `)
    .replace(/\b[a-z]+\b/g, (word) => NOUNS[word] ?? word).replace(/,\s+(left|right)/g, " $1")
    .replace(/\b(theorem|lemma|equation|figure) (\S+) and (?=\(?[a-z]?\.?\d)/g, "$1 $2 and $1 ");
  const numbers = (text) => [...text.matchAll(NUMBER)].map(([, noun, label, panel]) => `${noun} ${label}${panel ?? ""}`);

  const entries = JSON.parse(byId("index").textContent).map((entry) => {
    const source = plain(entry.source), own = entry.beyond || source.search(NUMBER) !== 0 ? [] : numbers(source);
    return { ...entry, own, source, words: entry.words.toLowerCase(), parts: entry.parts.toLowerCase() };
  });

  // 0 is best; Infinity is no hit. A number must match a number, a word the beginning of a word.
  const starts = (text, word) => new RegExp(`(^|[^\\p{L}\\p{N}])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`, "u").test(text);
  const rank = (entry, wanted, words) => {
    let found = 0;
    for (const number of wanted) {
      if (entry.own[0] === number) found += 0;
      else if (entry.own.includes(number)) found += 1;
      else if (entry.own.some((own) => own.startsWith(number) && /[a-z]$/.test(own))) found += 2;
      else if (numbers(entry.source).includes(number)) found += 4;
      else return Infinity;
    }
    for (const word of words) {
      const places = [entry.source, entry.words, `${entry.id} ${entry.paper}`.toLowerCase(), entry.parts];
      const place = places.findIndex((text) => starts(text, word));
      if (place < 0) return Infinity;
      found += [0, 1, 0, 3][place];
    }
    return found + (entry.beyond ? 3 : 0);
  };
  const ranked = (text) => {
    const query = plain(text.trim()), wanted = numbers(query), words = query.replace(NUMBER, " ").split(/\s+/).filter(Boolean);
    const hits = entries.map((entry, place) => ({ entry, place, rank: rank(entry, wanted, words) })).filter((hit) => hit.rank < Infinity);
    // Among equal hits, the statement with the most parts, over its readings, comes first.
    if (text.trim()) hits.sort((one, other) => one.rank - other.rank || other.entry.asked - one.entry.asked || one.place - other.place);
    return hits.map((hit) => hit.entry);
  };

  const form = byId("filters"), search = byId("search"), which = byId("which"), table = byId("results").querySelector("table");
  const home = new Map();  // the place of a statement's rows without a search
  const restore = () => {
    for (const [row, place] of home) place.replaceWith(row);
    home.clear();
  };
  const show = () => {
    const answers = all("input[type=checkbox]:checked", form).map((box) => box.value);
    const active = Boolean(search.value.trim() || which.value || answers.length);
    const hits = !active ? [] : ranked(search.value).filter((entry) => (!which.value || entry.paper === which.value)
      && (!answers.length || answers.includes(entry.answer)));
    restore();
    for (const name of new Set(hits.map((entry) => entry.paper))) paper(name);
    for (const entry of hits) {
      const row = statement(entry.id), place = document.createElement("tbody");
      row.replaceWith(place);
      home.set(row, place);
      table.append(row);
    }
    byId("results").hidden = !active;
    byId("papers").hidden = active;
    byId("nothing").hidden = !active || hits.length > 0;
    table.hidden = !hits.length;
    const count = `${entries.length} statement${entries.length === 1 ? "" : "s"}`;
    byId("shown").textContent = active ? `${hits.length} of ${count}` : count;
    return { answers, active };
  };
  const write = ({ answers, active }) => {
    const said = new URLSearchParams();
    if (search.value.trim()) said.set("q", search.value.trim());
    if (which.value) said.set("paper", which.value);
    if (answers.length) said.set("answer", answers.join(","));
    history.replaceState(null, "", active ? `#${said}` : location.pathname + location.search);
  };
  const read = () => {
    const said = new URLSearchParams(location.hash.slice(1));
    if (!["q", "paper", "answer"].some((name) => said.has(name))) { follow(); return; }
    search.value = said.get("q") ?? "";
    which.value = said.get("paper") ?? "";
    const answers = (said.get("answer") ?? "").split(",");
    for (const box of all("input[type=checkbox]", form)) box.checked = answers.includes(box.value);
    show();
  };
  form.addEventListener("input", () => write(show()));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => write(show())));
  byId("clear").addEventListener("click", () => form.reset());
  document.addEventListener("followed", () => { if (!byId("results").hidden) { form.reset(); restore(); byId("results").hidden = true; byId("papers").hidden = false; } });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.count");
    if (!button) return;
    which.value = button.dataset.paper;
    search.value = "";
    for (const box of all("input[type=checkbox]", form)) box.checked = box.value === button.dataset.answer;
    write(show());
    form.scrollIntoView();
  });
  addEventListener("hashchange", () => { if (/(^#|&)(q|paper|answer)=/.test(location.hash)) read(); });
  read();
  document.body.dataset.ready = "yes";
})();
