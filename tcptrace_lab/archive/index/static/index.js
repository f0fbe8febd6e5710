"use strict";
(async () => {
  // ---- data: compressed in the page ----
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
  const data = JSON.parse(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text());
  const { captures, totals, trend, colours } = data;
  const length = (table) => Object.values(table).find(Array.isArray)?.length ?? 0;

  // ---- numbers for people, formatted as in numbers.py ----
  const DASH = "–";
  const short = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 12 }));
  const known = (said) => (value) => (value === null || value === undefined ? DASH : said(value));
  const count = known((value) => value.toLocaleString("en"));
  const prefixed = (unit, kilo) =>
    known((value) => {
      let step = 0;
      while (step < 4 && Math.abs(Number(value.toPrecision(3))) >= 1000) {
        value /= 1000;
        step += 1;
      }
      return `${short(value)} ${["", kilo, "M", "G", "T"][step]}${unit}`;
    });
  const size = prefixed("B", "K");
  const rate = prefixed("b/s", "k");
  const share = known((value) => `${value >= 0.0995 ? Math.round(value * 100) : (value * 100).toFixed(1)} %`);
  const duration = known((ns) => {
    if (ns === 0) return "0 s";
    const seconds = Math.round(Math.abs(ns) / 1e9);
    if (seconds >= 600) {
      const [scale, first, small, second] =
        seconds >= 172800 ? [86400, "d", 3600, "h"] : seconds >= 3600 ? [3600, "h", 60, "min"] : [60, "min", 1, "s"];
      const rest = Math.floor((seconds % scale) / small);
      return `${Math.floor(seconds / scale)} ${first}${rest ? ` ${rest} ${second}` : ""}`;
    }
    for (const [unit, scale] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) if (Math.abs(ns) >= scale) return `${short(ns / scale)} ${unit}`;
    return `${ns} ns`;
  });
  const utc = known((ns) => new Date(ns / 1e6).toISOString().replace("T", " ").slice(0, 19));
  const host = (address, port) => (port === undefined ? address : address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);
  const pairOf = (table, row) => `${table.client_addr[row]} → ${host(table.server_addr[row], table.server_port[row])}`;
  const wayOf = (table, row) => {
    const [client, server] = [host(table.client_addr[row], table.client_port?.[row]), host(table.server_addr[row], table.server_port[row])];
    return table.from_client[row] ? `${client} → ${server}` : `${server} → ${client}`;
  };

  const made = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") element.textContent = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };
  const drawn = (tag, attributes = {}, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const dot = (cause) => {
    const mark = made("i");
    mark.style.background = colours[cause] ?? "var(--dim)";
    return mark;
  };
  const linkTo = (at, conn, text) => {
    const report = captures.report[at];
    if (!report) return text;
    return made("a", { href: report + (conn === null || conn === undefined ? "" : `#connection-${conn}`), text });
  };

  // ---- filters that several tables share ----
  const chosen = { cause: null, pair: null, bucket: null };
  const sheets = [];
  const bucketOf = (ns) => (ns === null ? null : Math.floor((ns - trend.origin_ns) / trend.width_ns));
  const choose = (name, value) => {
    chosen[name] = chosen[name] === value ? null : value;
    showFilters();
    sheets.forEach((sheet) => sheet.refresh());
    chart();
  };
  function showFilters() {
    const words = { cause: (cause) => `cause: ${cause}`, pair: (pair) => `hosts: ${pair}`, bucket: (place) => `from ${utc(trend.origin_ns + place * trend.width_ns)}, for ${duration(trend.width_ns)}` };
    const chips = Object.keys(chosen)
      .filter((name) => chosen[name] !== null)
      .map((name) => made("button", { type: "button", text: `${words[name](chosen[name])}  ✕`, "aria-label": `remove filter ${words[name](chosen[name])}`, onclick: () => choose(name, chosen[name]) }));
    document.getElementById("filters").replaceChildren(...(chips.length ? ["Only", ...chips] : []));
  }

  // ---- tables that contain elements only for the rows in view ----
  const ROW = 30;
  class Sheet {
    /** columns: {title, width (ch), kind: text|number, value(row), show(row) → text or element, tip} */
    constructor(section, rows, columns, { passes = () => true, sort = null, search = true } = {}) {
      Object.assign(this, { rows, columns, passes, order: sort, words: [] });
      this.place = section.querySelector("[data-table]");
      this.head = made("tr");
      columns.forEach((column, place) => {
        const button = made("button", { type: "button", text: column.title, title: column.tip ?? column.title, onclick: () => this.sortBy(place) });
        const cell = made("th", { scope: "col", class: column.kind }, button);
        cell.style.width = `${column.width}ch`;
        this.head.append(cell);
      });
      this.body = made("tbody");
      this.scroller = made("div", { class: "sheet", tabindex: "0", role: "region", "aria-label": section.querySelector("h2").textContent }, made("table", {}, made("thead", {}, this.head), this.body));
      this.scroller.addEventListener("scroll", () => requestAnimationFrame(() => this.paint()), { passive: true });
      this.found = made("span", { class: "dim", role: "status" });
      if (search && rows > 12) {
        const box = made("input", { type: "search", placeholder: "search", "aria-label": `search ${section.querySelector("h2").textContent}` });
        box.addEventListener("input", () => {
          this.words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
          this.refresh();
        });
        this.place.append(made("div", { class: "tools" }, box, this.found));
      }
      this.place.append(this.scroller);
      sheets.push(this);
      this.refresh();
    }

    text(row) {
      this.texts ??= [];
      return (this.texts[row] ??= this.columns.map((column) => { const shown = column.show(row); return typeof shown === "string" ? shown : shown.textContent; }).join(" ").toLowerCase());
    }

    refresh() {
      this.view = [];
      for (let row = 0; row < this.rows; row += 1) {
        if (this.passes(row) && this.words.every((word) => this.text(row).includes(word))) this.view.push(row);
      }
      if (this.order) {
        const { place, sign } = this.order;
        const { value, kind } = this.columns[place];
        const text = new Intl.Collator("en", { numeric: true });
        const keys = new Map(this.view.map((row) => [row, value(row)]));
        const missing = (key) => key === null || key === undefined;
        this.view.sort((a, b) => {
          const [x, y] = [keys.get(a), keys.get(b)];
          if (missing(x) || missing(y)) return missing(x) - missing(y) || a - b; // unknown values last in both directions
          return sign * (kind === "number" ? x - y : text.compare(x, y)) || a - b;
        });
        [...this.head.cells].forEach((cell, at) => cell.setAttribute("aria-sort", at === place ? (sign > 0 ? "ascending" : "descending") : "none"));
      }
      this.found.textContent = this.view.length === this.rows ? `${count(this.rows)} rows` : `${count(this.view.length)} of ${count(this.rows)} rows`;
      this.scroller.scrollTop = 0;
      this.first = -1;
      this.paint();
    }

    sortBy(place) {
      const first = this.columns[place].kind === "number" ? -1 : 1;
      this.order = { place, sign: this.order?.place === place ? -this.order.sign : first };
      this.refresh();
    }

    paint() {
      const above = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 10);
      const many = Math.ceil((this.scroller.clientHeight || 500) / ROW) + 20;
      const first = Math.min(above, Math.max(0, this.view.length - many));
      if (first === this.first) return;
      this.first = first;
      const rows = this.view.slice(first, first + many).map((row, place) => made("tr", { "aria-rowindex": first + place + 2 }, ...this.columns.map((column) => this.cell(column, row))));
      const space = (height) => made("tr", { class: "space", "aria-hidden": "true", style: `height:${height}px` }, made("td", { colspan: this.columns.length }));
      const below = this.view.length - first - rows.length;
      this.body.replaceChildren(...(first ? [space(first * ROW)] : []), ...rows, ...(below > 0 ? [space(below * ROW)] : []));
      this.body.parentElement.setAttribute("aria-rowcount", this.view.length + 1);
      if (!this.view.length) this.body.replaceChildren(made("tr", {}, made("td", { colspan: this.columns.length, class: "cell text", text: "none" })));
    }

    cell(column, row) {
      const shown = column.show(row);
      const cell = made("td", { class: `cell ${column.kind}${column.wrap ? " wrap" : ""}` }, shown);
      const full = column.full?.(row) ?? (column.kind === "text" ? cell.textContent : undefined);
      if (full) cell.title = full;
      return cell;
    }
  }

  const number = (title, width, values, said, tip) => ({ title, width, kind: "number", value: (row) => values[row], show: (row) => said(values[row]), tip });
  const text = (title, width, of, tip) => ({ title, width, kind: "text", value: of, show: (row) => of(row) ?? DASH, tip });
  const causeCell = (values) => ({
    title: "main cause", width: 20, kind: "text", value: (row) => values[row] ?? "",
    show: (row) => (values[row] ? made("button", { type: "button", onclick: () => choose("cause", values[row]) }, dot(values[row]), values[row]) : DASH),
    full: (row) => data.words.causes[values[row]], tip: "The largest fixable cause; click to show only this cause",
  });
  const pairCell = (title, width, table, of) => ({ title, width, kind: "text", value: (row) => of(table, row), show: (row) => made("button", { type: "button", onclick: () => choose("pair", pairOf(table, row)) }, of(table, row)), tip: "Click to see only these hosts" });
  const shareCell = (title, lost, life, tip) => {
    const value = (row) => (life[row] ? lost[row] / life[row] : null);
    return {
      title, width: 15, kind: "number", value, tip,
      show: (row) => {
        const part = made("b");
        part.style.width = `${Math.min(100, (value(row) ?? 0) * 100)}%`;
        return made("span", {}, share(value(row)), made("span", { class: "meter" }, part));
      },
    };
  };
  const severityCell = (values) => {
    const rank = { high: 3, medium: 2, low: 1, info: 0 };
    return { title: "worst", width: 10, kind: "number", value: (row) => rank[values[row]] ?? null, show: (row) => (values[row] ? made("span", { class: `sev ${values[row]}`, text: values[row] }) : DASH), tip: "The severity of the worst finding" };
  };
  const captureCell = (at, conn) => ({ title: "capture", width: 26, kind: "text", value: (row) => captures.name[at[row]], show: (row) => linkTo(at[row], conn?.[row], captures.name[at[row]]), full: (row) => captures.path[at[row]], tip: "Opens its report" });
  const inFilter = (cause, pair, ns) => (chosen.cause === null || cause === chosen.cause) && (chosen.pair === null || pair === chosen.pair) && (chosen.bucket === null || bucketOf(ns) === chosen.bucket);

  // ---- the parts of the page ----
  const note = (section, words) => { section.querySelector("[data-note]").textContent = words; };

  const isPoor = (row) => captures.quality[row] === "poor";

  /** A table of the captures for which `listed` is true. */
  function captureSheet(section, listed) {
    new Sheet(section, length(captures), [
      { title: "capture", width: 30, kind: "text", value: (row) => captures.name[row], show: (row) => linkTo(row, null, captures.name[row]), full: (row) => captures.path[row] },
      { title: "state", width: 9, kind: "text", value: (row) => captures.state[row], show: (row) => made("span", { class: `state ${captures.state[row]}`, text: captures.state[row] }), full: (row) => captures.reason[row] ?? undefined },
      severityCell(captures.worst_severity), number("time lost", 12, captures.fixable_ns, duration), shareCell("of transfers", captures.fixable_ns, captures.active_ns),
      number("connections", 13, captures.connections, count), number("packets", 11, captures.packets, count), number("began", 21, captures.first_ts_ns, utc), number("duration", 12, captures.duration_ns, duration), number("size", 11, captures.file_bytes, size),
      { ...text("verdict or reason", 90, (row) => captures.reason[row] ?? captures.verdict[row]), wrap: true },
    ], { passes: (row) => listed(row) && (chosen.bucket === null || bucketOf(captures.first_ts_ns[row]) === chosen.bucket) });
  }

  const parts = {
    changes(section) {
      const { words, baseline, changes } = data.comparison;
      note(section, `Compared with ${baseline}: ${words}. Old and new transfers between the same hosts are compared by ranks (Mann-Whitney test; at most 5% of the changes listed here are false alarms, by Benjamini and Hochberg's method). The ratio is the median of all ratios of a new value to an old value.`);
      const said = (row, value) => (changes[row].metric === "rate_bps" ? rate(value) : duration(Math.round(value)));
      const of = (name) => changes.map((change) => change[name]);
      new Sheet(section, changes.length, [
        severityCell(of("severity")),
        text("transfers", 44, (row) => { const one = changes[row]; const server = host(one.server, one.port); return one.from_client ? `${one.client} → ${server}` : `${server} → ${one.client}`; }),
        text("figure", 14, (row) => data.words.metrics[changes[row].metric]),
        { title: "before", width: 14, kind: "number", value: (row) => changes[row].before, show: (row) => said(row, changes[row].before) },
        { title: "now", width: 14, kind: "number", value: (row) => changes[row].now, show: (row) => said(row, changes[row].now) },
        number("times worse", 13, of("ratio"), (value) => short(value)),
        number("n before", 11, of("n_before"), count), number("n now", 10, of("n_now"), count),
        number("p", 10, of("p"), (value) => value.toPrecision(2)),
      ]);
    },
    trend() {
      for (const radio of document.querySelectorAll("#measure input")) radio.addEventListener("change", chart);
      new ResizeObserver(() => chart()).observe(document.getElementById("chart"));
    },
    causes(section) {
      const { cause, ns, is_fixable: fault, captures: many, connections } = data.causes;
      const all = ns.reduce((sum, value) => sum + value, 0);
      const order = [...cause.keys()].sort((a, b) => fault[b] - fault[a] || ns[b] - ns[a]);
      const tell = (row) => `${cause[row]}: ${duration(ns[row])}, ${share(ns[row] / all)}, in ${count(connections[row])} connections of ${count(many[row])} captures. ${data.words.causes[cause[row]]}`;
      const bar = document.getElementById("cause-bar");
      const legend = document.getElementById("cause-legend");
      for (const row of order) {
        const part = made("span", { title: tell(row), onclick: () => fault[row] && choose("cause", cause[row]) });
        part.style.flexGrow = ns[row];
        part.style.background = colours[cause[row]];
        bar.append(part);
        const words = [dot(cause[row]), ` ${cause[row]} ${duration(ns[row])} `, made("span", { class: "dim", text: share(ns[row] / all) })];
        legend.append(made("li", { title: tell(row) }, ...(fault[row] ? [made("button", { type: "button", onclick: () => choose("cause", cause[row]) }, ...words)] : words)));
      }
      const found = data.findings;
      new Sheet(section, length(found), [
        text("finding", 26, (row) => found.id[row]),
        number("time lost", 13, found.cost_ns, duration, "Total cost of the findings: causes that took at least 5% of a direction's active time"),
        number("found", 9, found.findings, count), number("captures", 11, found.captures, count),
        number("high", 8, found.high, count), number("medium", 10, found.medium, count), number("low", 8, found.low, count), number("proved", 10, found.proved, count),
        { title: "most expensive", width: 56, kind: "text", value: (row) => found.title[row], show: (row) => linkTo(found.at[row], found.conn[row], found.title[row]) },
        { ...text("what to change", 60, (row) => found.remedy[row]), wrap: true },
      ], { search: false });
    },
    pairs(section) {
      const table = data.pairs;
      const rows = length(table);
      note(section, `${count(table.total)} pairs of hosts${table.total > rows ? `; listed: the ${count(rows)} that lost most time` : ""}. Click one to see only its transfers.`);
      new Sheet(section, rows, [
        pairCell("client → server", 44, table, pairOf),
        number("time lost", 12, table.fixable_ns, duration), shareCell("share of time", table.fixable_ns, table.active_ns, "Time with fixable causes, as a share of the active time of these directions"),
        { title: "over time", width: 20, kind: "number", value: (row) => table.first_ts_ns[row], show: (row) => spark(table.sparks[row]), tip: "Share of time lost in each column of the figure above, for the pairs that lost most time" },
        causeCell(table.cause),
        number("connections", 13, table.connections, count), number("captures", 11, table.captures, count),
        number("data", 11, table.payload_bytes, size), number("rate, median", 14, table.rate_bps, rate), number("round trip", 12, table.rtt_ns, duration, "Median of the median RTTs of these transfers"),
        number("first", 21, table.first_ts_ns, utc), number("last", 21, table.last_ts_ns, utc),
      ], { sort: { place: 1, sign: -1 }, passes: (row) => inFilter(chosen.cause === null ? null : table.cause[row], pairOf(table, row), null) || (chosen.bucket !== null && inPair(table, row)) });
    },
    transfers(section) {
      const table = data.transfers;
      const rows = length(table);
      note(section, `One row per direction, named after its sender: ${rows < totals.transfers ? `the ${count(rows)} of ${count(totals.transfers)} directions that lost most time` : `${count(rows)} in total`}. Time lost is time with fixable causes.`);
      new Sheet(section, rows, [
        captureCell(table.at, table.conn), pairCell("from → to", 48, table, wayOf),
        number("time lost", 12, table.fixable_ns, duration), shareCell("share of active time", table.fixable_ns, table.active_ns), causeCell(table.cause),
        number("active", 12, table.active_ns, duration), number("data", 11, table.payload_bytes, size), number("rate", 12, table.rate_bps, rate), number("round trip", 12, table.rtt_ns, duration),
        number("retransmits", 12, table.resent_share, share), number("began", 21, table.first_ts_ns, utc),
      ], { sort: { place: 2, sign: -1 }, passes: (row) => inFilter(table.cause[row], pairOf(table, row), table.first_ts_ns[row]) });
    },
    outliers(section) {
      const table = data.outliers;
      const said = (row, value) => (table.metric[row] === "rate_bps" ? rate(value) : duration(Math.round(value)));
      note(section, `Transfers that are much worse than the others in one direction between the same two hosts: by more than 3.5 robust standard deviations (median absolute deviation of the logarithms). ${count(table.large_groups)} of ${count(table.groups)} such directions have at least ${data.words.min_outliers} transfers, the minimum for this comparison.`);
      new Sheet(section, length(table), [
        captureCell(table.at, table.conn), pairCell("from → to", 46, table, wayOf), text("figure", 13, (row) => data.words.metrics[table.metric[row]]),
        { title: "this one", width: 13, kind: "number", value: (row) => table.value[row], show: (row) => said(row, table.value[row]) },
        { title: "usual", width: 13, kind: "number", value: (row) => table.median[row], show: (row) => said(row, table.median[row]), tip: "Median of all transfers between these hosts in this direction" },
        number("n", 8, table.n, count), number("deviations", 12, table.z, (value) => short(value)), causeCell(table.cause), number("began", 21, table.first_ts_ns, utc),
      ], { passes: (row) => inFilter(table.cause[row], pairOf(table, row), table.first_ts_ns[row]) });
    },
    captures(section) {
      note(section, `${count(length(captures))} captures${totals.left_out ? ` (${count(totals.left_out)} of poor quality are listed below)` : ""} of ${count(Object.values(totals.files).reduce((sum, value) => sum + value, 0))} files${totals.files.duplicate ? `, ${count(totals.files.duplicate)} of them with the contents of another file` : ""}${totals.files.other ? `; ${count(totals.files.other)} files are no captures` : ""}.`);
      captureSheet(section, (row) => !isPoor(row));
    },
    poor(section) {
      note(section, "The times of these captures are unreliable. The totals and the transfers above do not include them. The report of each capture says why.");
      captureSheet(section, isPoor);
    },
    problems(section) {
      const table = data.problems;
      note(section, `Problems while captures were read, and captures that could not be read${table.total > length(table) ? `: the first ${count(length(table))} of ${count(table.total)}` : ""}.`);
      new Sheet(section, length(table), [
        { title: "data lost", width: 12, kind: "number", value: (row) => Number(table.loses_data[row]), show: (row) => (table.loses_data[row] ? "yes" : "no") },
        text("problem", 80, (row) => table.what[row]), number("times", 9, table.count, count), number("frame", 11, table.frame, count),
        { title: "file", width: 60, kind: "text", value: (row) => table.path[row] ?? captures.path[table.at[row]], show: (row) => (table.at[row] === null ? table.path[row] : linkTo(table.at[row], null, table.path[row] ?? captures.path[table.at[row]])) },
      ]);
    },
  };
  const inPair = (table, row) => (chosen.pair === null || pairOf(table, row) === chosen.pair) && (chosen.cause === null || table.cause[row] === chosen.cause);

  function spark(points) {
    if (!points) return "";
    const picture = drawn("svg", { class: "spark", viewBox: `0 0 ${trend.buckets} 20`, preserveAspectRatio: "none", role: "img" });
    picture.append(drawn("line", { x1: 0, x2: trend.buckets, y1: 20, y2: 20, "vector-effect": "non-scaling-stroke" }));
    points[0].forEach((bucket, place) => {
      const height = Math.max(0.6, ((points[1][place] ?? 0) * 20) / 100);
      picture.append(drawn("rect", { x: bucket + 0.1, width: 0.8, y: 20 - height, height }));
    });
    return picture;
  }

  // ---- the figure over time ----
  function nice(most) {
    const step = 10 ** Math.floor(Math.log10(most / 4 || 1));
    return [1, 2, 5, 10].map((times) => times * step).find((each) => most / each <= 5);
  }

  const measures = {
    share: { of: (values, place) => (trend.active_ns[place] ? values[place] / trend.active_ns[place] : 0), said: share, stacked: true },
    lost: { of: (values, place) => values[place] / 1e9, said: (value) => duration(value * 1e9), stacked: true },
    captures: { of: (values, place) => values[place], said: count, stacked: false },
  };

  function chart() {
    const place = document.getElementById("chart");
    const width = place.clientWidth;
    if (!width) return;
    const { of, said, stacked } = measures[document.querySelector("#measure input:checked").value];
    const names = stacked ? Object.keys(trend.causes).filter((cause) => chosen.cause === null || cause === chosen.cause) : ["captures"];
    const series = names.map((name) => (stacked ? trend.causes[name] : trend.captures));
    const sums = Array.from({ length: trend.buckets }, (_, bucket) => series.reduce((sum, values) => sum + of(values, bucket), 0));
    const most = Math.max(...sums, 0);
    if (!trend.buckets || !most) {
      place.replaceChildren(made("p", { class: "empty", text: trend.buckets ? "No time was lost to fixable causes." : "No capture here has timestamps." }));
      document.getElementById("chart-legend").replaceChildren();
      return;
    }
    const [left, right, top, bottom] = [64, 8, 8, 26];
    const height = place.clientHeight;
    const step = nice(most);
    const limit = Math.ceil(most / step) * step;
    const y = (value) => top + (height - top - bottom) * (1 - value / limit);
    const column = Math.min((width - left - right) / trend.buckets, 120);
    const picture = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "columns over time; the same numbers are in the table below" });
    for (let value = 0; value <= limit + step / 2; value += step) {
      picture.append(drawn("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }), drawn("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, said(value)));
    }
    const every = Math.max(1, Math.ceil(150 / column));
    for (let bucket = 0; bucket < trend.buckets; bucket += 1) {
      let base = 0;
      const x = left + bucket * column;
      names.forEach((name, index) => {
        const value = of(series[index], bucket);
        if (value > 0) picture.append(drawn("rect", { x: x + column * 0.08, width: column * 0.84, y: y(base + value), height: Math.max(0.5, y(base) - y(base + value)), fill: stacked ? colours[name] : "var(--accent)" }));
        base += value;
      });
      if (bucket % every === 0) picture.append(drawn("text", { x, y: height - 8 }, utc(trend.origin_ns + bucket * trend.width_ns).slice(0, trend.width_ns >= 8.64e13 ? 10 : 16)));
      const hit = drawn("rect", { class: `hit${chosen.bucket === bucket ? " on" : ""}`, x, y: top, width: column, height: height - top - bottom });
      hit.addEventListener("click", () => choose("bucket", bucket));
      hit.addEventListener("pointerenter", () => tip(place, bucket, x + column, names, series, of, said, sums[bucket]));
      hit.addEventListener("pointerleave", () => place.querySelector(".tip")?.remove());
      picture.append(hit);
    }
    place.replaceChildren(picture);
    const legend = stacked ? Object.keys(trend.causes).map((name) => made("li", { title: data.words.causes[name] }, made("button", { type: "button", "aria-pressed": String(chosen.cause === name), onclick: () => choose("cause", name) }, dot(name), ` ${name}`))) : [];
    document.getElementById("chart-legend").replaceChildren(...legend);
    asTable(names, series, of, said);
  }

  function tip(place, bucket, x, names, series, of, said, sum) {
    place.querySelector(".tip")?.remove();
    const lines = names.map((name, index) => [name, of(series[index], bucket)]).filter(([, value]) => value > 0).sort((a, b) => b[1] - a[1]).slice(0, 8);
    const box = made("div", { class: "tip" }, made("b", { text: `${utc(trend.origin_ns + bucket * trend.width_ns)}, ${duration(trend.width_ns)}` }), made("div", { text: `${said(sum)} in all, ${count(trend.captures[bucket])} captures` }));
    if (names.length > 1) box.append(...lines.map(([name, value]) => made("div", {}, dot(name), `${name} ${said(value)}`)));
    place.append(box);
    box.style.left = `${Math.max(0, x + box.offsetWidth + 8 > place.clientWidth ? x - box.offsetWidth - 24 : x + 8)}px`;
    box.style.top = "12px";
  }

  function asTable(names, series, of, said) {
    const head = made("tr", {}, ...["from", "captures", ...names.filter((name) => name !== "captures")].map((name) => made("th", { scope: "col", text: name })));
    const rows = [];
    for (let bucket = 0; bucket < trend.buckets; bucket += 1) {
      if (!trend.captures[bucket]) continue;
      const values = names.map((name, index) => (name === "captures" ? null : said(of(series[index], bucket)))).filter((value) => value !== null);
      rows.push(made("tr", {}, ...[utc(trend.origin_ns + bucket * trend.width_ns), count(trend.captures[bucket]), ...values].map((value) => made("td", { text: value }))));
    }
    document.getElementById("chart-table").replaceChildren(made("table", {}, made("thead", {}, head), made("tbody", {}, ...rows)));
  }

  // ---- the top of the page ----
  const bad = (totals.states.failed ?? 0) + (totals.states.lost ?? 0) + (totals.files.unreadable ?? 0);
  const tile = (value, words, kind = "") => made("div", { class: `tile ${kind}` }, made("b", { text: value }), made("span", { text: words }));
  document.getElementById("tiles").replaceChildren(
    tile(count(length(captures)), `captures, ${size(totals.file_bytes)}`),
    tile(count(totals.connections), `connections between ${count(totals.pairs)} pairs of hosts`),
    tile(size(totals.payload_bytes), "of data, each byte once"),
    tile(duration(totals.active_ns), "total active time of all directions with data"),
    tile(duration(totals.fixable_ns), `lost to fixable causes: ${share(totals.active_ns ? totals.fixable_ns / totals.active_ns : null)}`, "lost"),
    ...(data.comparison ? [tile(count(data.comparison.changes.length), "figures slower than before", data.comparison.changes.length ? "bad" : "")] : []),
    ...(totals.left_out ? [tile(count(totals.left_out), "of poor quality: listed apart, in no sum", "bad")] : []),
    tile(count(bad), `could not be read${totals.states.part ? `, ${count(totals.states.part)} partly read` : ""}`, bad ? "bad" : ""),
  );
  document.getElementById("span").textContent = totals.first_ts_ns === null ? "" : `${utc(totals.first_ts_ns)} to ${utc(totals.last_ts_ns)} UTC`;

  // A part is rendered when it is about to scroll into view.
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      parts[target.id](target);
      target.dataset.made = "yes";
    }
  }, { rootMargin: "400px" });
  for (const section of document.querySelectorAll("main > section")) near.observe(section);
  document.documentElement.dataset.ready = "yes";
})();
