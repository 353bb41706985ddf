// A grid of values in shades, with names of the rows, an axis of the columns and a colour key.
ts.charts.heatmap = (figure, data) => {
  const width = Math.max(figure.clientWidth, 240), columns = data.columns.length, rows = data.rows.length;
  const longest = Math.max(4, ...data.rows.map((name) => name.length));
  const left = Math.min(width * 0.4, 12 + 6.2 * longest), key = 34;
  // Cells are as wide as their names where there is room for all; else names stand upright, or some are left out.
  const letters = Math.max(1, ...data.columns.map((name) => name.length)), needed = 6.2 * letters + 8;
  const cell = Math.max(2, Math.min(Math.max(26, Math.min(needed, 90)), (width - left - 8) / Math.max(columns, 1)));
  const upright = cell < needed && cell >= 11 && columns <= 32, most = 18;
  const below = upright ? 6.2 * Math.min(letters, most) + 6 : 14;
  const high = Math.max(12, Math.min(18, cell)), height = rows * high + below + 20 + key;
  figure.querySelector("svg")?.remove();
  const svg = ts.svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: 0, "aria-label": `${ts.say(data.name)}: ${ts.human(data.low, data.unit)} … ${ts.human(data.high, data.unit)}` });
  figure.querySelector(".canvas").prepend(svg);
  const scale = data.log ? Math.log : (v) => v;
  const a = scale(data.low), b = scale(data.high);
  const share = (v) => (typeof v !== "number" || (data.log && v <= 0) ? null : b > a ? (scale(v) - a) / (b - a) : 0.5);
  const fits = Math.max(4, Math.floor((left - 12) / 6.2));
  data.rows.forEach((name, r) => {
    const label = ts.svg("text", { x: left - 6, y: r * high + high - 4, "text-anchor": "end", class: "tick" }, svg, name.length > fits ? `…${name.slice(-(fits - 1))}` : name);
    ts.svg("title", {}, label, name);
    data.values[r].forEach((v, c) => {
      const s = share(v);
      const rect = ts.svg("rect", { x: left + c * cell, y: r * high, width: Math.max(cell - 0.6, 0.8), height: high - 0.6, class: s === null ? "cell empty" : "cell" }, svg);
      if (s !== null) rect.style.fill = ts.shade(s); else if (typeof v === "string") rect.setAttribute("class", "cell wrong");
      rect.dataset.at = `${r},${c}`;
    });
  });
  const every = upright ? 1 : Math.max(1, Math.ceil(needed / cell));
  for (let c = 0; c < columns; c += every) {
    const x = left + (c + 0.5) * cell, y = rows * high + (upright ? 6 : 14), name = data.columns[c];
    const place = upright ? { x, y, "text-anchor": "end", transform: `rotate(-90 ${x} ${y})`, dy: "0.35em" } : { x: c === 0 && cell < needed ? left : x, y, "text-anchor": c === 0 && cell < needed ? "start" : "middle" };
    const cut = upright && name.length > most;
    const label = ts.svg("text", { ...place, class: "tick column" }, svg, cut ? `…${name.slice(1 - most)}` : name);
    if (cut) ts.svg("title", {}, label, name);
  }
  if (ts.say(data.x_name)) ts.svg("text", { x: 4, y: rows * high + 14, class: "axis" }, svg, ts.say(data.x_name));
  const wide = Math.min(220, width - left - 8), top = rows * high + below + 10;
  for (let i = 0; i < 44; i += 1) ts.svg("rect", { x: left + (i * wide) / 44, y: top, width: wide / 44 + 0.5, height: 9 }, svg).style.fill = ts.shade(i / 43);
  ts.svg("text", { x: left, y: top + 21, class: "tick" }, svg, ts.human(data.low, data.unit));
  ts.svg("text", { x: left + wide, y: top + 21, "text-anchor": "end", class: "tick" }, svg, `${ts.human(data.high, data.unit)}${data.log ? ts.pick(" (log)", "（对数）") : ""}`);
  const tip = ts.tip(figure);
  svg.addEventListener("pointermove", (event) => {
    const place = event.target.dataset?.at;
    if (!place) { tip.hide(); return; }
    const [r, c] = place.split(",").map(Number), box = svg.getBoundingClientRect();
    tip.show(event.clientX - box.left, event.clientY - box.top + 12, [["", data.rows[r]], ["", `${ts.say(data.x_name)} ${data.columns[c] ?? c}`, ts.human(data.values[r][c], data.unit)]]);
  });
  svg.addEventListener("pointerleave", () => tip.hide());
};
ts.shade = (s) => `color-mix(in oklab, var(--heat-high) ${(100 * s).toFixed(0)}%, var(--heat-low))`;
