// The charts of a comparison: regret over time, final regret, pulls.
const text = (x) => x === null ? "–"
  : Math.abs(x) >= 100 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(3)));
const short = (x) => x < 0 ? `−${short(-x)}` : x >= 1e6 ? `${Number((x / 1e6).toPrecision(3))}M`
  : x >= 1e4 ? `${Number((x / 1e3).toPrecision(3))}k` : Number(x.toPrecision(3)).toLocaleString("en");
const finite = (values) => values.filter((v) => v !== null && Number.isFinite(v));
const positive = (values) => values.filter((v) => v !== null && v > 0);
const negative = (values) => values.some((v) => v !== null && v < 0); // realised regret may be, and needs a linear axis

// --- regret over time ---
function curves(figure, problem) {
  const log = !problem.rows.some((row) => negative([...row.mean, ...row.median, ...row.q05]));
  const state = { x: true, y: log, mean: false, bands: true, bounds: true };
  const { shown, buttons, presets, legend } = chooser(problem.rows, { label: "Policies shown, lowest regret first", first: "best", redraw: () => draw() });
  const controls = tag("div", { class: "controls", role: "group", "aria-label": "What the chart shows" });
  const bounded = problem.rows.filter((row) => row.bound);
  const switches = [["x", "log pulls"], ["y", "log regret"], ["bands", "5–95 % bands"], ["mean", "mean, not median"]];
  if (bounded.length) switches.push(["bounds", "theory bounds"]);
  for (const [name, label] of switches) {
    const button = tag("button", { type: "button", "aria-pressed": state[name], "data-switch": name }, label);
    button.onclick = () => { state[name] = !state[name]; button.setAttribute("aria-pressed", state[name]); draw(); };
    controls.append(button);
  }
  buttons.forEach((button, i) => {
    button.onpointerenter = button.onfocus = () => emphasise(problem.rows[i]);
    button.onpointerleave = button.onblur = () => emphasise(null);
  });
  if (problem.rows.length > SHOWN) controls.append(...presets);
  const keys = tag("div", { class: "keys" });
  const tip = tag("div", { class: "tip", hidden: "", "aria-live": "polite" });
  const canvas = svg("svg", { role: "img", tabindex: 0, "aria-label": figure.dataset.alt });
  figure.prepend(controls, canvas, tip, legend, keys);
  let group = {}, view = null;
  const emphasise = (row) => {
    canvas.classList.toggle("focused", row !== null && shown.has(row));
    for (const [each, node] of Object.values(group)) node.classList.toggle("on", each === row);
  };

  function draw() {
    const width = Math.max(280, figure.clientWidth), height = width < 560 ? 300 : 420;
    const left = 54, right = width - 14, top = 10, bottom = height - 42;
    const line = state.mean ? "mean" : "median";
    const rows = problem.rows.filter((row) => shown.has(row));
    const values = rows.flatMap((row) => [...row[line], ...(state.bands ? [...row.q05, ...row.q95] : [])]);
    const extra = state.bounds && state.y ? rows.flatMap((row) => row.bound ? row.bound.values : []) : [];
    const high = Math.max(1e-9, ...finite(values), ...finite(extra)) * (state.y ? 1.25 : 1.04);
    const least = Math.min(high / 100, ...positive(rows.flatMap((row) => row[line])));
    const low = state.y ? Math.max(least, high / 1e6) : 1.04 * Math.min(0, ...finite(values));
    const T = problem.t[problem.t.length - 1];
    const x = scale(state.x ? problem.t[0] : 0, T, left, right, state.x);
    const y = scale(low, high, bottom, top, state.y);
    view = { x, y, top, bottom, left, right, rows, line, width };
    const clip = `${problem.id}-clip`;
    canvas.replaceChildren(svg("desc", {}, figure.dataset.alt),
      svg("clipPath", { id: clip }, svg("rect", { x: left, y: top, width: right - left, height: bottom - top })));
    set(canvas, { viewBox: `0 0 ${width} ${height}` });
    drawAxes(canvas, { x, y, left, right, bottom, height, label: "pulls", xText: short, yText: short });
    canvas.append(svg("text", { x: left + 6, y: top + 12 }, `${line} regret`));
    const plot = svg("g", { "clip-path": `url(#${clip})` });
    canvas.append(plot);
    const path = (list) => through(list.map((v, i) => v !== null && (!state.y || v > 0) ? [x(problem.t[i]), y(v)] : null));
    plot.append(svg("path", { class: "random", d: path(problem.t.map((t) => t * problem.random)) }));
    group = {};
    for (const row of [...rows].reverse()) {
      const series = svg("g", { class: "series", "data-policy": row.label });
      if (state.bands) {
        const floor = (v) => state.y ? Math.max(v, low / 2) : v;
        const edge = (name) => problem.t.map((t, i) => [x(t), y(floor(row[name][i]))]);
        series.append(svg("path", { class: "band", fill: ink(row), d: between(edge("q95"), edge("q05")) }));
      }
      if (state.bounds && row.bound) series.append(svg("path", { class: "bound", stroke: ink(row), d: path(row.bound.values) }));
      series.append(svg("path", { class: "line", stroke: ink(row), "stroke-dasharray": dash(row), d: path(row[line]) }));
      problem.t.forEach((t, i) => {
        const v = row[line][i];
        if ((i + 3 * row.style) % 9 === 0 && (!state.y || v > 0)) series.append(marker(row.style, x(t), y(v), 3.2, ink(row)));
      });
      plot.append(series);
      group[row.style] = [row, series];
    }
    keys.replaceChildren();
    const key = (path, words) => keys.append(tag("span", { class: "key" },
      svg("svg", { class: "swatch", viewBox: "0 0 30 12", "aria-hidden": "true" }, svg("path", { d: "M1,6H29", ...path })), words));
    key({ class: "random" }, "choosing arms at random");
    if (state.bounds) {
      for (const row of bounded.filter((each) => shown.has(each))) {
        key({ class: "bound", stroke: ink(row) }, `bound on the mean regret of ${row.label} (${row.bound.status})`);
      }
    }
    again();
  }

  function show(i) {
    canvas.querySelectorAll(".hover").forEach((node) => node.remove());
    tip.hidden = i === null;
    if (i === null) return;
    const at = view.x(problem.t[i]);
    const hover = svg("g", { class: "hover" }, svg("path", { class: "guide", d: `M${at},${view.top}V${view.bottom}` }));
    const ranked = [...view.rows].sort((a, b) => a[view.line][i] - b[view.line][i]);
    const rows = ranked.map((row) => {
      const v = row[view.line][i], y = view.y(v);
      if (Number.isFinite(y) && y >= view.top && y <= view.bottom) hover.append(marker(row.style, at, y, 4.5, ink(row)));
      return tag("tr", {}, tag("td", {}, row.label), tag("td", {}, text(v)),
        tag("td", { class: "muted" }, `${text(row.q05[i])} – ${text(row.q95[i])}`));
    });
    canvas.append(hover);
    const title = `${problem.t[i].toLocaleString("en")} pull${problem.t[i] === 1 ? "" : "s"}: ${view.line}, 5–95 %`;
    const top = canvas.getBoundingClientRect().top - figure.getBoundingClientRect().top + 24;
    showTip(tip, title, rows, { at, width: view.width, top, gap: 14 });
  }
  const again = readOut(canvas, () => problem.t.map(view.x), show);
  return draw;
}

