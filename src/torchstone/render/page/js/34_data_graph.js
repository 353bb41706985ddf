// A graph of operators on a canvas: classes of equal structure are one box until a click opens them.
ts.dataGraph = {};
// Which boxes are seen: a class that is closed is one box, of an open one every member (at most 300).
ts.dataGraph.visible = (data, open) => {
  const classes = data.classes ??= (() => {
    const found = new Map();
    data.f.forEach((fold, v) => { if (!found.has(fold)) found.set(fold, []); found.get(fold).push(v); });
    return found;
  })();
  const boxes = [], home = new Array(data.f.length);
  const add = (members, fold) => {
    const sum = (values) => members.reduce((total, v) => total + values[v], 0);
    const at = boxes.length;
    for (const v of members) home[v] = at;
    boxes.push({ fold, members, label: data.labels[data.l[members[0]]], place: data.places[data.p[members[0]]], seconds: sum(data.s), bytes: sum(data.b), devices: data.d.map((stage) => stage[members[0]]) });
  };
  for (const [fold, members] of classes) {
    if (members.length > 1 && open.has(fold)) {
      for (const v of members.slice(0, 300)) add([v], fold);
      if (members.length > 300) add(members.slice(300), fold);
    } else add(members, fold);
  }
  const seen = new Set(), arrows = [];
  for (let i = 0; i < data.e.length; i += 2) {
    const a = home[data.e[i]], b = home[data.e[i + 1]], key = a * boxes.length + b;
    if (a !== b && !seen.has(key)) { seen.add(key); arrows.push([a, b]); }
  }
  return { boxes, arrows };
};
// Layers by the longest path; in a layer boxes stand near the middle of what they depend on.
ts.dataGraph.layout = ({ boxes, arrows }) => {
  const into = boxes.map(() => []), out = boxes.map(() => []), waiting = boxes.map(() => 0), layer = boxes.map(() => 0);
  for (const [a, b] of arrows) { out[a].push(b); into[b].push(a); waiting[b] += 1; }
  const ready = boxes.map((_, i) => i).filter((i) => !waiting[i]);
  for (let at = 0; at < ready.length; at += 1) for (const b of out[ready[at]]) { layer[b] = Math.max(layer[b], layer[ready[at]] + 1); if (!(waiting[b] -= 1)) ready.push(b); }
  const rows = [];
  boxes.forEach((_, i) => { (rows[layer[i]] ??= []).push(i); });
  const order = boxes.map(() => 0);
  const number = (row) => row.forEach((i, x) => { order[i] = x - row.length / 2; });
  rows.forEach(number);
  for (let turn = 0; turn < 4; turn += 1) {
    for (const row of turn % 2 ? [...rows].reverse() : rows) {
      const near = turn % 2 ? out : into, middle = new Map();
      for (const i of row) middle.set(i, near[i].length ? near[i].reduce((sum, j) => sum + order[j], 0) / near[i].length : order[i]);
      row.sort((i, j) => middle.get(i) - middle.get(j));
      number(row);
    }
  }
  const across = 190, down = 74, most = 48; // a wide layer is broken into lines
  let y = 0, width = 0;
  for (const row of rows) {
    const columns = Math.min(row.length, most);
    row.forEach((i, n) => {
      const line = Math.floor(n / most), inLine = Math.min(columns, row.length - line * most);
      boxes[i].x = ((n % most) - (inLine - 1) / 2) * across;
      boxes[i].y = y + line * 40;
    });
    width = Math.max(width, columns * across);
    y += down + Math.floor((row.length - 1) / most) * 40;
  }
  return { width: Math.max(width, across), height: Math.max(y, down) };
};
ts.charts.data_graph = (figure, data) => {
  const state = figure.state ??= { open: new Set(), search: "", colour: data.d.length ? "device" : "time", table: false, view: null };
  const area = figure.querySelector(".canvas");
  if (!state.bar) ts.dataGraph.bar(figure, data, state, area);
  ts.dataGraph.words(figure, data, state);
  const graph = ts.dataGraph.visible(data, state.open);
  if (state.key !== [...state.open].join()) { state.key = [...state.open].join(); state.size = ts.dataGraph.layout(graph); state.graph = graph; state.view = null; }
  figure.dataset.boxes = state.graph.boxes.length;
  area.hidden = state.table;
  state.list.hidden = !state.table;
  state.legend.hidden = state.table;
  if (state.table) ts.dataGraph.table(figure, data, state);
  else ts.dataGraph.paint(figure, data, state, area);
};
ts.dataGraph.bar = (figure, data, state, area) => {
  const bar = state.bar = ts.html("div", { class: "flame-bar" });
  area.before(bar);
  state.find = ts.html("input", { type: "search", class: "flame-search" }, bar);
  state.find.addEventListener("input", () => { state.search = state.find.value.toLowerCase(); ts.draw(figure); });
  state.find.addEventListener("keydown", (event) => { if (event.key === "Enter") { ts.dataGraph.goTo(figure, data, state); event.preventDefault(); } });
  state.pick = ts.html("select", {}, bar);
  for (const value of ["time", "bytes", ...(data.d.length ? ["device"] : [])]) ts.html("option", { value }, state.pick);
  state.pick.value = state.colour;
  state.pick.addEventListener("change", () => { state.colour = state.pick.value; ts.draw(figure); });
  const button = (act) => { const made = ts.html("button", { type: "button" }, bar); made.addEventListener("click", act); return made; };
  const zoom = (factor) => { ts.dataGraph.zoom(state, factor); ts.draw(figure); };
  state.buttons = {
    larger: button(() => zoom(1.4)), smaller: button(() => zoom(1 / 1.4)),
    whole: button(() => { state.view = null; state.whole = true; ts.draw(figure); }),
    fold: button(() => { state.open.clear(); ts.draw(figure); }),
    table: button(() => { state.table = !state.table; ts.draw(figure); }),
  };
  state.count = ts.html("span", { class: "soft", role: "status" }, bar);
  state.legend = ts.html("div", { class: "legend" });
  area.after(state.legend);
  state.list = ts.html("div", { class: "scroll", hidden: "" });
  state.legend.after(state.list);
  state.canvas = ts.html("canvas", { tabindex: 0, role: "img" }, area);
  ts.dataGraph.listen(figure, data, state);
};
ts.dataGraph.words = (figure, data, state) => {
  const { larger, smaller, whole, fold, table } = state.buttons;
  const label = (item, words, name = words) => { item.textContent = words; item.setAttribute("aria-label", name); };
  label(larger, "+", ts.pick("zoom in", "放大")); label(smaller, "–", ts.pick("zoom out", "缩小"));
  label(whole, ts.pick("whole graph", "显示全图")); label(fold, ts.pick("fold all", "全部折叠"));
  label(table, state.table ? ts.pick("graph", "图") : ts.pick("table", "表格"));
  table.setAttribute("aria-pressed", state.table);
  state.find.placeholder = ts.pick("search operators", "搜索算子");
  state.find.setAttribute("aria-label", state.find.placeholder);
  state.pick.setAttribute("aria-label", ts.pick("colour by", "着色依据"));
  const names = { time: ts.pick("colour by time", "按时间着色"), bytes: ts.pick("colour by bytes", "按字节数着色"), device: ts.pick("colour by device", "按设备着色") };
  for (const option of state.pick.options) option.textContent = names[option.value];
  state.canvas.setAttribute("aria-label", `${ts.say(data.name)}: ${data.l.length} ${ts.pick("operators; the table has them as text", "个算子；表格视图以文字列出")}`);
};
ts.dataGraph.panels = (data, state) => (state.colour === "device" && data.d.length > 1 ? data.d.map((_, stage) => stage) : [data.d.length - 1]);
// The whole graph; where its names could not be read, its beginning instead.
ts.dataGraph.fit = (data, state, width, height, whole) => {
  const panels = ts.dataGraph.panels(data, state).length;
  const scale = Math.min((width / panels - 20) / state.size.width, (height - 40) / state.size.height, 1.2);
  if (whole || scale > 0.42) return { scale, x: 0, y: -state.size.height / 2 + 20 };
  return { scale: 0.6, x: 0, y: -height / 2 / 0.6 + 60 };
};
ts.dataGraph.zoom = (state, factor) => { if (state.view) state.view = { ...state.view, scale: Math.min(4, Math.max(0.01, state.view.scale * factor)) }; };
ts.dataGraph.paint = (figure, data, state, area) => {
  const canvas = state.canvas, width = Math.max(figure.clientWidth, 260), ratio = devicePixelRatio || 1;
  const height = Math.min(Math.max(state.size.height + 60, 220), 560);
  canvas.width = width * ratio; canvas.height = height * ratio;
  canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
  state.view ??= ts.dataGraph.fit(data, state, width, height, state.whole);
  state.whole = false;
  const pen = canvas.getContext("2d"), style = getComputedStyle(ts.root), css = (name) => style.getPropertyValue(name).trim();
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  const colours = { ink: css("--ink"), soft: css("--soft"), line: css("--line"), accent: css("--accent"), panel: css("--panel"), bad: css("--high"), device: (d) => css(`--c${(d % 8) + 1}`) || css("--accent") };
  const panels = ts.dataGraph.panels(data, state);
  state.painted = panels.map((stage, n) => ({ stage, left: (n * width) / panels.length, width: width / panels.length, height }));
  for (const panel of state.painted) ts.dataGraph.panel(pen, data, state, panel, colours);
  ts.dataGraph.legend(data, state, colours);
  const lit = state.graph.boxes.filter((box) => ts.dataGraph.matches(box, state)).length;
  state.count.textContent = state.search ? ts.pick(`${lit} of ${state.graph.boxes.length} boxes match`, `${state.graph.boxes.length} 个方框中 ${lit} 个匹配`) : ts.pick(`${data.l.length.toLocaleString("en-US")} operators in ${state.graph.boxes.length.toLocaleString("en-US")} boxes`, `${data.l.length.toLocaleString("en-US")} 个算子，${state.graph.boxes.length.toLocaleString("en-US")} 个方框`);
};
ts.dataGraph.matches = (box, state) => !state.search || box.label.toLowerCase().includes(state.search) || box.place.toLowerCase().includes(state.search);
ts.dataGraph.at = (state, panel, box) => [panel.left + panel.width / 2 + (box.x + state.view.x) * state.view.scale, panel.height / 2 + (box.y + state.view.y) * state.view.scale];
ts.dataGraph.panel = (pen, data, state, panel, colours) => {
  const { scale } = state.view, wide = 170 * scale, high = 30 * scale, graph = state.graph;
  pen.save();
  pen.beginPath(); pen.rect(panel.left, 0, panel.width, panel.height); pen.clip();
  const places = graph.boxes.map((box) => ts.dataGraph.at(state, panel, box));
  const inside = ([x, y]) => x > panel.left - wide && x < panel.left + panel.width + wide && y > -high && y < panel.height + high;
  pen.strokeStyle = colours.soft; pen.fillStyle = colours.soft; pen.globalAlpha = 0.5; pen.lineWidth = Math.max(0.4, Math.min(1.2, scale * 1.4));
  pen.beginPath();
  for (const [a, b] of graph.arrows) {
    const p = places[a], q = places[b];
    if (!inside(p) && !inside(q)) continue;
    const y1 = p[1] + high / 2, y2 = q[1] - high / 2, bend = (y2 - y1) / 2;
    pen.moveTo(p[0], y1); pen.bezierCurveTo(p[0], y1 + bend, q[0], y2 - bend, q[0], y2);
    if (scale > 0.25) { pen.moveTo(q[0] - 4 * scale, y2 - 7 * scale); pen.lineTo(q[0], y2); pen.lineTo(q[0] + 4 * scale, y2 - 7 * scale); }
  }
  pen.stroke();
  const value = (box) => (state.colour === "bytes" ? box.bytes : box.seconds);
  const top = Math.max(...graph.boxes.map(value), 1e-12);
  pen.font = `${Math.max(6, 12 * scale)}px system-ui, sans-serif`; pen.textAlign = "center"; pen.textBaseline = "middle";
  graph.boxes.forEach((box, i) => {
    if (!inside(places[i])) return;
    const [x, y] = places[i], faint = !ts.dataGraph.matches(box, state);
    const device = panel.stage >= 0 ? box.devices[panel.stage] : -1;
    const colour = state.colour === "device" && device >= 0 ? colours.device(device) : colours.accent;
    pen.globalAlpha = faint ? 0.15 : 1;
    pen.fillStyle = colours.panel; pen.fillRect(x - wide / 2, y - high / 2, wide, high);
    pen.globalAlpha = (faint ? 0.2 : 1) * (state.colour === "device" ? 0.4 : 0.08 + 0.8 * Math.sqrt(value(box) / top));
    pen.fillStyle = colour; pen.fillRect(x - wide / 2, y - high / 2, wide, high);
    pen.globalAlpha = faint ? 0.2 : 1;
    pen.strokeStyle = !faint && state.search ? colours.bad : colour; pen.lineWidth = Math.max(0.5, (box.members.length > 1 ? 2 : 1) * Math.min(scale, 1));
    pen.strokeRect(x - wide / 2, y - high / 2, wide, high);
    if (box.members.length > 1 && scale > 0.2) pen.strokeRect(x - wide / 2 + 3 * scale, y - high / 2 - 3 * scale, wide, 3 * scale);
    if (scale > 0.42) {
      const many = box.members.length > 1 ? ` ×${box.members.length.toLocaleString("en-US")}` : "";
      const room = 26 - many.length, name = box.label.length > room ? `…${box.label.slice(1 - room)}` : box.label;
      pen.fillStyle = colours.ink; pen.fillText(name + many, x, y + 0.5);
    }
  });
  pen.globalAlpha = 1;
  if (data.stages.length && state.painted.length > 1) { pen.fillStyle = colours.ink; pen.font = "13px system-ui, sans-serif"; pen.fillText(ts.say(data.stages[panel.stage] ?? ""), panel.left + panel.width / 2, 12); }
  if (panel.left) { pen.strokeStyle = colours.line; pen.beginPath(); pen.moveTo(panel.left, 0); pen.lineTo(panel.left, panel.height); pen.stroke(); }
  pen.restore();
};
ts.dataGraph.legend = (data, state, colours) => {
  state.legend.replaceChildren();
  const item = (colour, words) => { const made = ts.html("span", {}, state.legend); if (colour) ts.html("i", {}, made).style.background = colour; made.append(words); };
  if (state.colour === "device") data.devices.forEach((name, d) => item(colours.device(d), name));
  else item(colours.accent, state.colour === "time" ? ts.pick("the darker, the more time", "颜色越深，耗时越多") : ts.pick("the darker, the more bytes made", "颜色越深，产生的字节越多"));
  item("", ts.pick("a double edge stands for several operators of one structure: click to open, again to fold", "双边框代表多个结构相同的算子：点击展开，再点折叠"));
};
ts.dataGraph.table = (figure, data, state) => {
  state.list.replaceChildren();
  const table = ts.html("table", {}, state.list), head = ts.html("tr", {}, ts.html("thead", {}, table)), body = ts.html("tbody", {}, table);
  const columns = [ts.pick("operator", "算子"), ts.pick("count", "次数"), ts.pick("time", "时间"), ts.pick("bytes made", "产生字节"), ...data.d.map((_, n) => (data.stages.length ? ts.say(data.stages[n]) : ts.pick("device", "设备"))), ts.pick("where", "位置")];
  for (const name of columns) ts.html("th", { scope: "col" }, head, name);
  const shown = state.graph.boxes.filter((box) => ts.dataGraph.matches(box, state)).sort((a, b) => b.seconds - a.seconds);
  for (const box of shown.slice(0, 500)) {
    const row = ts.html("tr", {}, body);
    for (const words of [box.label, box.members.length.toLocaleString("en-US"), ts.human(box.seconds, "s"), ts.human(box.bytes, "B"), ...box.devices.map((d) => data.devices[d] ?? "–"), box.place]) ts.html("td", {}, row, words);
  }
  state.count.textContent = shown.length > 500 ? ts.pick(`the slowest 500 of ${shown.length}`, `${shown.length} 个中最慢的 500 个`) : ts.pick(`${shown.length} rows`, `${shown.length} 行`);
};
ts.dataGraph.under = (state, x, y) => {
  const panel = state.painted?.find((one) => x >= one.left && x < one.left + one.width);
  if (!panel) return null;
  const wide = 85 * state.view.scale, high = 15 * state.view.scale;
  const box = state.graph.boxes.find((one) => { const [bx, by] = ts.dataGraph.at(state, panel, one); return Math.abs(bx - x) <= wide && Math.abs(by - y) <= high; });
  return box ? { box, panel } : null;
};
ts.dataGraph.goTo = (figure, data, state) => {
  const found = state.graph.boxes.filter((box) => ts.dataGraph.matches(box, state)), next = found[(state.found = ((state.found ?? -1) + 1) % (found.length || 1))];
  if (!next) return;
  state.view = { scale: Math.max(state.view?.scale ?? 1, 0.6), x: -next.x, y: -next.y };
  ts.draw(figure);
};
ts.dataGraph.listen = (figure, data, state) => {
  const canvas = state.canvas, tip = ts.tip(figure);
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = { x: event.offsetX, y: event.offsetY, view: { ...state.view }, moved: false }; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    if (held) {
      const dx = event.offsetX - held.x, dy = event.offsetY - held.y;
      if (Math.abs(dx) + Math.abs(dy) > 4) { held.moved = true; state.view = { ...held.view, x: held.view.x + dx / held.view.scale, y: held.view.y + dy / held.view.scale }; tip.hide(); ts.draw(figure); }
      return;
    }
    const hit = ts.dataGraph.under(state, event.offsetX, event.offsetY);
    canvas.style.cursor = hit ? "pointer" : "grab";
    if (!hit) { tip.hide(); return; }
    const { box, panel } = hit;
    const rows = [["", box.label, box.members.length > 1 ? `×${box.members.length.toLocaleString("en-US")}` : ""], ["", ts.pick("time", "时间"), ts.human(box.seconds, "s")], ["", ts.pick("bytes made", "产生字节"), ts.human(box.bytes, "B")]];
    if (panel.stage >= 0 && box.devices[panel.stage] >= 0) rows.push(["", ts.pick("device", "设备"), data.devices[box.devices[panel.stage]]]);
    if (box.place) rows.push(["", box.place]);
    tip.show(event.offsetX, event.offsetY + canvas.offsetTop + 18, rows);
  });
  canvas.addEventListener("pointerleave", () => tip.hide());
  canvas.addEventListener("pointerup", (event) => {
    const moved = held?.moved;
    held = null;
    if (moved) return;
    const hit = ts.dataGraph.under(state, event.offsetX, event.offsetY), size = hit && data.classes.get(hit.box.fold).length;
    if (!hit || size < 2) return;
    tip.hide();
    if (state.open.has(hit.box.fold)) state.open.delete(hit.box.fold); else state.open.add(hit.box.fold);
    ts.draw(figure);
  });
  canvas.addEventListener("wheel", (event) => { if (!event.ctrlKey) return; event.preventDefault(); ts.dataGraph.zoom(state, event.deltaY < 0 ? 1.15 : 1 / 1.15); ts.draw(figure); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = 60 / state.view.scale, moves = { ArrowLeft: [step, 0], ArrowRight: [-step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (moves) { state.view = { ...state.view, x: state.view.x + moves[0], y: state.view.y + moves[1] }; event.preventDefault(); ts.draw(figure); }
    if (event.key === "+" || event.key === "-") { ts.dataGraph.zoom(state, event.key === "+" ? 1.3 : 1 / 1.3); ts.draw(figure); }
  });
};
