// A flame graph: a click zooms, a search lights up, colours stand for the kind of node.
ts.charts.tree = (figure, data) => {
  const state = figure.state ??= { zoom: [], search: "" };
  const width = Math.max(figure.clientWidth, 240), row = 20;
  let root = data.root;
  for (const i of state.zoom) root = root.c[i];
  const groups = data.groups, colour = (g) => (g ? ts.colour(Math.min(groups.indexOf(g), 7)) : "var(--other)");
  figure.querySelector("svg")?.remove();
  const items = [];
  let deepest = 0;
  const place = (node, depth, x, w, path) => {
    if (w < 0.6 || depth > 60) return;
    deepest = Math.max(deepest, depth);
    items.push([node, depth, x, w, path]);
    let at = x;
    (node.c ?? []).forEach((child, i) => { const share = node.v ? (child.v / node.v) * w : 0; place(child, depth + 1, at, share, [...path, i]); at += share; });
  };
  const above = state.zoom.length;
  place(root, above ? 1 : 0, 0, width, state.zoom);
  const height = (deepest + 1) * row + 2;
  const svg = ts.svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${ts.say(data.name)}: ${ts.human(data.root.v, data.unit)}` });
  figure.querySelector(".canvas").prepend(svg);
  const tip = ts.tip(figure);
  const go = (path) => { state.zoom = path; ts.draw(figure); figure.querySelector("svg [tabindex]")?.focus({ preventScroll: true }); };
  const add = (node, depth, x, w, path, up) => {
    const lit = !state.search || node.n.toLowerCase().includes(state.search);
    const g = ts.svg("g", { class: `node${lit ? "" : " dim"}${up ? " up" : ""}`, tabindex: w > 12 ? 0 : -1, role: "button", "aria-label": `${node.n} ${ts.human(node.v, data.unit)}` }, svg);
    const rect = ts.svg("rect", { x, y: depth * row, width: Math.max(w - 0.8, 0.4), height: row - 1.5, rx: 2 }, g);
    rect.style.fill = colour(node.g);
    const fits = Math.floor((w - 8) / 6.4), name = up ? `↑ ${node.n}` : node.n;
    if (fits > 2) ts.svg("text", { x: x + 4, y: depth * row + 14 }, g, name.length > fits ? `${name.slice(0, fits - 1)}…` : name);
    const show = () => tip.show(Math.min(x + 8, width - 40), (depth + 1) * row + 4, [[colour(node.g), node.n, ts.human(node.v, data.unit)], ["", ts.pick("of all", "占全部"), `${((100 * node.v) / (data.root.v || 1)).toFixed(1)} %`]]);
    g.addEventListener("pointerenter", show); g.addEventListener("focus", show);
    g.addEventListener("pointerleave", () => tip.hide()); g.addEventListener("blur", () => tip.hide());
    const act = () => go(up ? state.zoom.slice(0, -1) : path);
    g.addEventListener("click", act);
    g.addEventListener("keydown", (event) => { if (event.key === "Enter") { act(); event.stopPropagation(); } if (event.key === "Escape") go([]); });
  };
  if (above) { let parent = data.root; for (const i of state.zoom.slice(0, -1)) parent = parent.c[i]; add(parent, 0, 0, width, state.zoom.slice(0, -1), true); }
  for (const item of items) add(...item, false);
  if (!figure.querySelector(".flame-search")) {
    const box = ts.html("div", { class: "flame-bar" });
    figure.querySelector(".canvas").before(box);
    const search = ts.html("input", { type: "search", class: "flame-search" }, box);
    search.addEventListener("input", () => { state.search = search.value.toLowerCase(); ts.draw(figure); search.focus(); });
    const legend = ts.html("span", { class: "legend" }, box);
    for (const g of groups.slice(0, 8)) { const item = ts.html("span", {}, legend); ts.html("i", {}, item).style.background = colour(g); item.append(g); }
  }
  figure.querySelector(".flame-search").placeholder = ts.pick("search modules", "搜索模块");
  figure.querySelector(".flame-search").setAttribute("aria-label", ts.pick("search modules", "搜索模块"));
};
