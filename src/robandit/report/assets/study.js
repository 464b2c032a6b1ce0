// The charts of recorded rewards: tails, indices over k, distributions.
const SIDES = ["left", "right"];
const COSTS = data.noun === "cost"; // costs are minimised, rewards maximised
const TITLES = COSTS ? { left: "left: low costs, below the median", right: "right: high costs, above the median" }
  : { left: "left: losses, below the median", right: "right: gains, above the median" };

const plain = (x) => Number(x.toPrecision(3));
const text = (x) => x === null || !Number.isFinite(x) ? "–" : x === 0 ? "0"
  : Math.abs(x) >= 1e7 || Math.abs(x) < 1e-4 ? plain(x).toExponential().replace("+", "")
    : Math.abs(x) >= 1e6 ? `${plain(x / 1e6)}M` : Math.abs(x) >= 1e4 ? `${plain(x / 1e3)}k` : plain(x).toLocaleString("en", { maximumSignificantDigits: 3 });

// A chart of lines in one panel. `lines`: {row, x, y, kind}; `read` returns the rows of the tooltip at x.
function panel(host, { log = [true, true], labels, lines, bands = [], dots = [], limits = [], marks = [], range, ticks, xTicks, name, read, alt }) {
  const canvas = svg("svg", { role: "img", tabindex: 0, "aria-label": alt });
  const tip = tag("div", { class: "tip", hidden: "", "aria-live": "polite" });
  host.replaceChildren(...[...host.children].filter((node) => node.tagName === "H4"), canvas, tip);
  const width = Math.max(270, host.clientWidth), height = width < 420 ? 260 : 320;
  const left = 58, right = width - 12, top = 26, bottom = height - 42;
  const id = `clip${panel.count = (panel.count ?? 0) + 1}`;
  const x = scale(range.x[0], range.x[1], left, right, log[0], 48), y = scale(range.y[0], range.y[1], bottom, top, log[1], 48);
  set(canvas, { viewBox: `0 0 ${width} ${height}` });
  canvas.append(svg("desc", {}, alt),
    svg("clipPath", { id }, svg("rect", { x: left, y: top - 4, width: right - left + 4, height: bottom - top + 8 })));
  const names = new Map(ticks ?? y.ticks.map((v) => [v, text(v)]));
  const places = new Map(xTicks);
  if (xTicks) x.ticks = spaced(xTicks, right - left);
  drawAxes(canvas, { x, y, left, right, bottom, height, label: labels[0], xText: xTicks ? (v) => places.get(v) : text, yText: (v) => names.get(v), yTicks: names.keys(), last: 15.9 });
  const plot = svg("g", { "clip-path": `url(#${id})` });
  canvas.append(plot);
  for (const [v, name] of limits) {
    if (v < range.y[0] || v > range.y[1]) continue;
    plot.append(svg("path", { class: "limit", d: `M${left},${y(v)}H${right}` }));
    canvas.append(svg("text", { class: "limit-name", x: right - 2, y: y(v) - 4, "text-anchor": "end" }, name));
  }
  for (const v of marks) plot.append(svg("path", { class: "limit change", d: `M${x(v)},${top}V${bottom}` }));
  const inside = (v) => Math.min(bottom + 60, Math.max(top - 60, v));
  const known = (v, w) => w !== null && (!log[0] || v > 0) && (!log[1] || w > 0);
  const path = (xs, ys) => through(xs.map((v, i) => known(v, ys[i]) ? [x(v), inside(y(ys[i]))] : null));
  for (const { row, x: xs, low, high } of bands) {
    const kept = xs.map((_, i) => i).filter((i) => low[i] !== null && high[i] !== null);
    if (!kept.length) continue;
    const edge = (ys) => kept.map((i) => [x(xs[i]), inside(y(ys[i]))]);
    plot.append(svg("path", { class: row.style === 2 ? "band wide-band" : "band", fill: ink(row), d: between(edge(high), edge(low)) }));
  }
  for (const { row, x: xs, y: ys, kind } of lines.filter((line) => line.x.length)) {
    plot.append(svg("path", { class: kind ?? "line", stroke: ink(row), "stroke-dasharray": kind ? null : dash(row), d: path(xs, ys),
      "data-arm": row.label }));
    if (!kind) {
      xs.forEach((v, i) => {
        const own = Math.floor(xs.length / 5) || 1;
        if ((i + 2 * row.style) % own === 0 && ys[i] !== null && (!log[1] || ys[i] > 0)) plot.append(marker(row.style, x(v), y(ys[i]), 2.8, ink(row)));
      });
    }
  }
  for (const { row, x: v, y: w } of dots) if (w !== null) plot.append(set(marker(row.style, x(v), y(w), 5.5, ink(row)), { class: "chosen" }));
  canvas.append(svg("text", { x: 4, y: 13 }, labels[1]));

  const all = [...new Set(lines.filter((line) => !line.kind).flatMap((line) => line.x))].filter((v) => !log[0] || v > 0).sort((a, b) => a - b);
  const show = (i) => {
    canvas.querySelectorAll(".hover").forEach((node) => node.remove());
    tip.hidden = i === null || !all.length;
    if (tip.hidden) return;
    const v = all[i], px = x(v);
    canvas.append(svg("path", { class: "guide hover", d: `M${px},${top}V${bottom}` }));
    const rows = read(v).map((cells) => tag("tr", {}, ...cells.map((each) => tag("td", {}, each))));
    showTip(tip, name ? name(v) : `${labels[0]}: ${text(v)}`, rows, { at: px, width, top: 30, gap: 12 });
  };
  readOut(canvas, () => all.map(x), show);
}

