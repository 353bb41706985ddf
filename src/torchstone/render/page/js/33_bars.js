// Parts of a whole as one bar with limits; spans on a time line; events of processes in lanes.
ts.wide = (text) => [...text].reduce((sum, c) => sum + (c > "\u2e7f" ? 12 : 6.6), 0);

ts.mergedLimits = (limits) => {
  const found = new Map();
  for (const limit of limits) found.set(limit.v, [...(found.get(limit.v) || []), ts.say(limit.n)]);
  return [...found].map(([v, names]) => ({ v, names })).sort((p, q) => p.v - q.v);
};

ts.charts.stack = (figure, data) => {
  const width = Math.max(figure.clientWidth, 240), left = 0;
  const whole = data.parts.reduce((sum, part) => sum + part.v, 0);
  // A limit far beyond the whole would squeeze the parts into one line: it is named at the end of the scale, with an arrow.
  const limits = ts.mergedLimits(data.limits), far = (limit) => limit.v > 4 * whole && whole > 0;
  const end = Math.max(whole, ...limits.filter((l) => !far(l)).map((l) => l.v)) * (limits.some(far) ? 1.15 : 1) || 1;
  const at = (v) => left + (v / end) * (width - left - 2);
  figure.querySelector("svg")?.remove(); figure.querySelector(".legend")?.remove();
  const rows = [], labels = limits.map((limit) => {
    const x = far(limit) ? width - 1 : Math.min(at(limit.v), width - 1), text = `${limit.names.join(", ")} ${ts.human(limit.v, data.unit)}${far(limit) ? " →" : ""}`, wide = Math.min(ts.wide(text), width);
    const start = Math.min(Math.max(x - wide / 2, 0), width - wide);
    let row = rows.findIndex((busy) => busy < start);
    if (row < 0) row = rows.push(0) - 1;
    rows[row] = start + wide + 8;
    return { x, text, start, row, far: far(limit) };
  });
  const high = 26, top = rows.length * 15 + (rows.length ? 3 : 2), height = top + high + 6;
  const svg = ts.svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${ts.say(data.name)}: ${data.parts.map((p) => `${ts.say(p.n)} ${ts.human(p.v, data.unit)}`).join(", ")}` });
  const canvas = figure.querySelector(".canvas"), tip = ts.tip(figure);
  canvas.prepend(svg);
  let sum = 0;
  data.parts.forEach((part, i) => {
    const rect = ts.svg("rect", { x: at(sum), y: top, width: Math.max(at(sum + part.v) - at(sum) - 0.8, 0.3), height: high, rx: 2 }, svg);
    rect.style.fill = ts.colour(i);
    const x = at(sum), text = `${ts.say(part.n)} ${ts.human(part.v, data.unit)}`;
    if (at(sum + part.v) - x > text.length * 7) ts.svg("text", { x: x + 6, y: top + 17, class: "on-bar" }, svg, text);
    rect.addEventListener("pointermove", () => tip.show(x, top + high + 4, [[ts.colour(i), ts.say(part.n), `${ts.human(part.v, data.unit)} (${((100 * part.v) / (whole || 1)).toFixed(1)} %)`]]));
    rect.addEventListener("pointerleave", () => tip.hide());
    sum += part.v;
  });
  for (const label of labels) {
    if (!label.far) ts.svg("line", { x1: label.x, x2: label.x, y1: top - 4, y2: top + high + 4, class: "limit" }, svg);
    ts.svg("text", { x: label.start, y: label.row * 15 + 11, class: "tick" }, svg, label.text);
  }
  const legend = ts.html("div", { class: "legend" }, canvas);
  data.parts.forEach((part, i) => { const item = ts.html("span", {}, legend); ts.html("i", {}, item).style.background = ts.colour(i); item.append(`${ts.say(part.n)} ${ts.human(part.v, data.unit)}`); });
};

ts.charts.timeline = (figure, data) => {
  const width = Math.max(figure.clientWidth, 240), lanes = [...new Set(data.spans.map((s) => s.lane))];
  const left = lanes.length > 1 || lanes[0] ? Math.min(120, 12 + 7 * Math.max(...lanes.map((l) => l.length))) : 4, row = 30;
  const end = Math.max(...data.spans.map((s) => s.start + s.length), 1e-9), at = (v) => left + (v / end) * (width - left - 6);
  const height = lanes.length * row + 22;
  figure.querySelector("svg")?.remove();
  const svg = ts.svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": ts.say(data.name) });
  figure.querySelector(".canvas").prepend(svg);
  const tip = ts.tip(figure);
  lanes.forEach((lane, i) => { if (lane) ts.svg("text", { x: left - 6, y: i * row + 19, "text-anchor": "end", class: "tick" }, svg, lane); });
  for (const span of data.spans) {
    const y = lanes.indexOf(span.lane) * row + 3, x = at(span.start), w = Math.max(at(span.start + span.length) - x - 1, 3);
    const g = ts.svg("g", { class: `span ${span.state}`, tabindex: 0, role: "button", "aria-label": `${ts.say(span.name)} ${ts.say(span.note)}` }, svg);
    ts.svg("rect", { x, y, width: w, height: row - 8, rx: 3 }, g);
    const name = ts.say(span.name), fits = Math.floor((w - 6) / 6.6);
    if (fits > 1) ts.svg("text", { x: x + 4, y: y + 15, class: "on-bar" }, g, name.length > fits ? `${name.slice(0, fits - 1)}…` : name);
    const show = () => tip.show(Math.min(x, width - 60), y + row, [["", name], ["", ts.say(span.note)]]);
    g.addEventListener("pointerenter", show); g.addEventListener("focus", show);
    g.addEventListener("pointerleave", () => tip.hide()); g.addEventListener("blur", () => tip.hide());
    const open = () => { const target = span.link && document.getElementById(span.link); if (target) { target.open = true; target.scrollIntoView({ block: "start" }); } };
    g.addEventListener("click", open);
    g.addEventListener("keydown", (event) => { if (event.key === "Enter") open(); });
  }
  for (const tick of ts.roundTicks(0, end, Math.max(2, width / 140), "")) ts.svg("text", { x: Math.min(at(tick), width - 24), y: height - 6, class: "tick", "text-anchor": tick ? "middle" : "start" }, svg, ts.human(tick, data.unit));
};

ts.charts.lanes = (figure, data) => {
  const nameWidth = (name) => [...name].reduce((sum, letter) => sum + (letter > "\u2e7f" ? 11 : 6.5), 0);
  const names = data.lanes.map((lane) => ts.say(lane.name)), left = Math.min(220, 30 + Math.max(28, ...names.map(nameWidth))), row = 34;
  const columns = Math.max(1, ...data.lanes.flatMap((lane) => lane.marks.map((m) => m.column + 1)));
  const room = Math.max(figure.clientWidth, 240), wide = Math.max(16, Math.min(90, (room - left - 8) / columns)), width = Math.max(room, left + columns * wide + 8);
  const height = data.lanes.length * row + 8;
  figure.querySelector("svg")?.remove();
  const svg = ts.svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": ts.say(data.name) });
  figure.querySelector(".canvas").prepend(svg);
  const tip = ts.tip(figure), groups = [...new Set(data.lanes.flatMap((lane) => lane.marks.map((m) => m.group)))];
  const mid = (i) => i * row + row / 2 + 2;
  data.lanes.forEach((lane, i) => {
    ts.svg("text", { x: 4, y: mid(i) + 4, class: `tick ${lane.state}` }, svg, names[i]);
    ts.svg("line", { x1: left, x2: width - 4, y1: mid(i), y2: mid(i), class: "grid-line" }, svg);
    for (const mark of lane.marks) {
      const x = left + mark.column * wide, w = Math.max(wide - 5, 8);
      const g = ts.svg("g", { class: `span ${mark.state}`, tabindex: 0, role: "img", "aria-label": `${names[i]}: ${mark.label} ${ts.say(mark.note)}` }, svg);
      const rect = ts.svg("rect", { x, y: mid(i) - 10, width: w, height: 20, rx: 3 }, g);
      if (mark.state === "plain") rect.style.fill = ts.colour(groups.indexOf(mark.group));
      const fits = Math.floor((w - 4) / 6.4);
      if (fits > 2) ts.svg("text", { x: x + 3, y: mid(i) + 4, class: "on-bar" }, g, mark.label.length > fits ? `${mark.label.slice(0, fits - 1)}…` : mark.label);
      const show = () => tip.show(Math.min(x, room - 60), mid(i) + 14, [["", names[i]], ["", mark.label], ...(ts.say(mark.note) ? [["", ts.say(mark.note)]] : []), ...(mark.group ? [["", mark.group]] : [])]);
      g.addEventListener("pointerenter", show); g.addEventListener("focus", show);
      g.addEventListener("pointerleave", () => tip.hide()); g.addEventListener("blur", () => tip.hide());
    }
  });
  for (const [from, to, why] of data.waits) {
    const x = left - 8, path = ts.svg("path", { d: `M${x} ${mid(from)}C${x - 26} ${mid(from)},${x - 26} ${mid(to)},${x} ${mid(to)}`, class: "wait" }, svg);
    ts.svg("title", {}, path, `${names[from]} → ${names[to]}: ${why}`);
    ts.svg("path", { d: `M${x} ${mid(to)}l-7 -4v8z`, class: "alert-head" }, svg);
  }
};
