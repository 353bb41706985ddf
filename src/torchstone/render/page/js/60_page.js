// The page itself: charts when they come into view, theme, language, keys, printing.
ts.draw = (figure) => {
  figure.values ??= JSON.parse(figure.querySelector("script").textContent);
  if (!figure.clientWidth) return; // folded away: drawn when it is opened
  ts.charts[figure.dataset.kind](figure, figure.values);
  figure.dataset.drawn = figure.clientWidth;
};
ts.page = () => {
  const figures = [...document.querySelectorAll("figure[data-kind]")];
  const keep = {
    get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* a file:// page may have no storage */ } },
  };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { seen.unobserve(entry.target); ts.draw(entry.target); }
  }, { rootMargin: "600px" });
  for (const figure of figures) seen.observe(figure);
  const drawAll = () => { for (const figure of figures) ts.draw(figure); };
  let timer = 0;
  addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(() => { for (const f of figures) if (f.dataset.drawn && Number(f.dataset.drawn) !== f.clientWidth) ts.draw(f); }, 120); });
  document.addEventListener("toggle", (event) => { if (event.target.open) for (const f of event.target.querySelectorAll("figure[data-kind]")) if (!f.dataset.drawn) ts.draw(f); }, true);
  addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details.section")) d.open = true; drawAll(); });

  const findings = ts.findings();
  const localise = () => {
    for (const item of document.querySelectorAll("[data-title-en]")) { const words = item.dataset[ts.pick("titleEn", "titleZh")]; item.title = words; item.setAttribute("aria-label", words); }
    for (const item of document.querySelectorAll("[data-hint-en]")) { item.placeholder = item.dataset[ts.pick("hintEn", "hintZh")]; item.setAttribute("aria-label", item.placeholder); }
    for (const item of document.querySelectorAll("option[data-en]")) item.textContent = item.dataset[ts.pick("en", "zh")];
    for (const button of document.querySelectorAll(".copy")) button.textContent = ts.pick("copy", "复制");
    for (const figure of figures) if (figure.dataset.drawn) ts.draw(figure);
    findings.filter?.();
  };
  const theme = () => {
    const dark = ts.root.dataset.theme ? ts.root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    ts.root.dataset.theme = dark ? "light" : "dark";
    keep.set("torchstone-theme", ts.root.dataset.theme);
  };
  const language = () => { ts.root.dataset.lang = ts.lang() === "zh" ? "en" : "zh"; ts.root.lang = ts.lang(); localise(); };
  const help = () => document.getElementById("keys").showModal();
  if (keep.get("torchstone-theme")) ts.root.dataset.theme = keep.get("torchstone-theme");
  document.getElementById("theme").addEventListener("click", theme);
  document.getElementById("lang").addEventListener("click", language);
  document.getElementById("help").addEventListener("click", help);
  ts.addCopyButtons();
  localise();
  const acts = { t: theme, l: language, "?": help, ...findings.keys };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.("input:not([type=checkbox]), select, textarea")) return;
    const act = acts[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") target.open = true;
};
ts.page();