// As many of the named ticks, evenly spread, as there is space for.
function spaced(ticks, room) {
  const most = Math.floor(room / (LETTER * Math.max(...ticks.map(([, name]) => name.length)) + 12));
  const every = [1, 2, 4].find((step) => (ticks.length - 1) / step + 1 <= most) ?? ticks.length;
  return ticks.filter((_, i) => i % every === 0).map(([v]) => v);
}

// The value of a curve at v by linear interpolation, null outside the curve.
function reading(xs, ys, v) {
  const i = xs.findIndex((each) => each >= v);
  if (i < 0 || (i === 0 && xs[0] > v)) return null;
  if (i === 0 || xs[i] === v || ys[i] === null || ys[i - 1] === null) return ys[i];
  return ys[i - 1] + (ys[i] - ys[i - 1]) * (v - xs[i - 1]) / (xs[i] - xs[i - 1]);
}

// A figure with one panel per side. A panel has the curves of the arms that are chosen in the legend.
function overlaid(figure, build) {
  const { arms } = data, hosts = sideHosts();
  const { shown, presets, legend } = chooser(arms, { label: "Arms shown", first: "first", redraw: () => draw() });
  figure.prepend(...arms.length > 2 ? [tag("div", { class: "controls" }, ...presets)] : [], tag("div", { class: "panels" }, ...hosts),
    ...arms.length > 1 ? [legend] : []);
  const draw = () => SIDES.forEach((side, i) => build(hosts[i], side, arms.filter((arm) => shown.has(arm)), figure.dataset.alt));
  return draw;
}
const sideHosts = () => SIDES.map((side) => tag("div", { class: "panel" }, tag("h4", {}, TITLES[side])));

const ends = (values, grow) => {
  const seen = values.filter((v) => v !== null && v > 0);
  return seen.length ? [Math.min(...seen) / grow, Math.max(...seen) * grow] : [1, 10];
};
// Both sides have the same axes, so that they can be compared.
const common = (arms, curve, axis) => ends(SIDES.flatMap((side) => arms.flatMap((arm) => arm[side][curve][axis])), 1.3);
const nothing = (host, words) => host.replaceChildren(...[...host.children].filter((node) => node.tagName === "H4"), tag("p", { class: "muted" }, words));