// --- charts with one row per policy ---
function inRows(figure, problem, { rows, low, high, log, unit, paint, ticks, start = 0 }) {
  const canvas = svg("svg", { role: "img", "aria-label": figure.dataset.alt });
  const longest = Math.max(...rows.map((row) => row.label.length));
  figure.prepend(canvas);
  return () => {
    const width = Math.max(280, figure.clientWidth), narrow = width < 560;
    const step = narrow ? 38 : 26, left = narrow ? 6 : Math.min(250, 24 + LETTER * longest), right = width - 22, height = rows.length * step + 40;
    const isLog = log();
    const x = scale(isLog ? low : start, high, left, right, isLog);
    canvas.replaceChildren(svg("desc", {}, figure.dataset.alt));
    set(canvas, { viewBox: `0 0 ${width} ${height}` });
    for (const v of ticks ?? x.ticks) {
      canvas.append(svg("path", { class: "grid", d: `M${x(v)},0V${height - 34}` }),
        svg("text", { x: x(v), y: height - 20, "text-anchor": x(v) - left < 12 ? "start" : "middle" }, unit === "%" ? `${v} %` : short(v)));
    }
    if (unit !== "%") canvas.append(svg("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, unit));
    rows.forEach((row, i) => {
      const y = i * step + (narrow ? 27 : step / 2);
      canvas.append(svg("text", { class: "name", x: narrow ? 6 : left - 10, y: narrow ? y - 12 : y + 4, "text-anchor": narrow ? "start" : "end" },
        svg("title", {}, row.label), fitted(row.label, narrow ? width - 10 : left - 20)));
      const line = svg("g", { "data-policy": row.label });
      paint(line, row, y, (v) => isLog && v <= low ? left : x(v), x);
      canvas.append(line);
    });
  };
}

function distribution(figure, problem) {
  const all = problem.rows.flatMap((row) => [...row.dots, row.box[0], row.box[4], row.worst]);
  const least = Math.min(...positive(all), Infinity);
  const high = Math.max(1e-9, ...all);
  const low = Number.isFinite(least) ? Math.max(least * 0.9, high / 1e6) : high / 10;
  let log = !negative(all);
  const draw = inRows(figure, problem, {
    rows: problem.rows, low, high: high * 1.05, start: Math.min(0, 1.05 * Math.min(...all)), log: () => log, unit: "regret at the horizon",
    paint(group, row, y, x) {
      const [q05, q25, median, q75, q95] = row.box;
      group.append(svg("title", {}, `${row.label}: median ${text(median)}, 5–95 % ${text(q05)} – ${text(q95)}, worst ${text(row.worst)}`),
        svg("path", { d: `M${x(q05)},${y}H${x(q95)}`, stroke: ink(row), "stroke-width": 2, opacity: 0.55 }),
        svg("rect", { x: x(q25), y: y - 7, width: Math.max(1, x(q75) - x(q25)), height: 14, rx: 2, fill: ink(row), opacity: 0.3 }));
      row.dots.slice(0, -1).forEach((v, i) => group.append(svg("circle", { cx: x(v).toFixed(1), cy: (y - 5 + (i * 0.618 % 1) * 10).toFixed(1), r: 1.7, fill: ink(row), opacity: 0.7 })));
      group.append(svg("path", { d: `M${x(median)},${y - 9}v18`, stroke: "var(--ink)", "stroke-width": 2.5 }),
        marker(3, x(row.worst), y, 3.2, ink(row)));
    },
  });
  const button = tag("button", { type: "button", "aria-pressed": log, "data-switch": "log" }, "log regret");
  button.onclick = () => { log = !log; button.setAttribute("aria-pressed", log); draw(); };
  figure.prepend(tag("div", { class: "controls" }, button));
  return draw;
}

function pulls(figure, problem) {
  const order = problem.arms.map((_, i) => i).sort((a, b) => problem.arms[a].gap - problem.arms[b].gap);
  const worst = Math.max(...problem.arms.map((arm) => arm.gap)) || 1;
  const fill = (arm) => arm.gap === 0 ? "var(--good)"
    : `color-mix(in srgb, var(--bad) ${Math.round(25 + 70 * arm.gap / worst)}%, var(--paper))`;
  return inRows(figure, problem, {
    rows: problem.rows, low: 0, high: 100, log: () => false, unit: "%", ticks: [0, 25, 50, 75, 100],
    paint(group, row, y, _, x) {
      let start = 0;
      for (const i of order) {
        const arm = problem.arms[i], share = row.pulls[i], a = x(start), b = x(Math.min(100, start + share));
        group.append(svg("rect", { x: a.toFixed(2), y: y - 8, width: Math.max(0, b - a).toFixed(2), height: 16, fill: fill(arm),
          stroke: order.length < 15 ? "var(--paper)" : null, "stroke-width": 0.75 },
          svg("title", {}, `${row.label}: arm ${arm.name} (gap ${text(arm.gap)}) ${text(share)} % of pulls`)));
        start += share;
      }
    },
  });
}

for (const [name, chart] of Object.entries({ curves, distribution, pulls })) CHARTS[name] = (figure, number) => chart(figure, data.problems[number]);
start();
