// Curves or bars over one axis: hover with a crosshair, zoom by dragging, a legend that switches.
ts.charts.plot = (figure, data) => {
  const state = figure.state ??= { off: new Set(), range: null };
  const width = Math.max(figure.clientWidth, 240), height = figure.closest(".grid") ? 190 : 250;
  const shown = data.series.filter((_, i) => !state.off.has(i));
  const unit = new Set(data.series.map((s) => s.unit)).size === 1 ? data.series[0]?.unit ?? "" : "";
  const yTicksUnit = (v) => ts.human(v, unit);
  const bottom = height - 34, right = width - 10;
  const inside = (s) => (state.range ? s.x.map((x, i) => (x >= state.range[0] && x <= state.range[1] ? i : -1)).filter((i) => i >= 0) : s.x.map((_, i) => i));
  const picked = shown.map((s) => inside(s));
  const ys = shown.flatMap((s, n) => picked[n].flatMap((i) => [s.y[i], s.low?.[i] ?? s.y[i], s.high?.[i] ?? s.y[i]]));
  if (data.bars) ys.push(0);
  const probe = ts.axis(ys, bottom, 12, data.log_y, 0.04);
  const labels = probe.ticks(4, unit).map(yTicksUnit);
  const left = Math.min(width / 3, 18 + 6.6 * Math.max(3, ...labels.map((l) => l.length)));
  const xs = state.range ?? shown.flatMap((s) => s.x);
  const slot = (right - left) / Math.max(1, ...shown.map((s) => s.x.length));
  const inset = data.bars ? slot / 2 : 0;
  const x = ts.axis(xs, left + inset, right - inset, data.log_x), y = ts.axis(ys, bottom, 12, data.log_y, 0.04);

  figure.querySelector("svg")?.remove();
  const svg = ts.svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: 0, "aria-label": ts.describe(data) });
  figure.querySelector(".canvas").prepend(svg);
  const clip = `clip${ts.serial = (ts.serial ?? 0) + 1}`;
  ts.svg("rect", { x: left, y: 0, width: right - left, height: bottom + 1 }, ts.svg("clipPath", { id: clip }, ts.svg("defs", {}, svg)));
  for (const tick of y.ticks(4, unit)) {
    const py = y.at(tick);
    if (py === null || py < 6 || py > bottom + 1) continue;
    ts.svg("line", { x1: left, x2: right, y1: py, y2: py, class: "grid-line" }, svg);
    ts.svg("text", { x: left - 6, y: py + 4, "text-anchor": "end", class: "tick" }, svg, yTicksUnit(tick));
  }
  let last = -Infinity;
  for (const tick of x.ticks(Math.max(2, Math.floor(width / 110)))) {
    const px = x.at(tick), text = ts.human(tick), half = text.length * 3.4;
    if (px === null || px - half < last || px < left - 1 || px > right + 1) continue;
    last = px + half + 6;
    ts.svg("text", { x: Math.min(px, right - half), y: bottom + 15, "text-anchor": "middle", class: "tick" }, svg, text);
  }
  const names = [ts.say(data.x_name), data.log_x ? ts.pick("(log scale)", "（对数坐标）") : ""].join(" ").trim();
  ts.svg("text", { x: right, y: height - 4, "text-anchor": "end", class: "axis" }, svg, names);
  const yName = [unit && ts.isScaled(unit) ? "" : ts.say(data.y_name), data.log_y ? ts.pick("log scale", "对数坐标") : ""].filter(Boolean).join(", ");
  if (yName) ts.svg("text", { x: 4, y: height - 4, class: "axis" }, svg, yName);

  const body = ts.svg("g", { "clip-path": `url(#${clip})` }, svg);
  shown.forEach((s, n) => {
    const colour = ts.colour(data.series.indexOf(s));
    if (s.low?.length) ts.band(body, s, picked[n], x, y, colour);
    (data.bars ? ts.bars : ts.curve)(body, s, picked[n], x, y, colour, { slot, bottom });
  });
  for (const s of data.series) (s.marks ?? []).forEach((mark, i) => {
    const px = x.at(mark);
    if (px === null || px < left || px > right) return;
    const line = ts.svg("line", { x1: px, x2: px, y1: 12, y2: bottom, class: "alert" }, svg);
    ts.svg("title", {}, line, `${ts.say(s.mark_names?.[i] ?? "")} ${ts.human(mark)}`.trim());
    ts.svg("path", { d: `M${px - 4} 4h8l-4 7z`, class: "alert-head" }, svg);
  });
  ts.interact(figure, svg, data, { x, y, left, right, bottom, shown, width, height, unit, state });
  ts.legend(figure, data, state);
};
ts.isScaled = (unit) => ["B", "s", "FLOP", "MAC", "FLOP/s", "B/s", "FLOP/B"].includes(unit);
ts.describe = (data) => `${ts.say(data.name)}: ${data.series.map((s) => { const [a, b] = ts.ends(s.y.filter((v) => typeof v === "number")); return `${ts.say(s.name)} ${ts.human(a, s.unit)} … ${ts.human(b, s.unit)}`; }).join("; ")}`;

