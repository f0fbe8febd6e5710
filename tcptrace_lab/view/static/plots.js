// The figures of one connection. A zoom asks the server for the visible time; the points that are there stay until the new ones come.
import { debounced, latest, number, quietly, remember, say, state } from "./api.js";
import { duration, element } from "./format.js";
import { CONFIG, copied, darkness, dressed, fitted, followMouse, highlight, lean, markOverTime, rangeOf, remark, spaceUnits, trimmed } from "./figures.js";

const NS = 1e9;
const CLOSEST_NS = 1;
const BESIDE = 2; // a time that is shown has this multiple of its length on either side

let loading = null;

/** Load Plotly when the first figure needs it. */
function plotly() {
  loading ??= new Promise((done, failed) => {
    const script = element("script", { src: `${document.body.dataset.root}static/plotly.js` });
    script.addEventListener("load", () => done(window.Plotly));
    script.addEventListener("error", () => failed(new Error("The drawing program could not be loaded.")));
    document.head.append(script);
  });
  return loading;
}

function inSight(place) {
  const { top, bottom } = place.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
}

export class Plots {
  /** `picked(frame)` is called for a packet that the reader clicks; `moved(from_ns, to_ns)` after each zoom, with nulls for all. */
  constructor(section, { picked, moved }) {
    Object.assign(this, { section, picked, moved });
    this.holder = section.querySelector("#figures");
    this.id = section.dataset.id;
    this.duration_ns = Math.max(Number(section.dataset.duration), 1000);
    this.range = number("from") !== null && number("to") !== null ? [number("from"), number("to")] : null;
    this.marked = [];
    this.own = 0; // our own changes in progress
    this.read = latest();
    this.figures = new Map(); // key and direction → its element
    this.soon = debounced(() => this.load(), 40);
    for (const button of section.querySelectorAll("[data-move]")) button.addEventListener("click", () => this.move(button.dataset.move));
    const radios = [...section.querySelectorAll("input[type=radio]")];
    for (const radio of radios) {
      radio.checked = state.has("side") ? radio.value === state.get("side") : radio.checked;
      radio.addEventListener("change", () => {
        remember({ side: radio.value });
        this.draw();
      });
    }
    darkness.addEventListener("change", () => this.draw());
    let width = this.holder.clientWidth;
    new ResizeObserver(debounced(() => {
      if (Math.abs(this.holder.clientWidth - width) < 30) return;
      width = this.holder.clientWidth;
      this.load();
    })).observe(this.holder);
    this.load();
  }

  side() {
    return this.section.querySelector("input[type=radio]:checked")?.value ?? "client";
  }

  async load() {
    this.holder.setAttribute("aria-busy", "true");
    const [from_ns, to_ns] = this.range ?? [null, null];
    const width = Math.max(Math.round(this.holder.clientWidth - 100), 200);
    const answer = await quietly(Promise.all([this.read(`connection/${this.id}/figures`, { from_ns, to_ns, width }), plotly()]));
    if (!answer) return; // the reader went on, or the page says what failed
    [this.data] = answer;
    try {
      await this.draw();
    } catch (problem) {
      say(`The figures could not be drawn: ${problem.message}`);
    }
    this.holder.setAttribute("aria-busy", "false");
    document.getElementById("omitted").replaceChildren(...(this.data.omitted ?? []).map((line) => element("li", {}, line)));
  }

  /** Seconds that the figures show. */
  seconds() {
    const margin = this.duration_ns * 0.015;
    return (this.range ?? [-margin, this.duration_ns + margin]).map((ns) => ns / NS);
  }

  async draw() {
    if (!this.data) return;
    const side = this.side();
    const shown = this.data.figures.filter((figure) => figure.by === "both" || figure.by === side);
    this.holder.replaceChildren(...shown.map((figure) => this.place(figure))); // elements that are there are kept
    const first = new Set(shown.filter((figure) => inSight(this.place(figure)))); // the reader waits for these
    const order = [...first, ...shown.filter((figure) => !first.has(figure))];
    this.own += 1;
    try {
      for (const figure of order) await this.drawOne(figure, this.data.ledger[figure.by === "both" ? side : figure.by] ?? []);
    } finally {
      this.own -= 1;
    }
  }

  /** The element of a figure; made once. */
  place(figure) {
    const key = `${figure.key} ${figure.by}`;
    if (!this.figures.has(key)) {
      const plot = element("div", { className: "plot", role: "group" });
      const caption = element("figcaption", {}, element("h4", {}, figure.title), element("p", {}, figure.note));
      const made = element("figure", {}, caption, plot, element("p", { className: "nothing", hidden: true }));
      made.dataset.key = figure.key;
      made.dataset.by = figure.by;
      this.figures.set(key, made);
      followMouse(plot, () => [...this.holder.querySelectorAll(".plot.js-plotly-plot")]);
    }
    return this.figures.get(key);
  }

