// Draws the charts of a report from the JSON in the page, and makes its tables sortable. No library, no network.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const DASHES = ["", "7 3", "2 3", "9 3 2 3"];
  const SHOWN = 8; // lines at first: more cannot be told apart

  // --- small helpers ---
  const set = (node, attributes) => {
    for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
    return node;
  };
  const svg = (name, attributes = {}, ...children) => {
    const node = set(document.createElementNS("http://www.w3.org/2000/svg", name), attributes);
    node.append(...children);
    return node;
  };
  const tag = (name, attributes = {}, ...children) => {
    const node = set(document.createElement(name), attributes);
    node.append(...children);
    return node;
  };
  const say = (x) => x === null ? "–"
    : Math.abs(x) >= 100 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(3)));
  const short = (x) => x < 0 ? `−${short(-x)}` : x >= 1e6 ? `${Number((x / 1e6).toPrecision(3))}M`
    : x >= 1e4 ? `${Number((x / 1e3).toPrecision(3))}k` : Number(x.toPrecision(3)).toLocaleString("en");
  const ink = (row) => `var(--c${row.style % 8})`;
  const dash = (row) => DASHES[Math.floor(row.style / 8) % DASHES.length];

  function marker(shape, x, y, r, colour) {
    const paths = [
      `M${x - r},${y}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`,
      `M${x - r},${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
      `M${x},${y - 1.3 * r}L${x + 1.2 * r},${y + r}H${x - 1.2 * r}z`,
      `M${x},${y - 1.4 * r}L${x + 1.4 * r},${y}L${x},${y + 1.4 * r}L${x - 1.4 * r},${y}z`,
      `M${x},${y + 1.3 * r}L${x + 1.2 * r},${y - r}H${x - 1.2 * r}z`,
    ];
    return svg("path", { d: paths[shape % paths.length], fill: colour });
  }

  function swatch(row) {
    return svg("svg", { viewBox: "0 0 30 12", "aria-hidden": "true" },
      svg("path", { d: "M1,6H29", stroke: ink(row), "stroke-width": 2.5, "stroke-dasharray": dash(row) }),
      marker(row.style, 15, 6, 3.2, ink(row)));
  }

  // --- scales ---
  function scale(low, high, from, to, log) {
    const f = log ? Math.log10 : (v) => v;
    const span = f(high) - f(low) || 1;
    const at = (v) => from + (to - from) * (f(v) - f(low)) / span;
    return Object.assign(at, { ticks: log ? decades(low, high, Math.abs(to - from)) : steps(low, high, Math.abs(to - from)) });
  }
  function decades(low, high, room) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const every = Math.max(1, Math.ceil((last - first + 1) * 45 / room));
    const ticks = [];
    for (let e = first - 1; e <= last; e++) {
      for (const m of last - first < 2 ? [1, 2, 5] : [1]) {
        const v = m * 10 ** e;
        if (v >= low * 0.999 && v <= high * 1.001 && (e - first) % every === 0) ticks.push(v);
      }
    }
    return ticks;
  }
  function steps(low, high, room) {
    const rough = (high - low) / Math.max(2, Math.floor(room / 75)) || 1;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough * 0.999);
    const ticks = [];
    for (let i = Math.ceil(low / step); i * step <= high * 1.0001; i++) ticks.push(i * step);
    return ticks;
  }
  const finite = (values) => values.filter((v) => v !== null && Number.isFinite(v));
  const positive = (values) => values.filter((v) => v !== null && v > 0);
  const negative = (values) => values.some((v) => v !== null && v < 0); // realised regret can be: no logarithm shows it

  // --- regret over time ---
  function curves(figure, problem) {
    const log = !problem.rows.some((row) => negative([...row.mean, ...row.median, ...row.q05]));
    const state = { x: true, y: log, mean: false, bands: true, bounds: true };
    const shown = new Set(problem.rows.slice(0, SHOWN));
    const controls = tag("div", { class: "controls", role: "group", "aria-label": "What the chart shows" });
    const bounded = problem.rows.filter((row) => row.bound);
    const switches = [["x", "log pulls"], ["y", "log regret"], ["bands", "5–95 % bands"], ["mean", "mean, not median"]];
    if (bounded.length) switches.push(["bounds", "theory bounds"]);
    for (const [name, label] of switches) {
      const button = tag("button", { type: "button", "aria-pressed": state[name], "data-switch": name }, label);
      button.onclick = () => { state[name] = !state[name]; button.setAttribute("aria-pressed", state[name]); draw(); };
      controls.append(button);
    }
    const legend = tag("div", { class: "legend", role: "group", "aria-label": "Policies shown, lowest regret first" });
    const entries = problem.rows.map((row) => {
      const button = tag("button", { type: "button", "aria-pressed": shown.has(row) }, swatch(row), row.label);
      button.onclick = () => { if (!shown.delete(row)) shown.add(row); refresh(); };
      button.onpointerenter = button.onfocus = () => emphasise(row);
      button.onpointerleave = button.onblur = () => emphasise(null);
      legend.append(button);
      return [row, button];
    });
    const refresh = () => {
      for (const [row, button] of entries) button.setAttribute("aria-pressed", shown.has(row));
      draw();
    };
    if (problem.rows.length > SHOWN) {
      for (const [label, count] of [[`best ${SHOWN}`, SHOWN], ["all", problem.rows.length], ["none", 0]]) {
        const button = tag("button", { type: "button" }, label);
        button.onclick = () => { shown.clear(); problem.rows.slice(0, count).forEach((row) => shown.add(row)); refresh(); };
        controls.append(button);
      }
    }
    const keys = tag("div", { class: "keys" });
    const tip = tag("div", { class: "tip", hidden: "", "aria-live": "polite" });
    const canvas = svg("svg", { role: "img", tabindex: 0, "aria-label": figure.dataset.alt });
    figure.prepend(controls, canvas, tip, legend, keys);
    let point = null, group = {}, view = null;
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
      for (const v of y.ticks) {
        canvas.append(svg("path", { class: "grid", d: `M${left},${y(v)}H${right}` }),
          svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, short(v)));
      }
      for (const v of x.ticks) {
        canvas.append(svg("path", { class: "grid", d: `M${x(v)},${bottom}v5` }),
          svg("text", { x: x(v), y: bottom + 18, "text-anchor": v === T ? "end" : "middle" }, short(v)));
      }
      canvas.append(svg("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, "pulls"),
        svg("text", { x: left + 6, y: top + 12 }, `${line} regret`));
      const plot = svg("g", { "clip-path": `url(#${clip})` });
      canvas.append(plot);
      const path = (list) => {
        let d = "", pen = false;
        list.forEach((v, i) => {
          const seen = v !== null && (!state.y || v > 0);
          if (seen) d += `${pen ? "L" : "M"}${x(problem.t[i]).toFixed(1)},${y(v).toFixed(1)}`;
          pen = seen;
        });
        return d;
      };
      plot.append(svg("path", { class: "random", d: path(problem.t.map((t) => t * problem.random)) }));
      group = {};
      for (const row of [...rows].reverse()) {
        const series = svg("g", { class: "series", "data-policy": row.label });
        if (state.bands) {
          const floor = (v) => state.y ? Math.max(v, low / 2) : v;
          const ends = problem.t.map((t, i) => [x(t), y(floor(row.q95[i])), y(floor(row.q05[i]))]);
          const up = ends.map((e) => `${e[0].toFixed(1)},${e[1].toFixed(1)}`);
          const down = ends.map((e) => `${e[0].toFixed(1)},${e[2].toFixed(1)}`).reverse();
          series.append(svg("path", { class: "band", fill: ink(row), d: `M${up.join("L")}L${down.join("L")}Z` }));
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
      if (point !== null) show(point);
    }

    function show(i) {
      point = i;
      canvas.querySelectorAll(".hover").forEach((node) => node.remove());
      tip.hidden = i === null;
      if (i === null) return;
      const at = view.x(problem.t[i]);
      const hover = svg("g", { class: "hover" }, svg("path", { class: "guide", d: `M${at},${view.top}V${view.bottom}` }));
      const body = tag("tbody");
      const ranked = [...view.rows].sort((a, b) => a[view.line][i] - b[view.line][i]);
      for (const row of ranked) {
        const v = row[view.line][i], y = view.y(v);
        if (Number.isFinite(y) && y >= view.top && y <= view.bottom) hover.append(marker(row.style, at, y, 4.5, ink(row)));
        body.append(tag("tr", {}, tag("td", {}, row.label), tag("td", {}, say(v)),
          tag("td", { class: "muted" }, `${say(row.q05[i])} – ${say(row.q95[i])}`)));
      }
      canvas.append(hover);
      tip.replaceChildren(tag("strong", {}, `${problem.t[i].toLocaleString("en")} pull${problem.t[i] === 1 ? "" : "s"}: ${view.line}, 5–95 %`), tag("table", {}, body));
      const across = at > view.width / 2;
      tip.style.left = across ? "auto" : `${at + 14}px`;
      tip.style.right = across ? `${view.width - at + 14}px` : "auto";
      tip.style.top = `${canvas.getBoundingClientRect().top - figure.getBoundingClientRect().top + 24}px`;
    }
    canvas.onpointermove = canvas.onpointerdown = (event) => {
      const seen = canvas.getBoundingClientRect();
      const px = (event.clientX - seen.left) * view.width / seen.width;
      let best = 0;
      problem.t.forEach((t, i) => { if (Math.abs(view.x(t) - px) < Math.abs(view.x(problem.t[best]) - px)) best = i; });
      show(best);
    };
    canvas.onpointerleave = canvas.onblur = () => show(null);
    canvas.onfocus = () => { if (point === null) show(problem.t.length - 1); };
    canvas.onkeydown = (event) => {
      const last = problem.t.length - 1, now = point ?? last;
      const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") show(null);
      if (to === undefined) return;
      event.preventDefault();
      show(Math.min(last, Math.max(0, to)));
    };
    return draw;
  }

  // --- charts with a row per policy ---
  function inRows(figure, problem, { rows, low, high, log, unit, paint, ticks, start = 0 }) {
    const canvas = svg("svg", { role: "img", "aria-label": figure.dataset.alt });
    const longest = Math.max(...rows.map((row) => row.label.length));
    figure.prepend(canvas);
    return () => {
      const width = Math.max(280, figure.clientWidth), narrow = width < 560;
      const step = narrow ? 38 : 26, left = narrow ? 6 : Math.min(250, 24 + 7.4 * longest), right = width - 22, height = rows.length * step + 40;
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
        const room = Math.floor((narrow ? width - 10 : left - 20) / 7.4);
        const name = row.label.length > room ? `${row.label.slice(0, room - 1)}…` : row.label;
        canvas.append(svg("text", { class: "name", x: narrow ? 6 : left - 10, y: narrow ? y - 12 : y + 4, "text-anchor": narrow ? "start" : "end" },
          svg("title", {}, row.label), name));
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
        group.append(svg("title", {}, `${row.label}: median ${say(median)}, 5–95 % ${say(q05)} – ${say(q95)}, worst ${say(row.worst)}`),
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
            svg("title", {}, `${row.label}: arm ${arm.name} (gap ${say(arm.gap)}) ${say(share)} % of pulls`)));
          start += share;
        }
      },
    });
  }

  function speed(figure, problem) {
    const rows = problem.rows.filter((row) => row.ns !== null).sort((a, b) => a.ns - b.ns);
    const times = rows.map((row) => row.ns);
    return inRows(figure, problem, {
      rows, low: Math.min(...times) / 2, high: Math.max(...times) * 2, log: () => true, unit: "ns per pull",
      paint(group, row, y, x) {
        group.append(svg("path", { class: "grid", d: `M${x(0)},${y}H${x(row.ns)}` }), marker(row.style, x(row.ns), y, 4.5, ink(row)),
          svg("text", { x: x(row.ns) + 9, y: y + 4 }, say(row.ns)));
      },
    });
  }

  const CHARTS = { curves, distribution, pulls, speed };
  const drawn = new Map();
  const resized = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const chart = drawn.get(target);
      if (chart && contentRect.width > 0 && Math.abs(contentRect.width - chart.width) > 1) {
        chart.width = contentRect.width;
        chart.draw();
      }
    }
  });
  function drawIn(root) {
    for (const figure of root.querySelectorAll("figure[data-chart]")) {
      if (drawn.has(figure) || figure.closest("details.problem:not([open])")) continue;
      figure.hidden = false;
      const draw = CHARTS[figure.dataset.chart](figure, data.problems[Number(figure.dataset.problem)]);
      drawn.set(figure, { draw, width: figure.clientWidth });
      draw();
      resized.observe(figure);
    }
  }

  // --- tables ---
  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = tag("button", { type: "button", title: "sort by this column" });
      button.append(...head.childNodes);
      head.append(button);
      const value = (row) => {
        const { v } = row.cells[column].dataset;
        return v === undefined ? row.cells[column].textContent.trim() : v === "" ? null : Number(v);
      };
      button.onclick = () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sign = down ? -1 : 1;
        const rows = [...body.rows].map((row) => [value(row), row]);
        rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null)
          : sign * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true })));
        body.append(...rows.map(([, row]) => row));
      };
    });
  }

  // --- the page ---
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("th [data-style]").forEach((node) => node.append(swatch({ style: Number(node.dataset.style) })));
  document.querySelectorAll("details.problem").forEach((each) => each.addEventListener("toggle", () => drawIn(each)));
  const goTo = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.matches("details")) target.open = true;
  };
  addEventListener("hashchange", goTo);
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((each) => { each.open = true; });
    drawIn(document);
  });
  addEventListener("afterprint", () => closed.forEach((each) => { each.open = false; }));
  goTo();
  drawIn(document);
  document.documentElement.dataset.ready = "yes";
})();
