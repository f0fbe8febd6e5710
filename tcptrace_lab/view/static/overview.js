// A capture over time: bytes of both directions, open connections, and causes. The reader selects a time by dragging, or by two numbers.
import { debounced, latest, quietly } from "./api.js";
import { highest, patterns, stacked, svg, text } from "./chart.js";
import { CAUSES, count, duration, element, size, swatch } from "./format.js";

const LEFT = 64; // pixels for the names of the lanes
const RIGHT = 8;
const FOOT = 18;
const SHARES = { bytes: 0.4, open: 0.18, causes: 0.36 }; // of the height; the rest is between the lanes
const NEAR = 4; // pixels: a shorter drag is a click

export class Overview {
  /** `changed(from_ns, to_ns)` is called with the selected time, or two nulls; `zoomed(from_ns, to_ns)` with the visible one. */
  constructor(holder, duration_ns, { selection, zoom, changed, zoomed }) {
    Object.assign(this, { holder, duration_ns: Math.max(duration_ns, 1), selection, zoom, changed, zoomed });
    this.read = latest();
    this.box = element("div", { className: "overview", role: "img" });
    this.said = element("p", { className: "note", "aria-live": "off" });
    this.legend = element("ul", { className: "legend", ariaLabel: "Causes" });
    holder.replaceChildren(this.tools(), this.box, this.legend, this.said);
    this.drag();
    this.load();
    let width = this.box.clientWidth;
    new ResizeObserver(debounced(() => {
      if (this.box.clientWidth === width) return;
      width = this.box.clientWidth;
      this.load();
    })).observe(this.box);
  }

  tools() {
    const field = (label) => element("input", { type: "number", step: "any", ariaLabel: `${label} of the selected time, seconds` });
    [this.from, this.to] = [field("start"), field("end")];
    for (const input of [this.from, this.to]) input.addEventListener("change", () => this.typed());
    const button = (label, action) => {
      const made = element("button", { type: "button" }, label);
      made.addEventListener("click", action);
      return made;
    };
    this.closer = button("zoom to it", () => this.show(this.selection));
    this.clear = button("clear", () => this.select(null));
    this.whole = button("whole capture", () => this.show(null));
    const made = element("div", { className: "tools" }, element("label", {}, "Selected time, s ", this.from), element("label", {}, "to ", this.to), this.closer, this.clear, this.whole);
    this.fill();
    return made;
  }

  fill() {
    for (const [place, input] of [this.from, this.to].entries()) input.value = this.selection ? Number((this.selection[place] / 1e9).toFixed(6)) : "";
    this.closer.disabled = this.clear.disabled = !this.selection;
    this.whole.disabled = !this.zoom;
  }

  typed() {
    const [from, to] = [this.from, this.to].map((input) => (input.value === "" ? null : Math.round(Number(input.value) * 1e9)));
    if (from === null && to === null) this.select(null);
    else if ((to ?? this.duration_ns) > (from ?? 0)) this.select([from ?? 0, to ?? this.duration_ns]);
  }

  select(range) {
    this.selection = range;
    this.fill();
    this.mark();
    this.changed(...(range ?? [null, null]));
  }

  show(range) {
    this.zoom = range;
    this.fill();
    this.zoomed(...(range ?? [null, null]));
    return this.load();
  }

  async load() {
    const [from_ns, to_ns] = this.zoom ?? [0, this.duration_ns];
    this.box.classList.add("busy");
    const width = Math.max(Math.round(this.box.clientWidth - LEFT - RIGHT), 100);
    const data = await quietly(this.read("timeline", { from_ns, to_ns, width }));
    if (!data) return;
    this.data = data;
    this.box.classList.remove("busy");
    this.draw();
  }

  x(time_ns) {
    const { from_ns, to_ns } = this.data;
    return LEFT + ((time_ns - from_ns) / Math.max(to_ns - from_ns, 1)) * this.span;
  }

  time(x) {
    const { from_ns, to_ns } = this.data;
    return Math.round(from_ns + Math.min(Math.max((x - LEFT) / this.span, 0), 1) * (to_ns - from_ns));
  }

