// Keeps a page of the dashboard up to date. Its parts come from the server as HTML; without this script, pages work when reloaded.
"use strict";

const STALE = 30000; // milliseconds of silence after which the connection is taken for lost: the server says something every 10 s
const part = (id) => document.getElementById(id);

// --- times in the zone of the reader ---
const AGES = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
function age(seconds) {
  const [unit, name] = AGES.find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.max(0, Math.floor(seconds / unit))} ${name} ago`;
}
function writeTimes(root) {
  for (const node of root.querySelectorAll("time")) {
    const moment = new Date(node.dateTime);
    node.title = moment.toLocaleString();
    const words = "ago" in node.dataset ? age((Date.now() - moment) / 1000) : moment.toLocaleString();
    if (node.textContent !== words) node.textContent = words;
  }
}

// --- parts that have changed ---
// The focus and the scrolled position of a table stay where they were.
function replace(node, html) {
  const active = node.contains(document.activeElement) ? document.activeElement : null;
  const all = () => [...node.querySelectorAll("a, button, input, summary, svg[tabindex], [tabindex]")];
  const place = active && (active.getAttribute("href") ?? all().indexOf(active));
  const scrolled = [...node.querySelectorAll(".box")].map((box) => [box.scrollLeft, box.scrollTop]);
  const open = [...node.querySelectorAll("details")].map((each) => each.open);
  node.innerHTML = html;
  node.querySelectorAll(".box").forEach((box, i) => { [box.scrollLeft, box.scrollTop] = scrolled[i] ?? [0, 0]; });
  node.querySelectorAll("details").forEach((each, i) => { each.open = open[i] ?? false; });
  if (active) {
    const again = typeof place === "string" ? all().find((each) => each.getAttribute("href") === place) : all()[place];
    again?.focus({ preventScroll: true });
  }
  writeTimes(node);
}
// A list that somebody is about to click, has focused or has selected text in is held until they leave it.
const held = {};
const isUsed = (node) => node.matches(":hover, :focus-within") || (getSelection().type === "Range" && node.contains(getSelection().anchorNode));
function release() {
  for (const [id, html] of Object.entries(held)) {
    if (isUsed(part(id))) continue;
    delete held[id];
    replace(part(id), html);
  }
}
function update(parts) {
  const column = readOut.at();
  for (const [id, html] of Object.entries(parts)) {
    const node = part(id);
    if (id === "recent") held[id] = html;
    else if (node) replace(node, html);
  }
  release();
  const forms = part("manage");
  if ("shape" in parts && forms) part("old-forms").hidden = forms.dataset.shape === parts.shape;
  if ("chart" in parts) readOut.show(column);
}

// --- the connection ---
// A hidden page has none, because a browser keeps only six connections to a server, for all its pages together.
const status = part("live"), address = document.body.dataset.live;
let source = null, heard = 0;
function say(word, text) {
  if (status.dataset.state === word) return;
  status.dataset.state = word;
  status.textContent = text;
}
function connect() {
  disconnect();
  if (document.hidden) return;
  heard = Date.now();
  source = new EventSource(address);
  source.onmessage = (event) => {
    heard = Date.now();
    say("on", "live");
    update(JSON.parse(event.data));
  };
  source.addEventListener("alive", () => { heard = Date.now(); });
  source.addEventListener("end", leave);
  source.onopen = () => { heard = Date.now(); say("on", "live"); };
  source.onerror = () => {
    say("off", "not connected: trying again");
    if (source?.readyState === EventSource.CLOSED) check();
  };
}
// The page has ended with its session or its experiment. (After a form that was refused, the address is not that of the page.)
const here = document.body.dataset.page;
function leave() {
  disconnect();
  location.assign(here);
}
function disconnect() {
  source?.close();
  source = null;
}
// The stream was refused. If the session has ended, the page leads to the form for logging in; otherwise try again.
async function check() {
  disconnect();
  try {
    const answer = await fetch(here, { redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.status === 404) return leave();
  } catch { /* the server is away */ }
  setTimeout(connect, 2000);
}
if (address) {
  connect();
  document.addEventListener("visibilitychange", () => { if (document.hidden) disconnect(); else connect(); });
  setInterval(() => { if (source && Date.now() - heard > STALE) connect(); }, 5000);
}

// --- reading the chart by pointer and keyboard ---
const readOut = (() => {
  const chart = part("chart"), tip = part("tip");
  let at = null;
  const drawing = () => chart?.querySelector("svg.stack");
  const data = () => JSON.parse(drawing()?.dataset.columns ?? "null");
  function show(i) {
    at = i;
    drawing()?.querySelector(".guide")?.remove();
    const columns = i === null ? null : data();
    tip.hidden = columns === null;
    if (columns === null) return;
    const counts = columns.arms.map(([name, colour, numbers]) => [name, colour, numbers[i]]).filter(([, , n]) => n > 0);
    const total = counts.reduce((sum, [, , n]) => sum + n, 0);
    const when = new Date(columns.times[i] * 1000), until = new Date((columns.times[i] + columns.width) * 1000);
    const words = counts.sort((a, b) => b[2] - a[2]).map(([name, , n]) => `${name} ${Math.round(100 * n / total)} %`);
    const long = columns.width >= 3600;
    const clock = (t) => long ? t.toLocaleString() : t.toLocaleTimeString();
    tip.textContent = `${clock(when)} to ${clock(until)}: ${words.join(", ") || "no decisions"}; `
      + `${total.toLocaleString()} decisions, ${columns.rewards[i].toLocaleString()} rewards`;
    const guide = document.createElementNS("http://www.w3.org/2000/svg", "path");
    guide.setAttribute("class", "guide");
    guide.setAttribute("d", `M${i},0h1v100h-1z`);
    drawing().append(guide);
  }
  if (chart) {
    const count = () => data()?.times.length ?? 0;
    chart.addEventListener("pointermove", (event) => {
      const box = drawing()?.getBoundingClientRect();
      if (!box) return;
      const i = Math.floor((event.clientX - box.left) / box.width * count());
      show(i >= 0 && i < count() ? i : null);
    });
    chart.addEventListener("pointerleave", () => show(null));
    chart.addEventListener("focusout", () => show(null));
    chart.addEventListener("focusin", () => { if (at === null && count()) show(count() - 1); });
    chart.addEventListener("keydown", (event) => {
      const last = count() - 1, now = at ?? last;
      const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") show(null);
      if (to === undefined || last < 0) return;
      event.preventDefault();
      show(Math.min(last, Math.max(0, to)));
    });
  }
  return { show: (i) => { if (chart) show(i); }, at: () => at };
})();

writeTimes(document);
setInterval(() => { writeTimes(document); release(); }, 1000);
document.documentElement.dataset.ready = "yes";
