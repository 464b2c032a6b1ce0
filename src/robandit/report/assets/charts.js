// Functions of all charts (nodes, scales, markers, legends, tooltips), drawing of visible figures, and sortable tables.
const data = JSON.parse(document.getElementById("data").textContent);
const DASHES = ["", "7 3", "2 3", "9 3 2 3"];
const LETTER = 7.4; // the approximate width of a character
const SHOWN = 8; // lines that are shown at first, because more are hard to distinguish

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
const ink = (row) => `var(--c${row.style % 8})`;
const dash = (row) => DASHES[Math.floor(row.style / 8) % DASHES.length] || null;

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

// A linear or logarithmic scale with ticks; powers of ten are at least `apart` pixels apart.
function scale(low, high, from, to, log, apart = 45) {
  const f = log ? Math.log10 : (v) => v;
  const span = f(high) - f(low) || 1;
  const room = Math.abs(to - from);
  const at = (v) => from + (to - from) * (f(v) - f(low)) / span;
  return Object.assign(at, { ticks: log ? decades(low, high, room, apart) : steps(low, high, room) });
}
function decades(low, high, room, apart) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) * apart / room));
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

// A line through points, with gaps at null points, and the area between two lines.
const spot = ([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`;
const through = (points) => points.map((point, i) => point && (points[i - 1] ? "L" : "M") + spot(point)).join("");
const between = (high, low) => `M${[...high, ...low.reverse()].map(spot).join("L")}Z`;

const fitted = (label, width) => {
  const room = Math.floor(width / LETTER);
  return label.length > room ? `${label.slice(0, Math.max(1, room - 1))}…` : label;
};

// Axes with grid lines and labels.
function drawAxes(canvas, { x, y, left, right, bottom, height, label, xText, yText, yTicks = y.ticks, last = 0 }) {
  for (const v of yTicks) {
    canvas.append(svg("path", { class: "grid", d: `M${left},${y(v)}H${right}` }),
      svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, yText(v)));
  }
  for (const v of x.ticks) {
    canvas.append(svg("path", { class: "grid", d: `M${x(v)},${bottom}v5` }),
      svg("text", { x: x(v), y: bottom + 18, "text-anchor": right - x(v) <= last ? "end" : "middle" }, xText(v)));
  }
  canvas.append(svg("text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, label));
}

// A legend whose buttons show or hide lines, and buttons that show the first few, all or none.
function chooser(items, { label, first, redraw }) {
  const shown = new Set(items.slice(0, SHOWN));
  const refresh = () => {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", shown.has(items[i])));
    redraw();
  };
  const buttons = items.map((item) => {
    const button = tag("button", { type: "button", "aria-pressed": shown.has(item), title: item.label }, swatch(item), tag("span", {}, item.label));
    button.onclick = () => { if (!shown.delete(item)) shown.add(item); refresh(); };
    return button;
  });
  const counts = [...items.length > SHOWN ? [[`${first} ${SHOWN}`, SHOWN]] : [], ["all", items.length], ["none", 0]];
  const presets = counts.map(([name, count]) => {
    const button = tag("button", { type: "button" }, name);
    button.onclick = () => { shown.clear(); items.slice(0, count).forEach((item) => shown.add(item)); refresh(); };
    return button;
  });
  return { shown, buttons, presets, legend: tag("div", { class: "legend", role: "group", "aria-label": label }, ...buttons) };
}

// Shows a title and rows of cells next to a point of the chart, on the side with more space.
function showTip(tip, title, rows, { at, width, top, gap }) {
  tip.replaceChildren(tag("strong", {}, title), tag("table", {}, tag("tbody", {}, ...rows)));
  const across = at > width / 2;
  tip.style.left = across ? "auto" : `${at + gap}px`;
  tip.style.right = across ? `${width - at + gap}px` : "auto";
  tip.style.top = `${top}px`;
}

// Shows values by pointer and keyboard. `places` returns the x of the points; `show` shows the point of an index, or none for null.
// Returns a function that shows the same point again after a redraw.
function readOut(canvas, places, show) {
  let at = null;
  const go = (i) => { at = i; show(i); };
  canvas.onpointermove = canvas.onpointerdown = (event) => {
    const box = canvas.getBoundingClientRect(), px = (event.clientX - box.left) * canvas.viewBox.baseVal.width / box.width;
    const all = places();
    let best = 0;
    all.forEach((x, i) => { if (Math.abs(x - px) < Math.abs(all[best] - px)) best = i; });
    go(all.length ? best : null);
  };
  canvas.onpointerleave = canvas.onblur = () => go(null);
  canvas.onfocus = () => { if (at === null && places().length) go(places().length - 1); };
  canvas.onkeydown = (event) => {
    const last = places().length - 1, now = at ?? last;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") go(null);
    if (to === undefined || last < 0) return;
    event.preventDefault();
    go(Math.min(last, Math.max(0, to)));
  };
  return () => { if (at !== null) show(at); };
}

// Figures are drawn when they become visible, and again when their width changes.
const CHARTS = {};
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
    if (drawn.has(figure) || figure.closest("details:not([open])")) continue;
    figure.hidden = false;
    const draw = CHARTS[figure.dataset.chart](figure, Number(figure.dataset.number));
    drawn.set(figure, { draw, width: figure.clientWidth });
    draw();
    resized.observe(figure);
  }
}

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

// Called once all charts are defined.
function start() {
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("[data-style]").forEach((node) => node.append(swatch({ style: Number(node.dataset.style) })));
  document.querySelectorAll("details").forEach((each) => each.addEventListener("toggle", () => drawIn(each)));
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
}