  draw() {
    const { data } = this;
    const [width, height] = [this.box.clientWidth, this.box.clientHeight];
    const columns = data.open.length;
    this.span = Math.max(width - LEFT - RIGHT, 1);
    const x = (column) => LEFT + (column / Math.max(columns, 1)) * this.span;
    const room = height - FOOT;
    const picture = svg("svg", { width, height, "aria-hidden": "true" }, patterns());
    let top = 0;
    const lane = (name, share, most) => {
      const tall = room * share;
      const bottom = top + tall;
      picture.append(svg("path", { class: "grid", d: `M${LEFT},${bottom.toFixed(1)}H${width - RIGHT}` }), text(0, top + 11, name), text(LEFT - 6, top + 25, most, "end"));
      top = bottom + room * 0.03;
      return { bottom, tall };
    };
    this.bytes(picture, lane, x, columns);
    const open = Math.max(...data.open, 1);
    const places = lane("open", SHARES.open, count(open));
    const level = (column) => (places.bottom - (data.open[column] / open) * (places.tall - 2)).toFixed(1);
    picture.append(svg("path", { class: "open", d: data.open.map((_, column) => `${column ? "L" : "M"}${x(column).toFixed(1)},${level(column)}H${x(column + 1).toFixed(1)}`).join("") }));
    const spent = Object.fromEntries(Object.entries(data.causes).filter(([cause]) => cause !== "idle"));
    const causes = lane("causes", SHARES.causes, "");
    picture.append(...stacked(spent, columns, x, causes.bottom, causes.tall, highest(spent, columns)));
    this.axis(picture, width, height);
    this.chosen = svg("rect", { class: "chosen", y: 0, height: room, width: 0 });
    picture.append(this.chosen);
    this.box.replaceChildren(picture);
    this.mark();
    this.describe(spent);
  }

  /** Bytes of the client up, of the server down, from one line in the middle. */
  bytes(picture, lane, x, columns) {
    const { client_bytes: client, server_bytes: server } = this.data;
    const [up, down] = [Math.max(...client, 0), Math.max(...server, 0)];
    const { bottom, tall } = lane("bytes", SHARES.bytes, size(Math.max(up, down)));
    const middle = bottom - tall * (up + down ? down / (up + down) : 0.5);
    const area = (values, sign) => {
      let d = "";
      for (let column = 0; column < columns; column += 1) if (values[column]) d += `M${x(column).toFixed(1)},${middle.toFixed(1)}V${(middle - sign * (values[column] / (up + down)) * tall).toFixed(1)}H${x(column + 1).toFixed(1)}V${middle.toFixed(1)}Z`;
      return d;
    };
    picture.append(svg("path", { class: "client", d: area(client, 1) }), svg("path", { class: "server", d: area(server, -1) }), svg("path", { class: "grid", d: `M${LEFT},${middle.toFixed(1)}h${this.span}` }));
  }

  axis(picture, width, height) {
    const { from_ns, to_ns } = this.data;
    const parts = width > 600 ? 6 : 3;
    for (let part = 0; part <= parts; part += 1) {
      const time_ns = from_ns + ((to_ns - from_ns) * part) / parts;
      const anchor = part === 0 ? "start" : part === parts ? "end" : "middle";
      picture.append(text(this.x(time_ns), height - 4, duration(Math.round(time_ns)), anchor));
    }
  }

  describe(spent) {
    const { client_bytes: client, server_bytes: server, column_ns } = this.data;
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    const largest = Object.entries(spent).map(([cause, values]) => [cause, sum(values)]).filter(([, ns]) => ns > 0).sort((a, b) => b[1] - a[1]);
    this.legend.replaceChildren(...largest.slice(0, 8).map(([cause]) => element("li", { title: CAUSES[cause]?.means ?? "" }, swatch(cause), ` ${cause}`)));
    const words = `Bytes: ${size(sum(client))} from clients (up), ${size(sum(server))} from servers (down). Most connections open at once: ${count(Math.max(...this.data.open, 0))}. A column is ${duration(Math.round(column_ns))}.`;
    this.said.textContent = words;
    this.box.setAttribute("aria-label", `The capture over time. ${words} Causes, largest first: ${largest.slice(0, 5).map(([cause]) => cause).join(", ")}.`);
  }

  mark() {
    if (!this.chosen) return;
    const [left, right] = (this.selection ?? [0, 0]).map((time_ns) => Math.min(Math.max(this.x(time_ns), LEFT), LEFT + this.span));
    this.chosen.setAttribute("x", left);
    this.chosen.setAttribute("width", this.selection ? Math.max(right - left, 1) : 0);
  }

  drag() {
    let start = null;
    const place = (event) => event.clientX - this.box.getBoundingClientRect().left;
    this.box.addEventListener("pointerdown", (event) => {
      if (!this.data || event.button) return;
      start = place(event);
      this.box.setPointerCapture(event.pointerId);
    });
    this.box.addEventListener("pointermove", (event) => {
      if (start === null) return;
      this.selection = [this.time(Math.min(start, place(event))), this.time(Math.max(start, place(event)))];
      this.fill();
      this.mark();
    });
    this.box.addEventListener("pointerup", (event) => {
      if (start === null) return;
      const far = Math.abs(place(event) - start) > NEAR;
      start = null;
      this.select(far ? this.selection : null);
    });
    this.box.addEventListener("pointercancel", () => (start = null));
  }
}
