"use strict";
(() => {
  const root = document.documentElement;
  const findings = [...document.querySelectorAll(".finding")];
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const group = document.getElementById("group");
  const fixable = document.getElementById("fixable");
  const levels = [...document.querySelectorAll("input[name=level]")];
  const keep = {
    get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* a file:// page may have no storage */ } },
  };
  let current = -1;

  function filter() {
    if (!search) return;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const on = new Set(levels.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    for (const item of findings) {
      const data = item.dataset;
      const fits = on.has(data.level)
        && words.every((word) => data.words.includes(word))
        && (!group.value || data.group === group.value)
        && (!fixable.checked || data.fix === "1");
      item.hidden = !fits;
      count += fits;
    }
    for (const file of document.querySelectorAll(".file")) {
      file.hidden = !file.querySelector(".finding:not([hidden])");
    }
    shown.textContent = `${count} / ${findings.length}`;
  }

  function visible() { return findings.filter((item) => !item.hidden); }
  function go(step) {
    const list = visible();
    if (!list.length) return;
    const at = list.indexOf(findings[current]);
    const next = list[Math.min(Math.max(at + step, 0), list.length - 1)];
    if (current >= 0) findings[current].classList.remove("current");
    current = findings.indexOf(next);
    next.classList.add("current");
    next.querySelector("summary").focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  }
  function theme() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    keep.set("torchstone-theme", root.dataset.theme);
  }
  function language() {
    root.dataset.lang = root.dataset.lang === "zh" ? "en" : "zh";
    root.lang = root.dataset.lang;
  }
  function toggleAll() {
    const list = visible();
    const open = !list.every((item) => item.open);
    for (const item of list) item.open = open;
  }
  const help = () => document.getElementById("keys").showModal();

  if (keep.get("torchstone-theme")) root.dataset.theme = keep.get("torchstone-theme");
  document.getElementById("theme").addEventListener("click", theme);
  document.getElementById("lang").addEventListener("click", language);
  if (!search) {
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const act = { t: theme, l: language }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
    return;
  }
  for (const box of [search, group, fixable, ...levels]) box.addEventListener("input", filter);
  document.getElementById("all").addEventListener("click", toggleAll);
  document.getElementById("help").addEventListener("click", help);
  for (const bar of document.querySelectorAll(".bar")) {
    bar.addEventListener("click", () => {
      search.value = search.value === bar.dataset.search ? "" : bar.dataset.search;
      filter();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === search) {
      if (event.key === "Escape") { search.value = ""; search.blur(); filter(); }
      return;
    }
    if (event.target.tagName === "SELECT") return;
    const act = {
      j: () => go(1), k: () => go(-1), t: theme, l: language, e: toggleAll, "?": help,
      "/": () => search.focus(),
      o: () => { if (current >= 0) findings[current].open = !findings[current].open; },
    }[event.key];
    if (act) { event.preventDefault(); act(); return; }
    const box = levels["123".indexOf(event.key)];
    if ("123".includes(event.key) && box) { box.checked = !box.checked; filter(); }
  });
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") target.open = true;
  filter();
  if (findings.length <= 12) for (const item of findings) item.open = true;
})();
