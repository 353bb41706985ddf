"use strict";
// Small helpers that all charts use: elements, words in two languages, numbers with units.
const ts = {};
ts.root = document.documentElement;
ts.lang = () => ts.root.dataset.lang;
ts.say = (words) => (words && typeof words === "object" ? words[ts.lang()] ?? words.en : words ?? "");
ts.pick = (en, zh) => (ts.lang() === "zh" ? zh : en);

ts.svg = (name, attributes = {}, parent = null, text = "") => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};
ts.html = (name, attributes = {}, parent = null, text = "") => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  if (parent) parent.append(made);
  return made;
};
ts.colour = (index) => `var(--c${(index % 8) + 1})`;

const steps = ["", "k", "M", "G", "T", "P", "E"];
const binary = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const decimal = new Set(["FLOP", "MAC", "FLOP/s", "B/s", "FLOP/B", "Hz", "token/s"]);
ts.digits = (value, count = 4) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(Math.max(0, count - 2)).replace(/\.?0+e/, "e").replace("e+", "e");
  const shown = Number(value.toPrecision(count));
  return size >= 1000 ? shown.toLocaleString("en-US") : String(shown);
};
ts.human = (value, unit = "") => {
  if (typeof value === "string") return value; // nan, inf
  if (value === null || value === undefined) return "–";
  const scaled = (base, names) => {
    let at = 0, size = value;
    while (Math.abs(size) >= base && at < names.length - 1) { size /= base; at += 1; }
    return `${ts.digits(size)} ${names[at]}`;
  };
  if (unit === "B") return scaled(1024, binary);
  if (decimal.has(unit)) return scaled(1000, steps.map((step) => step + unit));
  if (unit === "s" && value !== 0 && Math.abs(value) < 1) {
    for (const [factor, name] of [[1e3, "ms"], [1e6, "µs"], [1e9, "ns"]]) {
      if (Math.abs(value) * factor >= 1 || name === "ns") return `${ts.digits(value * factor)} ${name}`;
    }
  }
  return `${ts.digits(value)}${unit ? ` ${unit}` : ""}`;
};

// One box beside the pointer, inside its figure; it names what is under the pointer.
ts.tip = (figure) => {
  let box = figure.querySelector(".tip");
  if (!box) box = ts.html("div", { class: "tip", role: "status", hidden: "" }, figure);
  return {
    show(x, y, rows) {
      box.replaceChildren();
      for (const [colour, name, value] of rows) {
        const row = ts.html("div", {}, box);
        if (colour) ts.html("i", {}, row).style.background = colour;
        ts.html("span", {}, row, name);
        if (value !== undefined) ts.html("b", {}, row, value);
      }
      box.hidden = false;
      const room = figure.clientWidth, width = box.offsetWidth;
      box.style.left = `${Math.max(0, x + 14 + width > room ? x - width - 14 : x + 14)}px`;
      box.style.top = `${y}px`;
    },
    hide() { box.hidden = true; },
  };
};

ts.charts = {}; // kind → draw(figure, data), filled by the files that follow