  async drawOne(figure, strip) {
    const place = this.place(figure);
    const plot = place.querySelector(".plot");
    const { data, layout } = figure.figure;
    const nothing = place.querySelector(".nothing");
    nothing.hidden = data.length > 0;
    nothing.textContent = figure.without ?? "There is nothing to draw in this time.";
    plot.hidden = !data.length;
    if (!data.length) return;
    plot.setAttribute("aria-label", `${figure.title}. ${figure.text ?? ""}`);
    const range = this.seconds();
    const before = new Map((plot.data ?? []).map((trace) => [trace.name, trace.visible]));
    const traces = data.map((trace) => ({ ...trace, ...(before.get(trace.name) === undefined ? {} : { visible: before.get(trace.name) }) }));
    const { range: height, remarks } = fitted(traces, layout.yaxis, range);
    const drawn = traces.map((trace) => trimmed(trace, lean(trace, range)));
    const dress = dressed(plot, layout, strip.length > 0);
    const shapes = [...(layout.shapes ?? []), ...this.marked.map(highlight)];
    const yaxis = { ...dress.yaxis, ...(height ? { range: height, autorange: false } : { autorange: true }) };
    await window.Plotly.react(plot, [...drawn, ...strip.map(copied)], { ...dress, xaxis: { ...dress.xaxis, range, autorange: false }, yaxis, shapes, annotations: remarks.map(remark) }, CONFIG);
    if (!plot.dataset.over) {
      markOverTime(plot, layout);
      spaceUnits(plot);
      plot.on("plotly_relayout", (change) => this.follow(change));
      plot.on("plotly_click", (event) => this.click(event));
    }
    place.dataset.drawn = "yes";
  }

  /** The reader zoomed in one figure: show the time in all, then ask for its points. */
  follow(change) {
    if (this.own) return;
    const times = rangeOf(change, "xaxis");
    if (times) this.zoom(times.map((second) => Math.round(second * NS)));
    else if (change["xaxis.autorange"] || change["xaxis.range"]) this.zoom(null);
  }

  click(event) {
    const [point] = event.points;
    if (point.data.type === "bar") { // a cause in the strip
      const from = point.x * NS;
      const width = Array.isArray(point.data.width) ? point.data.width[point.pointIndex] : point.data.width;
      return this.jump(from, from + (width ?? 0) * NS);
    }
    const known = point.customdata;
    if (known === undefined || known === null) return;
    if (!Array.isArray(known)) return this.picked(known);
    const [first, last, segments] = known;
    if (known.length < 4 || segments === 1) return this.picked(first);
    if (first === last) return this.picked(first);
    const [from, to] = this.seconds();
    const [middle, beside] = [point.x, (to - from) / 20];
    this.zoom([Math.round((middle - beside) * NS), Math.round((middle + beside) * NS)]); // several segments in one stroke: come closer
  }

  /** Show this time, in ns since the connection's first segment; null for all of it. */
  zoom(range) {
    if (range && range[1] - range[0] < CLOSEST_NS) range = [range[0], range[0] + CLOSEST_NS];
    this.range = range && range[0] <= 0 && range[1] >= this.duration_ns ? null : range;
    if (!this.range) this.marked = [];
    const [from, to] = this.range ?? [null, null];
    remember({ from, to });
    document.getElementById("window").textContent = this.range ? `${duration(Math.round(to - from))} of ${duration(this.duration_ns)}` : "";
    this.moved(from, to);
    this.stretch();
    this.soon();
  }

  /** Show the points that are there in the new time, until the new ones come, in the figures in sight. */
  async stretch() {
    const range = this.seconds();
    this.own += 1;
    try {
      await Promise.all([...this.holder.querySelectorAll(".plot.js-plotly-plot")].filter(inSight).map((plot) => window.Plotly.relayout(plot, { "xaxis.range": range.slice() })));
    } finally {
      this.own -= 1;
    }
  }

  jump(from_ns, to_ns, side = null) {
    const radio = side && this.section.querySelector(`input[type=radio][value=${side}]`);
    if (radio) {
      radio.checked = true;
      remember({ side });
    }
    this.marked = [[from_ns / NS, to_ns / NS]];
    const beside = Math.max((to_ns - from_ns) * BESIDE, 1000);
    this.zoom([Math.round(from_ns - beside), Math.round(to_ns + beside)]);
    this.section.querySelector(".tools").scrollIntoView({ block: "start" });
  }

  move(how) {
    const [from, to] = this.range ?? [0, this.duration_ns];
    const span = to - from;
    const ways = { in: [from + span / 4, to - span / 4], out: [from - span / 2, to + span / 2], earlier: [from - span / 4, to - span / 4], later: [from + span / 4, to + span / 4] };
    this.zoom(ways[how]?.map(Math.round) ?? null);
  }
}