// One curve per arm and side; `fits` also draws the fitted power law.
const curveChart = (name, { labels, unit, none, fits }) => (figure) => overlaid(figure, (host, side, arms, alt) => {
  if (!arms.some((arm) => arm[side][name].x.length)) return nothing(host, `These arms have ${none} ${data.noun}s on this side.`);
  const fit = (row) => fits && row[side].fit ? [{ row, kind: "fit", ...row[side].fit }] : [];
  panel(host, {
    alt: `${TITLES[side]}. ${alt}`, labels,
    range: { x: common(arms, name, "x"), y: common(arms, name, "y") },
    lines: arms.flatMap((row) => [{ row, ...row[side][name] }, ...fit(row)]),
    read: (v) => arms.map((arm) => [arm.label, reading(arm[side][name].x, arm[side][name].y, v)]).filter(([, y]) => y !== null)
      .map(([label, y]) => [label, unit(y)]),
  });
});
CHARTS.tails = curveChart("survival", { labels: ["distance from the median", `share of ${data.noun}s beyond`],
  unit: (share) => `${text(100 * share)} %`, none: "no", fits: true });

// The index over k. The axis is linear in 1 / index, so that it includes light tails, whose index is infinite.
const METHODS = [["hill", "Hill", 0], ["moment", "moment", 1]];
const INDICES = [[-0.5, ""], [0, "∞"], [0.1, "10"], [0.25, "4"], [1 / 3, "3"], [0.5, "2"], [2 / 3, "1.5"], [1, "1"], [1.5, "0.67"], [2, "0.5"], [4, "0.25"]];
CHARTS.index = (figure, number) => {
  const arm = data.arms[number], hosts = sideHosts();
  const keys = tag("div", { class: "keys" }, ...METHODS.map(([, name, style]) => tag("span", { class: "key" }, set(swatch({ style }), { class: "swatch" }), name)));
  figure.prepend(tag("div", { class: "panels" }, ...hosts), keys);
  return () => SIDES.forEach((side, i) => {
    const known = METHODS.map(([key, name, style]) => ({ row: { style, label: name }, ...arm[side].paths[key] })).filter((path) => path.k.length);
    if (!known.length) return nothing(hosts[i], `Unknown: ${arm[side].words}.`);
    const near = known.flatMap((path) => path.shape.filter((v, j) => v !== null && path.k[j] >= path.chosen / 4));
    const high = Math.min(4, Math.max(0.6, ...near) + 0.12), low = Math.max(-1, Math.min(-0.1, ...near) - 0.05);
    panel(hosts[i], {
      alt: `${TITLES[side]}: ${arm[side].words}. ${figure.dataset.alt}`, log: [true, false], labels: [`k, the number of largest ${data.noun}s used`, "tail index (below: lighter)"],
      range: { x: [Math.min(...known.map((p) => p.k[0])), Math.max(...known.map((p) => p.k[p.k.length - 1]))], y: [low, high] },
      ticks: INDICES.filter(([v, name]) => name && v >= low && v <= high).filter(([v], j, list) => high - low < 1.3 || [0, 0.25, 0.5, 1, 2, 4].includes(v)),
      limits: [[0.5, "above: infinite variance"], [1, "above: no mean"], [0, "below: light"]],
      bands: known.map((path) => ({ row: path.row, x: path.k, low: path.low, high: path.high })),
      lines: known.map((path) => ({ row: path.row, x: path.k, y: path.shape })),
      dots: known.map((path) => ({ row: path.row, x: path.chosen, y: path.shape[path.k.indexOf(path.chosen)] ?? null })),
      read: (k) => known.map((path) => [path.row.label, reading(path.k, path.shape, k), reading(path.k, path.low, k), reading(path.k, path.high, k)])
        .filter(([, shape]) => shape !== null)
        .map(([label, shape, a, b]) => [label, index(shape), `${index(b)} to ${index(a)}`]),
    });
  });
};
const index = (shape) => shape === null || shape <= 0 ? "∞" : text(1 / shape);

