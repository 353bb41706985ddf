// The list of findings: filters, search, bars that follow them, keys.
ts.findings = () => {
  const search = document.getElementById("search");
  if (!search) return {};
  const findings = [...document.querySelectorAll(".finding")], byId = (id) => document.getElementById(id);
  const shown = byId("shown"), group = byId("group"), fixable = byId("fixable"), none = byId("none");
  const levels = [...document.querySelectorAll("input[name=level]")];
  const files = [...document.querySelectorAll(".file")];
  let current = -1;
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const on = new Set(levels.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    const tally = { rule: new Map(), path: new Map(), level: new Map() };
    for (const item of findings) {
      const data = item.dataset;
      const fits = on.has(data.level) && words.every((word) => data.words.includes(word))
        && (!group.value || data.group === group.value) && (!fixable.checked || data.fix === "1");
      item.hidden = !fits;
      if (!fits) continue;
      count += 1;
      for (const key of Object.keys(tally)) tally[key].set(data[key], (tally[key].get(data[key]) ?? 0) + 1);
    }
    for (const file of files) {
      const left = file.querySelectorAll(".finding:not([hidden])").length;
      file.hidden = !left;
      file.querySelector("h2 small").textContent = left;
    }
    shown.textContent = ts.pick(`${count} of ${findings.length} shown`, `显示 ${count} / ${findings.length}`);
    none.hidden = count > 0;
    for (const chart of document.querySelectorAll(".bars")) follow(chart, tally[chart.dataset.by]);
    for (const chip of document.querySelectorAll(".chip[data-level] b")) chip.textContent = tally.level.get(chip.parentElement.dataset.level) ?? 0;
  };
  const follow = (chart, counts) => {
    const rows = [...counts].sort((p, q) => q[1] - p[1] || p[0].localeCompare(q[0])), most = rows[0]?.[1] ?? 1;
    const list = chart.querySelector(".rows");
    chart.hidden = most < 2; // where all are alike, such a picture says nothing
    list.replaceChildren();
    for (const [name, count] of rows.slice(0, 8)) {
      const bar = ts.html("button", { type: "button", class: "bar", title: name }, list);
      ts.html("bdi", {}, ts.html("span", { class: "name" }, bar), name);
      ts.html("i", {}, ts.html("span", { class: "track" }, bar)).style.width = `${(100 * count) / most}%`;
      ts.html("b", {}, bar, String(count));
      const word = name.split(" ")[0].toLowerCase();
      bar.addEventListener("click", () => { search.value = search.value === word ? "" : word; filter(); });
    }
    chart.querySelector(".rest").textContent = rows.length > 8 ? ts.pick(`and ${rows.length - 8} more`, `另有 ${rows.length - 8} 项`) : "";
  };
  const visible = () => findings.filter((item) => !item.hidden);
  const go = (step) => {
    const list = visible();
    if (!list.length) return;
    const next = list[Math.min(Math.max(list.indexOf(findings[current]) + step, 0), list.length - 1)];
    if (current >= 0) findings[current].classList.remove("current");
    current = findings.indexOf(next);
    next.classList.add("current");
    next.querySelector("summary").focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };
  const toggleAll = () => { const list = visible(), open = !list.every((item) => item.open); for (const item of list) item.open = open; };
  const clear = () => { search.value = ""; group.value = ""; fixable.checked = false; for (const box of levels) box.checked = true; filter(); };
  for (const box of [search, group, fixable, ...levels]) box.addEventListener("input", filter);
  byId("all").addEventListener("click", toggleAll);
  byId("clear").addEventListener("click", clear);
  search.addEventListener("keydown", (event) => { if (event.key === "Escape") { search.value = ""; search.blur(); filter(); } });
  if (findings.length <= 6) for (const item of findings) item.open = true;
  return {
    filter,
    keys: {
      j: () => go(1), k: () => go(-1), e: toggleAll, "/": () => search.focus(),
      o: () => { if (current >= 0) findings[current].open = !findings[current].open; },
      ...Object.fromEntries(levels.map((box, i) => [String(i + 1), () => { box.checked = !box.checked; filter(); }])),
    },
  };
};