ts.curve = (body, s, picked, x, y, colour, box) => {
  let path = "", open = false, single = null;
  const flush = () => { if (single) ts.svg("circle", { cx: single[0], cy: single[1], r: 2.5, fill: colour }, body); single = null; };
  for (const i of picked) {
    const px = x.at(s.x[i]), py = y.at(s.y[i]);
    if (py === null || px === null) {
      flush(); open = false;
      if (typeof s.y[i] === "string" && px !== null) { // not a number: shown at the edge, never left out
        const at = s.y[i] === "-inf" ? box.bottom - 4 : 16;
        ts.svg("title", {}, ts.svg("path", { d: `M${px - 4} ${at - 4}l8 8m0-8l-8 8`, class: "nonfinite" }, body), `${s.y[i]} (${ts.human(s.x[i])})`);
      }
      continue;
    }
    path += `${open ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`;
    single = open ? null : [px, py]; open = true;
  }
  flush();
  ts.svg("path", { d: path || "M0 0", fill: "none", stroke: colour, class: "curve" }, body);
};
ts.bars = (body, s, picked, x, y, colour, box) => {
  const room = Math.max(1, 0.8 * box.slot), floor = y.at(0) ?? box.bottom;
  for (const i of picked) {
    const px = x.at(s.x[i]), py = y.at(s.y[i]);
    if (px === null || py === null) continue;
    ts.svg("rect", { x: px - room / 2, y: Math.min(py, floor), width: room, height: Math.max(Math.abs(floor - py), 0.5), fill: colour }, body);
  }
};
ts.band = (body, s, picked, x, y, colour) => {
  const top = [], under = [];
  for (const i of picked) {
    const px = x.at(s.x[i]), a = y.at(s.low[i]), b = y.at(s.high[i]);
    if (px === null || a === null || b === null) continue;
    top.push(`${px.toFixed(1)},${b.toFixed(1)}`); under.unshift(`${px.toFixed(1)},${a.toFixed(1)}`);
  }
  if (top.length > 1) ts.svg("polygon", { points: [...top, ...under].join(" "), fill: colour, class: "band" }, body);
};