// The mean of each arm in parts of the record, in order of time. The axis is logarithmic if means differ by orders of magnitude.
CHARTS.time = (figure) => {
  const { time, arms } = data, host = tag("div", { class: "panel" });
  const { shown, presets, legend } = chooser(arms, { label: "Arms shown", first: "first", redraw: () => draw() });
  figure.prepend(...arms.length > 2 ? [tag("div", { class: "controls" }, ...presets)] : [], host, ...arms.length > 1 ? [legend] : []);
  const draw = () => {
    const rows = arms.map((row, i) => ({ row, x: time.x, y: time.means[i] })).filter(({ row }) => shown.has(row));
    const seen = rows.flatMap(({ y }) => y.filter((v) => v !== null));
    if (!seen.length) return nothing(host, "No arm is shown.");
    const low = Math.min(...seen), high = Math.max(...seen), log = low > 0 && high > 20 * low, room = (high - low || Math.abs(high) || 1) * 0.06;
    panel(host, {
      alt: figure.dataset.alt, log: [false, log], labels: ["time", `mean ${data.noun}`],
      range: { x: [1, time.rows], y: log ? [low / 1.2, high * 1.2] : [low - room, high + room] },
      xTicks: time.ticks, marks: time.changes, lines: rows, name: (v) => time.names[time.x.indexOf(v)],
      read: (v) => rows.map(({ row, y }) => [row.label, y[time.x.indexOf(v)]]).filter(([, y]) => y !== null).map(([label, y]) => [label, text(y)]),
    });
  };
  return draw;
};

// One row per arm, on an axis that is linear near the centre and logarithmic outside.
CHARTS.distribution = (figure) => {
  const { arms, axis } = data;
  const canvas = svg("svg", { role: "img", "aria-label": figure.dataset.alt });
  figure.prepend(canvas);
  const f = (v) => Math.asinh((v - axis.centre) / axis.unit);
  return () => {
    const width = Math.max(280, figure.clientWidth), narrow = width < 560, step = narrow ? 62 : 46;
    const longest = Math.max(...arms.map((arm) => arm.label.length));
    const left = narrow ? 8 : Math.min(250, 24 + LETTER * longest), right = width - 18, bottom = arms.length * step + 8, height = bottom + 38;
    const [a, b] = [f(axis.low), f(axis.high)], x = (v) => left + (right - left) * (f(v) - a) / (b - a || 1);
    canvas.replaceChildren(svg("desc", {}, figure.dataset.alt));
    set(canvas, { viewBox: `0 0 ${width} ${height}` });
    // Add ticks from the centre outwards if there is enough space.
    const placed = [];
    for (const v of [...axis.ticks].sort((p, q) => Math.abs(p - axis.centre) - Math.abs(q - axis.centre))) {
      if (placed.some((other) => Math.abs(x(v) - other) < 52)) continue;
      placed.push(x(v));
      canvas.append(svg("path", { class: "grid", d: `M${x(v)},0V${bottom}` }),
        svg("text", { x: x(v), y: bottom + 16, "text-anchor": right - x(v) < 16 ? "end" : x(v) - left < 16 ? "start" : "middle" }, text(v)));
    }
    canvas.append(svg("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, data.noun));
    arms.forEach((arm, i) => {
      const base = (i + 1) * step - 8, tall = step - (narrow ? 26 : 12);
      canvas.append(svg("text", { class: "name", x: narrow ? 8 : left - 10, y: narrow ? base - tall - 4 : base - 6, "text-anchor": narrow ? "start" : "end" },
        svg("title", {}, arm.label), fitted(arm.label, narrow ? width - 10 : left - 20)));
      const [q01, q25, median, q75, q99] = arm.box, span = (right - left) / arm.heights.length;
      let d = `M${left},${base}`;
      arm.heights.forEach((h, j) => { const y = base - tall * h / 100; d += `L${(left + span * j).toFixed(1)},${y.toFixed(1)}H${(left + span * (j + 1)).toFixed(1)}`; });
      canvas.append(svg("g", { "data-arm": arm.label },
        svg("title", {}, `${arm.label}: median ${text(median)}, middle half ${text(q25)} to ${text(q75)}, 98 % ${text(q01)} to ${text(q99)}`),
        svg("path", { class: "ridge", d: `${d}L${right},${base}Z`, fill: ink(arm), stroke: ink(arm) }),
        svg("path", { class: "whisker", d: `M${x(q01)},${base + 3}H${x(q99)}`, stroke: ink(arm), opacity: 0.6 }),
        svg("path", { d: `M${x(q25)},${base + 3}H${x(q75)}`, stroke: ink(arm), "stroke-width": 5 }),
        svg("path", { d: `M${x(median)},${base - 2}v9`, stroke: "var(--ink)", "stroke-width": 2.5 })));
    });
  };
};

start();
