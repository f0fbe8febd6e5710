"use strict";
(() => {
  // ---- tables: sort by any column, search over all connections ----
  const table = document.getElementById("table");

  const sortKey = (cell, numeric) => {
    if (!numeric) return cell.textContent;
    const number = Number.parseFloat(cell.title || cell.textContent);
    return Number.isNaN(number) ? Number.NEGATIVE_INFINITY : number; // unknown values sort below all others
  };

  function sortBy(header) {
    const place = [...header.parentNode.children].indexOf(header);
    const numeric = header.classList.contains("number");
    const first = numeric ? "descending" : "ascending";
    const order = header.getAttribute("aria-sort") === first ? (numeric ? "ascending" : "descending") : first;
    for (const other of header.parentNode.children) other.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const text = new Intl.Collator("en", { numeric: true });
    const compare = numeric ? (a, b) => (a < b ? -1 : a > b ? 1 : 0) : text.compare;
    const body = header.closest("table").tBodies[0];
    const rows = [...body.rows].map((row) => [sortKey(row.cells[place], numeric), row]);
    rows.sort((a, b) => sign * compare(a[0], b[0]));
    body.append(...rows.map(([, row]) => row));
  }

  const fits = (found, finding) => (finding === "*" ? found !== "" : finding === "-" ? found === "" : found.split(", ").includes(finding));

  /** Show only the rows that contain all search words and the chosen finding. */
  function sift() {
    const wanted = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const finding = document.getElementById("finding")?.value ?? "";
    const { rows } = table.tBodies[0];
    let found = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word)) || (finding !== "" && !fits(row.cells[row.cells.length - 1].textContent, finding));
      if (!row.hidden) found += 1;
    }
    document.getElementById("found").textContent = wanted.length || finding ? `${found.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
  }

  /** Add the rows that the page contains in compressed form. Text from a capture becomes text, never markup. */
  async function addRows(packed) {
    const body = table.tBodies[0];
    const made = document.createDocumentFragment();
    for (const [texts, exact, isDrawn, guessed] of await unpack(packed.textContent)) {
      const row = document.createElement("tr");
      texts.forEach((text, place) => {
        const cell = row.insertCell();
        if (exact[place]) cell.title = exact[place];
        let holder = cell;
        if (place === 0) {
          holder = cell.appendChild(document.createElement(isDrawn ? "a" : "button"));
          if (isDrawn) holder.href = `#connection-${text.replaceAll(",", "")}`;
          else Object.assign(holder, { type: "button", className: "alone", title: "Not drawn on this page: shows the command that draws it" });
        }
        holder.textContent = text;
        if (place === 1 && guessed) {
          const note = document.createElement("span");
          note.className = "guess";
          note.title = `Assumed to be the client because ${guessed}; no SYN was captured`;
          note.textContent = "guessed";
          cell.append(" ", note);
        }
      });
      made.append(row);
    }
    body.append(made);
    sift();
  }

  for (const button of document.querySelectorAll("thead th > button")) button.addEventListener("click", () => sortBy(button.parentElement));
  if (table) {
    document.getElementById("search").addEventListener("input", sift);
    document.getElementById("finding")?.addEventListener("change", sift);
  }

  /** Show the exact command for a connection that has no figures on this page. */
  function tellCommand(conn) {
    const line = document.getElementById("command");
    line.hidden = false;
    line.querySelector("code").textContent = `${line.dataset.command} --connection ${conn}`;
    line.querySelector("button").textContent = "copy";
  }

  document.getElementById("connections")?.addEventListener("click", (event) => {
    const button = event.target.closest(".alone");
    if (button) tellCommand((button.dataset.conn ?? button.textContent).replaceAll(",", ""));
  });

  /** Save text as a file. */
  function save(text, name, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  /** The visible rows with the chosen columns. Numbers are exact; the heading of the column has their unit. */
  function contents(own, hidden) {
    const heads = [...own.tHead.rows[0].cells];
    const shown = heads.map((_, place) => place).filter((place) => !hidden.has(place));
    const rows = [...own.tBodies[0].rows].filter((row) => !row.hidden);
    const exact = (cell) => cell.title.match(/^(-?\d+(?:\.\d+)?)(?: (s|bytes|b\/s)\b.*)?$/);
    const units = shown.map((place) => rows.map((row) => exact(row.cells[place])?.[2]).find(Boolean));
    const head = shown.map((place, at) => heads[place].textContent.trim() + (units[at] ? ` (${units[at]})` : ""));
    const text = (cell) => (cell.title === "unknown" ? "" : exact(cell)?.[1] ?? (cell.querySelector("code") ?? cell).textContent.trim());
    return [head, ...rows.map((row) => shown.map((place) => text(row.cells[place])))];
  }

  /** Add buttons above a table: choose its columns, and copy or save its rows. */
  function addTools(holder, number) {
    const own = holder.querySelector("table");
    const name = holder.closest("[id]")?.id || "table";
    const hidden = new Set();
    const style = document.head.appendChild(document.createElement("style"));
    own.dataset.number = number;
    const tools = document.createElement("div");
    tools.className = "tools table-tools";
    const choice = tools.appendChild(document.createElement("details"));
    choice.className = "columns";
    choice.appendChild(document.createElement("summary")).textContent = "Columns";
    const list = choice.appendChild(document.createElement("div"));
    [...own.tHead.rows[0].cells].forEach((head, place) => {
      const label = list.appendChild(document.createElement("label"));
      const box = Object.assign(label.appendChild(document.createElement("input")), { type: "checkbox", checked: true });
      label.append(` ${head.textContent.trim()}`);
      box.addEventListener("change", () => {
        if (box.checked) hidden.delete(place);
        else hidden.add(place);
        const cells = [...hidden].map((each) => `table[data-number="${number}"] tr > :nth-child(${each + 1})`);
        style.textContent = cells.length ? `${cells.join(", ")} { display: none; }` : "";
      });
    });
    const button = (text, action) => {
      const made = Object.assign(tools.appendChild(document.createElement("button")), { type: "button", textContent: text });
      made.addEventListener("click", () => action(made));
    };
    button("Copy table", async (made) => {
      const lines = contents(own, hidden).map((row) => row.map((cell) => cell.replace(/\s+/g, " ")).join("\t"));
      try {
        await navigator.clipboard.writeText(`${lines.join("\n")}\n`);
        made.textContent = "copied";
      } catch {
        getSelection().selectAllChildren(own);
        made.textContent = document.execCommand("copy") ? "copied" : "selected";
      }
    });
    button("Save CSV", () => {
      const quoted = (cell) => (/^[=+@\t\r]|^-(?!\d)/.test(cell) ? `'${cell}` : cell); // otherwise it would be a formula
      const lines = contents(own, hidden).map((row) => row.map((cell) => `"${quoted(cell).replaceAll('"', '""')}"`).join(","));
      save(`${lines.join("\r\n")}\r\n`, `${name}.csv`, "text/csv");
    });
    holder.before(tools);
  }

  document.querySelectorAll(".scroll").forEach((holder, number) => {
    if (holder.querySelector(":scope > table > thead")) addTools(holder, number);
  });

  // ---- figures: unpacked when first needed (reverses pack.py) ----
  function inflate(text, format = "deflate") {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format))).text();
  }

  let small = null;

  /** Unpack a value: from its own text, or from its place among the small values, which are compressed together. */
  async function unpack(text) {
    if (!/^\d+$/.test(text)) return widen(JSON.parse(await inflate(text)));
    small ??= inflate(document.getElementById("packed").textContent).then((all) => JSON.parse(all));
    return widen(structuredClone((await small)[Number(text)]));
  }

  let loading = null;

  /** Load Plotly once: from the page, whose policy contains the hash of this text, or from the file beside it, which the policy names. */
  function plotly() {
    loading ??= new Promise((done, failed) => {
      const held = document.getElementById("plotly");
      const script = document.createElement("script");
      const { beside, nonce } = held.dataset;
      if (beside) {
        script.nonce = nonce;
        script.src = beside;
        script.addEventListener("load", () => done(window.Plotly));
        script.addEventListener("error", () => failed(new Error(`the file ${beside} is missing next to this page`)));
        document.head.append(script);
        return;
      }
      inflate(held.textContent, "gzip").then((text) => {
        script.textContent = text;
        document.head.append(script);
        done(window.Plotly);
      }, failed);
    });
    return loading;
  }

  function widen(value) {
    if (Array.isArray(value)) return value.map(widen);
    if (value === null || typeof value !== "object") return value;
    const keys = Object.keys(value);
    if (keys.length === 1 && keys[0] === "t") {
      const columns = value.t.map(widen);
      return columns[0].map((first, row) => (first === null ? null : columns.map((column) => column[row])));
    }
    if (keys.length === 2 && "d" in value && "e" in value) {
      const scale = 10 ** value.e;
      let total = 0;
      return value.d.map((step) => (step === null ? null : (total += step) / scale));
    }
    for (const key of keys) value[key] = widen(value[key]);
    return value;
  }

  const CLOSEST = 1e-9; // seconds: resolution of the finest clock

  // ---- the address holds the place and what is shown there, so that a link can be shared ----
  const address = new URLSearchParams();

  function readAddress() {
    const [at, ...rest] = location.hash.slice(1).split("&");
    for (const key of [...address.keys()]) address.delete(key);
    address.set("at", at);
    for (const [key, value] of new URLSearchParams(rest.join("&"))) address.set(key, value);
  }

  /** Store these values in the address; null removes one. */
  function remember(changes) {
    const before = address.get("at") ?? "";
    if (changes.at && before !== changes.at && before.startsWith("finding-") && changes.at.startsWith("connection-")) address.set("finding", before.slice(8));
    for (const [key, value] of Object.entries(changes)) {
      if (value === null) address.delete(key);
      else address.set(key, value);
    }
    const { at, ...others } = Object.fromEntries(address);
    const query = new URLSearchParams(others).toString();
    history.replaceState(null, "", `#${at}${query && `&${query}`}`);
  }

  /** The times in the address; null if it has none. */
  function rememberedRange() {
    const range = ["from", "to"].map((key) => Number.parseFloat(address.get(key)));
    return range.every(Number.isFinite) && range[0] < range[1] ? range : null;
  }

  const shortest = (seconds) => String(Number(seconds.toFixed(9)));

  // ---- a zoom never ends at nothing ----
  /** Whether anything of these traces lies in a rectangle of times and heights. */
  function hits(traces, [left, right], [low, high]) {
    return traces.some((trace) => {
      const lines = trace.mode?.includes("lines");
      return trace.x.some((x, place) => {
        const y = trace.y[place];
        if (x === null || y === null) return false;
        const follows = lines && trace.x[place + 1] != null && trace.y[place + 1] != null;
        const [until, level] = follows ? [trace.x[place + 1], trace.y[place + 1]] : [x, y];
        const [up, down] = [trace.error_y?.array?.[place] ?? 0, trace.error_y?.arrayminus?.[place] ?? 0];
        return x <= right && until >= left && Math.min(y - down, level) <= high && Math.max(y + up, level) >= low;
      });
    });
  }

  /** A range of times, extended to the nearest point if it contains none. */
  function reaching(traces, [from, to]) {
    if (traces.some((trace) => extent(trace, from, to))) return [from, to];
    const times = traces.flatMap((trace) => trace.x).filter((x) => x !== null);
    const [before, after] = [times.filter((x) => x < from), times.filter((x) => x > to)];
    const beside = (to - from) / 20;
    const nearest = [...(before.length ? [before.reduce((a, b) => Math.max(a, b))] : []), ...(after.length ? [after.reduce((a, b) => Math.min(a, b))] : [])];
    if (!nearest.length) return [from, to];
    const away = (x) => Math.min(Math.abs(x - from), Math.abs(x - to));
    const x = nearest.reduce((a, b) => (away(a) <= away(b) ? a : b));
    return [Math.min(from, x - beside), Math.max(to, x + beside)];
  }

  const nextFrame = () => new Promise(requestAnimationFrame);

  function inSight(figure) {
    const { top, bottom } = figure.getBoundingClientRect();
    return bottom > 0 && top < innerHeight;
  }

  const BESIDE = 2; // the requested times are shown with this multiple of their length on either side
  /** Draw a figure once; show a message if that fails. */
  async function drawn(figure, action) {
    if (figure.dataset.drawn) return;
    figure.dataset.drawn = "started";
    const plot = figure.querySelector(".plot");
    try {
      await action(plot);
      figure.dataset.drawn = "yes";
    } catch (problem) {
      figure.dataset.drawn = "failed";
      plot.classList.add("failed");
      plot.textContent = `This figure could not be drawn (${problem.message}). A current browser is needed.`;
    }
  }

  /** The figure of a finding, which shows one place in detail. */
  class Zoom {
    constructor(figure) {
      this.figure = figure;
      this.finding = figure.closest("details.finding")?.id;
      const plots = () => [...figure.parentElement.querySelectorAll(".plot")];
      for (const plot of figure.querySelectorAll(".plot")) followMouse(plot, plots);
    }

    draw() {
      return drawn(this.figure, async (plot) => {
        const [{ newPlot }, { data, layout }] = await Promise.all([plotly(), unpack(this.figure.querySelector("script").textContent)]);
        await newPlot(plot, data, dressed(plot, layout), CONFIG);
        markOverTime(plot, layout);
        spaceUnits(plot);
        if (!layout.xaxis.range || layout.yaxis.range) return; // the layout has the ranges
        const { range, remarks } = fitted(data, layout.yaxis, layout.xaxis.range, 0.14); // room for the text at the last frame
        await Plotly.relayout(plot, { "yaxis.range": range, annotations: [...(layout.annotations ?? []), ...remarks.map(remark)] });
        plot.on("plotly_relayout", (change) => this.followed(plot, data, layout, change));
        const asked = rememberedRange();
        if (asked && this.figure.dataset.key === "zoom" && address.get("at") === this.finding) await this.show(plot, data, layout, asked);
      });
    }

    /** Show these times, with the y range of their data. */
    show(plot, data, layout, times) {
      const { range } = fitted(data, layout.yaxis, times, 0.14);
      return Plotly.relayout(plot, { "xaxis.range": times, "yaxis.range": range });
    }

    /** The reader zoomed: extend an empty range, and store the range in the address. */
    async followed(plot, data, layout, change) {
      const times = rangeOf(change, "xaxis");
      if (!times || change["xaxis.range"]) return change["xaxis.autorange"] && this.keep(null); // our own changes set both ends at once
      const shown = reaching(data, times);
      const heights = rangeOf(change, "yaxis");
      if (shown[0] !== times[0] || shown[1] !== times[1] || (heights && !hits(data, times, heights))) await this.show(plot, data, layout, shown);
      this.keep(shown);
    }

    keep(times) {
      if (!this.finding || this.figure.dataset.key !== "zoom") return;
      remember({ at: this.finding, side: null, from: times && shortest(times[0]), to: times && shortest(times[1]) });
    }

    async repaint() {
      const plot = this.figure.querySelector(".plot");
      if (this.figure.dataset.drawn === "yes") await Plotly.react(plot, plot.data, dressed(plot, plot.layout), CONFIG);
    }
  }

  class Connection {
    constructor(article) {
      this.article = article;
      this.all = [...article.querySelectorAll("figure")]; // in the order of the data
      this.figures = this.all.filter((figure) => this.plotOf(figure)); // figures with something to draw
      this.range = null; // null: the whole connection
      this.marked = []; // the times that the reader requested, if any
      this.following = 0; // number of our own changes in progress
      this.asked = 0; // number of zooms so far
      const plots = () => this.drawn().map((figure) => this.plotOf(figure));
      for (const figure of this.figures) followMouse(this.plotOf(figure), plots);
      for (const button of article.querySelectorAll("[data-move]")) button.addEventListener("click", () => this.move(button.dataset.move));
      for (const radio of article.querySelectorAll("input[type=radio]")) radio.addEventListener("change", () => this.show(radio.value));
    }

    /** Unpack the figures' data once. */
    data() {
      this.unpacked ??= unpack(this.article.querySelector(".figures").textContent);
      return this.unpacked;
    }

    plotOf(figure) {
      return figure.querySelector(".plot");
    }

    drawn() {
      return this.figures.filter((figure) => figure.dataset.drawn === "yes" && !figure.hidden);
    }

    draw(figure) {
      return drawn(figure, async (plot) => {
        const [{ newPlot }, { figures, ledger }] = await Promise.all([plotly(), this.data()]);
        const { data, layout } = figures[this.all.indexOf(figure)];
        this.whole ??= layout.xaxis.range.slice();
        const strip = ledger[figure.dataset.by === "both" ? this.side() : figure.dataset.by] ?? [];
        plot.own = data; // the complete data; the drawn traces have fewer points
        plot.strip = strip.length > 0;
        plot.shapes = layout.shapes ?? [];
        const { change, traces } = this.sight(plot, data, layout.yaxis);
        const [x, y] = [{ ...layout.xaxis, range: change["xaxis.range"] }, { ...layout.yaxis, range: change["yaxis.range"] }];
        const { annotations, shapes } = change;
        await newPlot(plot, [...traces, ...strip.map(copied)], dressed(plot, { ...layout, xaxis: x, yaxis: y, annotations, shapes }, plot.strip), CONFIG);
        markOverTime(plot, layout);
        spaceUnits(plot);
        plot.on("plotly_relayout", (change) => this.follow(figure, change));
      });
    }

    /** The reader zoomed one figure: apply its times to the others. */
    async follow(source, change) {
      if (this.following) return;
      const times = rangeOf(change, "xaxis");
      const heights = rangeOf(change, "yaxis");
      const plot = this.plotOf(source);
      const seen = plot.own.filter((_, place) => plot.data[place].visible !== "legendonly");
      if (times) this.range = reaching(seen, times);
      else if (change["xaxis.autorange"]) this.range = null;
      else return;
      if (this.range && this.range[0] <= this.whole[0] && this.range[1] >= this.whole[1]) this.range = null;
      const keeps = heights && this.range && this.range[0] === times[0] && this.range[1] === times[1] && hits(seen, times, heights);
      await this.zoomAll(keeps ? source : null);
    }

    /** Store what is shown in the address. */
    keep() {
      const [from, to] = this.range ?? [];
      remember({ at: this.article.id, side: this.article.querySelector("input[type=radio]") ? this.side() : null, from: this.range && shortest(from), to: this.range && shortest(to) });
    }

    /** Show what the address describes. */
    async restore() {
      const { figures } = await this.data();
      this.whole ??= figures[0].layout.xaxis.range.slice();
      this.range = rememberedRange();
      const radio = this.article.querySelector(`input[type=radio][value="${CSS.escape(address.get("side") ?? "")}"]`);
      if (radio) {
        radio.checked = true;
        await this.show(radio.value);
      } else await this.zoomAll(null);
      this.article.querySelector(".tools")?.scrollIntoView({ block: "start", behavior: "instant" });
    }

    /** Update visible figures at once and the others one per animation frame, so that a zoom never waits for invisible figures. */
    async zoomAll(except) {
      this.asked += 1;
      const mine = this.asked;
      this.keep();
      const [seen, unseen] = [[], []];
      for (const figure of this.drawn()) if (figure !== except) (inSight(figure) ? seen : unseen).push(figure);
      await this.quietly(() => Promise.all(seen.map((figure) => this.zoom(figure))));
      for (const figure of unseen) {
        await nextFrame();
        if (mine !== this.asked) return; // the reader zoomed again; that zoom updates all figures
        await this.quietly(() => this.zoom(figure));
      }
    }

    /** Change the figures without treating the change as the reader's. */
    async quietly(action) {
      this.following += 1;
      try {
        await action();
      } finally {
        this.following -= 1;
      }
    }

    /** The changes that make a figure show the current times: its layout, and its traces with the points that can be distinguished. */
    sight(plot, data, axis) {
      const range = (this.range ?? this.whole).slice();
      const { range: height, remarks } = fitted(data, axis, range);
      const shapes = [...plot.shapes, ...this.marked.map(highlight)];
      const beside = JSON.stringify([remarks, shapes]);
      const change = { "xaxis.range": range, ...(height ? { "yaxis.range": height } : { "yaxis.autorange": true }) };
      if (beside !== plot.beside) Object.assign(change, { annotations: remarks.map(remark), shapes }); // they take as long as the rest
      plot.beside = beside;
      plot.lean = data.map((trace) => lean(trace, range));
      return { change, traces: data.map((trace, place) => trimmed(trace, plot.lean[place])) };
    }

    async zoom(figure) {
      const plot = this.plotOf(figure);
      const shown = plot.own.map((trace, place) => ({ ...trace, visible: plot.data[place].visible }));
      const { change } = this.sight(plot, shown, plot.layout.yaxis);
      const places = plot.lean.flatMap((found, place) => (found ? [place] : []));
      if (!places.length) return Plotly.relayout(plot, change);
      const points = {};
      for (const key of ["x", "y", "customdata"]) points[key] = places.map((place) => plot.lean[place][key]);
      const errors = places.filter((place) => plot.own[place].error_y);
      if (errors.length) await Plotly.restyle(plot, { "error_y.array": errors.map((place) => plot.lean[place]["error_y.array"]) }, errors);
      return Plotly.update(plot, points, change, places);
    }

    /** Zoom and pan without a mouse. */
    async move(way) {
      await this.data();
      if (!this.whole) return;
      const [from, to] = this.range ?? this.whole;
      const span = to - from;
      const ways = { in: [from + span / 4, to - span / 4], out: [from - span / 2, to + span / 2], earlier: [from - span / 4, to - span / 4], later: [from + span / 4, to + span / 4] };
      this.range = ways[way] ?? null;
      if (way === "all") this.marked = [];
      if (this.range && (this.range[1] - this.range[0] < CLOSEST || (way === "out" && this.range[1] - this.range[0] > this.whole[1] - this.whole[0]))) this.range = null;
      await this.zoomAll(null);
    }

    /** Show the data of one direction around some times, and mark these times. */
    async jump(side, from, to) {
      const figure = this.figures.find((each) => each.dataset.by === side);
      if (!figure) return;
      const beside = Math.max((to - from) * BESIDE, CLOSEST);
      this.range = [from - beside, to + beside];
      this.marked = [[from, to]];
      const radio = this.article.querySelector(`input[type=radio][value=${side}]`);
      if (radio) radio.checked = true;
      for (const each of this.all) each.hidden = each.dataset.by !== "both" && each.dataset.by !== side;
      await this.quietly(() => this.restrip(side));
      await this.draw(figure);
      await this.zoomAll(null);
      figure.scrollIntoView({ block: "center", behavior: "instant" });
      const plot = this.plotOf(figure);
      plot.tabIndex = -1;
      plot.focus({ preventScroll: true });
    }

    /** The direction whose data is shown. */
    side() {
      return this.article.querySelector("input[type=radio]:checked")?.value ?? this.all[0]?.dataset.by;
    }

    /** Make the figure of both directions show the ledger of the chosen one. */
    async restrip(side) {
      const { ledger } = await this.data();
      for (const figure of this.drawn().filter((each) => each.dataset.by === "both")) {
        const plot = this.plotOf(figure);
        const strip = ledger[side] ?? [];
        plot.strip = strip.length > 0;
        await Plotly.react(plot, [...plot.own.map((trace, place) => trimmed(trace, plot.lean[place])), ...strip.map(copied)], dressed(plot, plot.layout, plot.strip), CONFIG);
      }
    }

    /** Change the direction whose data is shown. */
    async show(side) {
      this.keep();
      await this.quietly(() => this.restrip(side));
      for (const figure of this.all) figure.hidden = figure.dataset.by !== "both" && figure.dataset.by !== side;
      for (const figure of this.figures.filter((each) => !each.hidden)) {
        await this.draw(figure);
        await this.quietly(() => this.zoom(figure));
      }
    }

    async repaint() {
      for (const figure of this.figures.filter((each) => each.dataset.drawn === "yes")) {
        const plot = this.plotOf(figure);
        await Plotly.react(plot, plot.data, dressed(plot, plot.layout, plot.strip), CONFIG);
        plot.beside = null; // remarks use the page's colours, too
        await this.quietly(() => this.zoom(figure));
      }
    }
  }

  const connections = new Map([...document.querySelectorAll(".connection")].map((article) => [article.id, new Connection(article)]));
  const zooms = new Map([...document.querySelectorAll(".zoom figure")].map((figure) => [figure, new Zoom(figure)]));
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (isIntersecting) (zooms.get(target) ?? connections.get(target.closest(".connection").id)).draw(target);
      }
    },
    { rootMargin: "300px" },
  );
  for (const connection of connections.values()) connection.figures.forEach((figure) => watcher.observe(figure));
  for (const figure of zooms.keys()) watcher.observe(figure);
  darkness.addEventListener("change", () => [...connections.values(), ...zooms.values()].forEach((each) => each.repaint()));

  // ---- buttons: to a place in a figure, and a filter to the clipboard ----
  async function copy(button) {
    const code = button.parentElement.querySelector("code");
    getSelection().selectAllChildren(code); // if the clipboard is not available, select the text instead
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    } catch {
      button.textContent = document.execCommand("copy") ? "copied" : "selected";
    }
  }

  /** A link opens its finding and shows its connection at its times. */
  function openTarget() {
    readAddress();
    const target = document.getElementById(address.get("at"));
    const finding = document.getElementById(`finding-${address.get("finding")}`);
    for (const each of [target, finding]) {
      if (!each?.matches("details")) continue;
      each.open = true;
      if (rememberedRange() && each === target) each.querySelectorAll("details.zoom").forEach((zoom) => (zoom.open = true));
    }
    if (connections.has(address.get("at")) && location.hash.includes("&")) connections.get(address.get("at")).restore();
    else if (target?.matches("details")) target.scrollIntoView({ block: "start", behavior: "instant" }); // it has just been unfolded
  }

  let folded = null; // the parts that are open only to be printed

  const repainted = () => Promise.all([...connections.values(), ...zooms.values()].map((each) => each.repaint()));

  /** Open all folded parts, and show figures in dark colours on white. */
  async function unfold() {
    if (folded) return;
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const details of folded) details.open = true;
    document.documentElement.dataset.theme = "light";
    await repainted();
  }

  /** Undo `unfold`. */
  async function fold() {
    if (!folded) return;
    for (const details of folded) details.open = false;
    folded = null;
    delete document.documentElement.dataset.theme;
    await repainted();
  }

  /** Fill all tables and draw all figures, and then print. */
  async function printed() {
    await Promise.all([unfold(), ...statistics.map(fill)]);
    const shown = [...connections.values()].flatMap((each) => each.figures.filter((figure) => !figure.hidden).map((figure) => each.draw(figure)));
    await Promise.all([...shown, ...[...zooms.values()].map((each) => each.draw())]);
    window.print();
    await fold();
  }

  const packed = document.getElementById("rows");
  if (packed) addRows(packed);
  /** Unpack a table of statistics, once. The meaning of each figure is in the page only among the definitions. */
  async function fill(table) {
    const packed = table.querySelector("script");
    packed?.remove();
    if (!packed) return;
    const meanings = new Map([...document.querySelectorAll(".definitions dt")].map((dt) => [dt.textContent, dt.nextElementSibling.textContent]));
    for (const [label, ...values] of await unpack(packed.textContent)) {
      const row = table.querySelector("tbody").insertRow();
      row.append(Object.assign(document.createElement("th"), { scope: "row", textContent: label, title: meanings.get(label) ?? "" }));
      for (const [text, exact] of values) Object.assign(row.insertCell(), { textContent: text, title: exact });
    }
  }

  const statistics = [...document.querySelectorAll("details.statistics")];

  document.getElementById("print")?.addEventListener("click", printed);
  window.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key.toLowerCase() !== "p") return;
    event.preventDefault();
    printed();
  });
  // The browser's menu prints what is there when these handlers return: tables are filled before, and figures that nobody saw are not drawn.
  window.addEventListener("beforeprint", unfold);
  window.addEventListener("afterprint", fold);
  setTimeout(() => statistics.forEach(fill), 500); // after the first paint
  window.addEventListener("hashchange", openTarget);
  for (const link of document.querySelectorAll("a.open")) link.addEventListener("click", () => (document.getElementById(link.hash.slice(1)).open = true));
  openTarget();
  for (const summary of document.querySelectorAll("details.finding > summary")) {
    const { id } = summary.parentElement;
    summary.addEventListener("click", () => remember({ at: summary.parentElement.open ? "findings" : id, side: null, from: null, to: null, finding: null }));
  }
  for (const button of document.querySelectorAll(".jump")) {
    const { conn, side, from, to } = button.dataset;
    button.addEventListener("click", () => connections.get(`connection-${conn}`).jump(side, Number(from), Number(to)));
  }
  for (const button of document.querySelectorAll(".reproduce")) {
    const { script, file } = button.dataset;
    button.addEventListener("click", async () => save(await unpack(document.getElementById(script).textContent), file, "text/x-python"));
  }
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", () => copy(button));
})();
