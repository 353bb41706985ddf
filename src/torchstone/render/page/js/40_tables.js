// Tables sort by a click on a heading; every block of code has a button that copies it.
for (const head of document.querySelectorAll("table.sortable thead")) {
  const body = head.parentElement.tBodies[0];
  [...head.rows[0].cells].forEach((cell, column) => {
    const button = ts.html("button", { type: "button", class: "sort" });
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => {
      const up = cell.getAttribute("aria-sort") === "descending";
      for (const other of head.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => { const c = row.cells[column], v = c.dataset.value; return v === undefined ? c.textContent : Number(v); };
      const rows = [...body.rows].sort((p, q) => {
        const a = value(p), b = value(q);
        const order = typeof a === "number" && typeof b === "number" ? a - b : typeof a === "number" ? 1 : typeof b === "number" ? -1 : a.localeCompare(b, undefined, { numeric: true });
        return up ? order : -order;
      });
      body.append(...rows);
    });
  });
}
ts.addCopyButtons = () => {
  for (const block of document.querySelectorAll("[data-copy]")) {
    const button = ts.html("button", { type: "button", class: "copy" });
    block.append(button);
    button.addEventListener("click", async (event) => {
      event.preventDefault();
      const text = block.dataset.copy || (block.querySelector("pre,code") ?? block).innerText;
      try { await navigator.clipboard.writeText(text); } catch {
        const area = ts.html("textarea", {}, document.body); area.value = text; area.select(); document.execCommand("copy"); area.remove();
      }
      button.textContent = ts.pick("copied", "已复制");
      setTimeout(() => { button.textContent = ts.pick("copy", "复制"); }, 1500);
    });
  }
};
