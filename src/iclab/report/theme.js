// Light, dark, or as the system says. Runs before the page is drawn, so that nothing flashes.
(() => {
  const themes = ["auto", "light", "dark"];
  const read = () => { try { return localStorage.getItem("iclab-theme") || "auto"; } catch { return "auto"; } };
  const apply = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  let theme = themes.includes(read()) ? read() : "auto";
  apply(theme);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => { button.textContent = `theme: ${theme}`; };
    show();
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      try { localStorage.setItem("iclab-theme", theme); } catch { /* a file without storage: the choice lasts for this visit */ }
      apply(theme);
      show();
    });
  });
})();