ts.nearest = (list, value) => {
  let low = 0, high = list.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (list[middle] < value) low = middle; else high = middle; }
  return Math.abs(list[low] - value) <= Math.abs(list[high] - value) ? low : high;
};
// A mark within a few pixels is what a person points at.
ts.snapped = (s, value, axis) => {
  const px = axis.at(value), near = (s.marks ?? []).filter((m) => Math.abs((axis.at(m) ?? Infinity) - px) < 6);
  return near.length ? near[0] : value;
};
ts.interact = (figure, svg, data, box) => {
  const tip = ts.tip(figure), cross = ts.svg("line", { y1: 12, y2: box.bottom, class: "cross", visibility: "hidden" }, svg);
  const dots = box.shown.map((s) => ts.svg("circle", { r: 3.5, fill: ts.colour(data.series.indexOf(s)), visibility: "hidden" }, svg));
  figure.point = (value, own) => {
    if (value === null) { tip.hide(); cross.setAttribute("visibility", "hidden"); dots.forEach((d) => d.setAttribute("visibility", "hidden")); return; }
    const rows = [];
    let px = null;
    box.shown.forEach((s, n) => {
      if (!s.x.length) return;
      const i = ts.nearest(s.x, ts.snapped(s, value, box.x)), at = box.x.at(s.x[i]), py = box.y.at(s.y[i]);
      if (px === null) { px = at; rows.push(["", `${ts.say(data.x_name)} ${ts.human(s.x[i])}`]); }
      const usual = s.low?.length && typeof s.low[i] === "number" ? ` (${ts.pick("usual", "通常")} ${ts.human(s.low[i], s.unit)} … ${ts.human(s.high[i], s.unit)})` : "";
      rows.push([ts.colour(data.series.indexOf(s)), ts.say(s.name), ts.human(s.y[i], s.unit) + usual]);
      const near = (s.marks ?? []).findIndex((m) => m === s.x[i]);
      if (near >= 0 && s.mark_names?.[near]) rows.push(["var(--high)", ts.say(s.mark_names[near])]);
      const ok = at !== null && py !== null;
      dots[n].setAttribute("visibility", ok ? "visible" : "hidden");
      if (ok) { dots[n].setAttribute("cx", at); dots[n].setAttribute("cy", py); }
    });
    if (px === null) return;
    cross.setAttribute("x1", px); cross.setAttribute("x2", px); cross.setAttribute("visibility", "visible");
    if (own) tip.show(px, 8, rows); else tip.hide();
  };
  const peers = () => [...(figure.closest(".grid")?.querySelectorAll("figure[data-kind=plot]") ?? [figure])].filter((f) => f.point && f.xName === ts.say(data.x_name));
  figure.xName = ts.say(data.x_name);
  const where = (event) => { const r = svg.getBoundingClientRect(); return ((event.clientX - r.left) / r.width) * box.width; };
  let start = null, brush = null;
  svg.addEventListener("pointermove", (event) => {
    const px = Math.min(Math.max(where(event), box.left), box.right);
    if (start !== null) {
      brush ??= ts.svg("rect", { y: 12, height: box.bottom - 12, class: "brush" }, svg);
      brush.setAttribute("x", Math.min(px, start)); brush.setAttribute("width", Math.abs(px - start));
    }
    const value = box.x.back(px);
    for (const peer of peers()) peer.point(value, peer === figure);
  });
  svg.addEventListener("pointerleave", () => { for (const peer of peers()) peer.point(null); });
  svg.addEventListener("pointerdown", (event) => { if (event.button === 0) { start = Math.max(where(event), box.left); svg.setPointerCapture(event.pointerId); } });
  svg.addEventListener("pointerup", (event) => {
    const end = Math.min(where(event), box.right);
    if (start !== null && Math.abs(end - start) > 8) {
      const range = [box.x.back(Math.min(start, end)), box.x.back(Math.max(start, end))];
      for (const peer of peers()) { peer.state.range = range; ts.draw(peer); }
    }
    start = null; brush?.remove(); brush = null;
  });
  const reset = () => { for (const peer of peers()) { peer.state.range = null; ts.draw(peer); } };
  svg.addEventListener("dblclick", reset);
  let at = null;
  svg.addEventListener("keydown", (event) => {
    const s = box.shown[0];
    if (!s?.x.length) return;
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (move) { at = Math.min(Math.max((at ?? -1) + move, 0), s.x.length - 1); figure.point(s.x[at], true); event.preventDefault(); event.stopPropagation(); }
    if (event.key === "Escape") { figure.point(null); reset(); }
  });
  let button = figure.querySelector(".reset");
  if (box.state.range && !button) {
    button = ts.html("button", { type: "button", class: "reset" }, figure.querySelector(".canvas"));
    button.addEventListener("click", reset);
  } else if (!box.state.range && button) { button.remove(); button = null; }
  if (button) button.textContent = ts.pick("whole range", "全部范围");
};
ts.legend = (figure, data, state) => {
  figure.querySelector(".legend")?.remove();
  if (data.series.length < 2) return;
  const list = ts.html("div", { class: "legend" }, figure.querySelector(".canvas"));
  data.series.forEach((s, i) => {
    const on = !state.off.has(i), button = ts.html("button", { type: "button", "aria-pressed": on }, list);
    ts.html("i", {}, button).style.background = ts.colour(i);
    button.append(ts.say(s.name));
    button.addEventListener("click", () => { if (on && state.off.size < data.series.length - 1) state.off.add(i); else state.off.delete(i); ts.draw(figure); });
  });
};
