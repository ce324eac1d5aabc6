// The mechanism explorers. Numbers come as flat lists over (switch, member, step, stage, prompt[, item]); the chosen part goes to the charts.
(() => {
  const text = (list, place) => list.texts[list.at[place]];
  let library = null;
  const charts = () => {
    if (!library) {
      library = document.createElement("script");
      library.nonce = document.querySelector("script[nonce]").nonce;
      library.textContent = document.getElementById("vega").textContent;
      document.head.append(library);
    }
    return window.vegaEmbed;
  };

  // What a member does on a prompt at a step, complete or with something removed.
  const reader = (data) => {
    const [, members, steps, stages, prompts] = data.shape;
    const place = (c, step = c.step) => (((c.at * members + c.member) * steps + step) * stages + c.stage) * prompts + c.prompt;
    const removed = (c) => data.ablations[c.ablation - 1];
    const value = (panel, change, group, at) => {
      if (typeof change === "number") return change;
      if (typeof change === "string") return group === change ? 0 : panel.values[at];
      return (change ?? panel.values)[at];
    };
    const mean = (panel, first, truth) => {
      const there = Array.from({ length: panel.items }, (_, item) => item).filter((item) => panel.groups[panel.group[truth + item]] !== "");
      return there.reduce((sum, item) => sum + panel.values[first + item], 0) / there.length;
    };
    const items = (number, c) => {
      const panel = data.panels[number], asked = removed(c)?.panels[number];
      const first = place(c) * panel.items, truth = ((c.at * stages + c.stage) * prompts + c.prompt) * panel.items;
      const change = asked === "mean" ? mean(panel, first, truth) : asked;
      return Array.from({ length: panel.items }, (_, item) => {
        const label = text(panel.label, truth + item), group = panel.groups[panel.group[truth + item]];
        return { item: `${String(item + 1).padStart(3, "0")}|${label}`, name: `${item + 1} (${label})`, value: value(panel, change, group, first + item), group };
      }).filter((row) => row.group !== "");
    };
    const along = (c) => Object.entries(data.lines.values).flatMap(([name, values]) =>
      data.steps.map((step, number) => ({ step, name, value: (removed(c)?.lines[name] ?? values)[place(c, number)] })));
    const said = (c) => text((removed(c) ?? data).said, place(c));
    return { items, along, said };
  };

  // One model's charts and its answer.
  const side = (root, data) => {
    const read = reader(data), places = [...root.querySelectorAll(".chart")];
    let views = null, drawn = 0;
    // The scale is fixed over the whole training, so that growth shows; an ablation may need another scale.
    const scaled = (chart, number, ablation) => {
      const change = data.ablations[ablation - 1]?.panels[number];
      if (!Array.isArray(change)) return chart;
      const spec = structuredClone(chart), reach = change.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
      spec.encoding.y.scale.domain = reach[0] < reach[1] ? reach : [0, 1];
      return spec;
    };
    const embed = async (ablation) => Promise.all([...data.panels.map((panel) => panel.chart), data.lines.chart].map(async (whole, number) => {
      const chart = scaled(whole, number, ablation);
      const width = places[number].clientWidth, legend = { ...chart.config.legend, columns: width < 480 ? 1 : 2 };
      const config = { ...chart.config, legend, title: { ...chart.config.title, limit: width } };
      return (await charts()(places[number], { ...chart, config }, { actions: false, renderer: "svg", ast: true })).view;
    }));
    const answer = root.querySelector(".answer"), whole = root.querySelector(".whole"), name = root.querySelector(".model-name");
    return async (c, named) => {
      root.hidden = false;
      if (!views || drawn !== c.ablation) {
        drawn = c.ablation;
        views = await embed(c.ablation);
      }
      const lines = read.along(c);
      name.hidden = !named;
      name.textContent = data.members[c.member];
      answer.textContent = read.said(c);
      answer.classList.toggle("right", answer.textContent.endsWith("correct"));
      whole.hidden = !c.ablation;
      whole.textContent = c.ablation ? `with nothing removed: ${read.said({ ...c, ablation: 0 })}` : "";
      await Promise.all([
        ...data.panels.map((panel, number) => views[number].data("items", read.items(number, c)).resize().runAsync()),
        views.at(-1).data("along", lines).data("now", lines.filter((row) => row.step === data.steps[c.step])).resize().runAsync(),
      ]);
    };
  };

  const start = async (root) => {
    const data = JSON.parse(root.querySelector("script").textContent), steps = data.steps.length;
    const number = (what, otherwise = 0) => Number(root.querySelector(`[data-what=${what}]:is(select, [type=range], :checked)`)?.value ?? otherwise);
    const models = [...root.querySelectorAll(".model")], [first, second] = models.map((node) => side(node, data));
    const output = root.querySelector("output"), slider = root.querySelector("[data-what=step]");
    const show = async () => {
      const c = { at: number("switch"), member: number("member"), step: number("step"), stage: number("stage"), prompt: number("prompt"), ablation: number("ablation") };
      const beside = number("beside", -1);
      output.textContent = `step ${data.steps[c.step]} of ${data.steps.at(-1)}`;
      root.querySelector(".models").classList.toggle("two", beside >= 0);
      models[1].hidden = beside < 0;
      await Promise.all([first(c, beside >= 0), beside >= 0 && second({ ...c, member: beside }, true)]);
      slider.setAttribute("aria-valuetext", `${output.textContent}: ${root.querySelector(".answer").textContent}`);
      root.dataset.shown = JSON.stringify({ ...c, beside });
    };
    root.addEventListener("input", show);
    const play = root.querySelector(".play");
    let timer = null;
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "play"; };
    play.addEventListener("click", () => {
      if (timer) { stop(); return; }
      if (Number(slider.value) === steps - 1) slider.value = 0;
      play.textContent = "pause";
      timer = setInterval(() => {
        slider.value = Number(slider.value) + 1;
        show();
        if (Number(slider.value) === steps - 1) stop();
      }, 350);
    });
    await show();
    root.dataset.ready = "yes";
  };

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); start(entry.target); }
  }, { rootMargin: "300px" });
  document.addEventListener("loaded", (event) => { for (const root of event.detail.querySelectorAll(".explorer")) near.observe(root); });
})();
