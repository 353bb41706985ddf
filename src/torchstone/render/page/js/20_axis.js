// An axis maps values to pixels, on a plain or a logarithmic scale, with round ticks.
ts.axis = (values, from, to, log, pad = 0) => {
  const good = values.filter((v) => typeof v === "number" && (!log || v > 0));
  let low = good.length ? Math.min(...ts.ends(good)) : 0;
  let high = good.length ? Math.max(...ts.ends(good)) : 1;
  if (log && !good.length) { low = 1; high = 10; }
  if (high === low) { const room = Math.abs(low) * 0.1 || 1; if (log) { low /= 1.2; high *= 1.2; } else { low -= room; high += room; } }
  const scale = log ? Math.log10 : (v) => v;
  let a = scale(low), b = scale(high);
  const room = (b - a) * pad;
  a -= room; b += room;
  return {
    log, low, high, from, to,
    at: (v) => (typeof v !== "number" || (log && v <= 0) ? null : from + ((scale(v) - a) / (b - a)) * (to - from)),
    back: (pixel) => { const v = a + ((pixel - from) / (to - from)) * (b - a); return log ? 10 ** v : v; },
    ticks: (count, unit = "") => (log ? ts.logTicks(a, b, count) : ts.roundTicks(a, b, count, unit)),
  };
};
// Math.min(...long) overflows the stack: ends of a long list by one walk.
ts.ends = (list) => { let low = Infinity, high = -Infinity; for (const v of list) { if (v < low) low = v; if (v > high) high = v; } return [low, high]; };
ts.roundTicks = (a, b, count, unit) => {
  const base = unit === "B" ? 1024 ** Math.floor(Math.log(Math.max(Math.abs(a), Math.abs(b)) || 1) / Math.log(1024)) : 1;
  const rough = (b - a) / base / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((m) => m >= rough) * base;
  const found = [];
  for (let v = Math.ceil(a / step) * step; v <= b + step * 1e-9; v += step) found.push(Math.abs(v) < step * 1e-9 ? 0 : Number(v.toPrecision(12)));
  return found;
};
ts.logTicks = (a, b, count) => {
  const found = [];
  const every = Math.max(1, Math.ceil((b - a) / Math.max(count, 1)));
  for (let e = Math.ceil(a - 1e-9); e <= b + 1e-9; e += every) found.push(10 ** e);
  if (found.length >= 2) return found;
  const within = [];
  for (let e = Math.floor(a); e <= b; e += 1) for (const m of [1, 2, 5]) { const v = Math.log10(m) + e; if (v >= a - 1e-9 && v <= b + 1e-9) within.push(m * 10 ** e); }
  return within.length >= 2 ? within : ts.roundTicks(10 ** a, 10 ** b, count, "").filter((v) => v > 0);
};
