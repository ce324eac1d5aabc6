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

  const start = async (root) => {
    const data = JSON.parse(root.querySelector("script").textContent), [, members, steps, stages, prompts] = data.shape;
    const chosen = () => {
      const value = (what) => Number(root.querySelector(`[data-what=${what}]:is(select, [type=range], :checked)`)?.value ?? 0);
      return { at: value("switch"), member: value("member"), step: value("step"), stage: value("stage"), prompt: value("prompt") };
    };
    const place = (c, step = c.step) => (((c.at * members + c.member) * steps + step) * stages + c.stage) * prompts + c.prompt;
    const items = (panel, c) => {
      const first = place(c) * panel.items, truth = ((c.at * stages + c.stage) * prompts + c.prompt) * panel.items;
      return Array.from({ length: panel.items }, (_, number) => ({
        item: `${String(number + 1).padStart(3, "0")}|${text(panel.label, truth + number)}`, name: `${number + 1} (${text(panel.label, truth + number)})`,
        value: panel.values[first + number], group: panel.groups[panel.group[truth + number]],
      })).filter((row) => row.group !== "");
    };
    const along = (c) => Object.entries(data.lines.values).flatMap(([name, values]) =>
      data.steps.map((step, number) => ({ step, name, value: values[place(c, number)] })));
    const embed = charts(), options = { actions: false, renderer: "svg", ast: true };
    const places = [...root.querySelectorAll(".chart")];
    const views = await Promise.all([...data.panels.map((panel) => panel.chart), data.lines.chart].map(async (chart, number) => {
      const width = places[number].clientWidth, legend = { ...chart.config.legend, columns: width < 480 ? 1 : 2 };
      const config = { ...chart.config, legend, title: { ...chart.config.title, limit: width } };
      return (await embed(places[number], { ...chart, config }, options)).view;
    }));
    const output = root.querySelector("output"), said = root.querySelector(".answer");
    const show = async () => {
      const c = chosen(), lines = along(c);
      output.textContent = `step ${data.steps[c.step]} of ${data.steps.at(-1)}`;
      said.textContent = text(data.said, place(c));
      said.classList.toggle("right", said.textContent.endsWith("correct"));
      root.querySelector("[data-what=step]").setAttribute("aria-valuetext", `${output.textContent}: ${said.textContent}`);
      await Promise.all([
        ...data.panels.map((panel, number) => views[number].data("items", items(panel, c)).resize().runAsync()),
        views.at(-1).data("along", lines).data("now", lines.filter((row) => row.step === data.steps[c.step])).resize().runAsync(),
      ]);
      root.dataset.shown = JSON.stringify(c);
    };
    root.addEventListener("input", show);
    const play = root.querySelector(".play"), slider = root.querySelector("[data-what=step]");
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
