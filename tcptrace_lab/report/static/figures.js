// What the figures of the report and of the explorer share: colours, ranges, and the crosshair. `render.py` puts this file before
// `report.js`, without its last line.
const darkness = window.matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A line in the upper left corner, where a growing stream leaves room. */
const remark = (text, place) => ({ text, xref: "paper", yref: "paper", x: 0, y: 1, yshift: -16 * place, xanchor: "left", yanchor: "top", showarrow: false, font: { size: 11 }, bgcolor: colour("--card"), borderpad: 2 });

/** The settings that depend on the page and not on the data: colours, fonts, and margins, which are equal in all figures so that their
 * times align. */
function dressed(plot, layout, strip = false) {
  const axis = { gridcolor: colour("--grid"), zerolinecolor: colour("--rule"), linecolor: colour("--rule") };
  const narrow = plot.clientWidth < NARROW;
  const last = !plot.closest("figure").nextElementSibling?.matches("figure"); // only the last figure names the time axis
  return {
    ...layout,
    dragmode: window.matchMedia("(pointer: coarse)").matches ? false : layout.dragmode, // touch scrolls the page
    xaxis: { ...layout.xaxis, ...axis, ...(strip ? { anchor: "y2" } : {}), title: last ? { ...layout.xaxis.title, font: { size: narrow ? 10 : 12 } } : {} },
    yaxis: { ...layout.yaxis, ...axis, title: narrow ? {} : { ...layout.yaxis.title, standoff: 8 }, ...(strip ? { domain: [STRIP * 1.6, 1] } : {}) },
    ...(strip ? { yaxis2: { domain: [0, STRIP], range: [0, 1], fixedrange: true, visible: false }, barmode: "overlay" } : {}),
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: colour("--ink") },
    margin: { l: plot.closest("figure").dataset.key === "ladder" ? 84 : narrow ? 56 : 90, r: 12, t: 8, b: last ? 42 : 26 },
    legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", font: { size: 11 } },
    showlegend: true,
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--dim"), activecolor: colour("--accent") },
    hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--rule"), font: { color: colour("--ink"), family: "system-ui, sans-serif" }, align: "left" },
  };
}

const STRIP = 0.055; // part of a figure's height: the ledger at its bottom

const CONFIG = { responsive: true, displaylogo: false, showSendToCloud: false, displayModeBar: window.matchMedia("(hover: hover)").matches ? "hover" : false, doubleClick: "reset", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
/** Minimum and maximum y of one trace between two times; null if it has nothing there. */
function extent(trace, from, to) {
  let low = Infinity;
  let high = -Infinity;
  let before = null;
  const take = (y, above = 0) => {
    low = Math.min(low, y);
    high = Math.max(high, y + above);
  };
  trace.x.forEach((x, place) => {
    const y = trace.y[place];
    if (x === null || y === null || x > to) return;
    if (x < from) before = y;
    else take(y, trace.error_y?.array[place]);
  });
  if (trace.line?.shape === "hv" && before !== null) take(before); // the level of a step that begins left of the range is still visible
  return low <= high ? [low, high] : null;
}

const join = (a, b) => (a && b ? [Math.min(a[0], b[0]), Math.max(a[1], b[1])] : a ?? b);

/** The range of the y axis for a range of times, and a remark about background curves that are left out because they would flatten the
 * rest. */
function fitted(traces, axis, [from, to], above = 0.06) {
  const seen = traces.filter((trace) => trace.visible !== "legendonly" && trace.yaxis !== "y2");
  const zero = axis.rangemode === "tozero";
  let all = seen.filter((trace) => !trace.meta?.backdrop).reduce((sum, trace) => join(sum, extent(trace, from, to)), null);
  const remarks = [];
  for (const trace of seen.filter((each) => each.meta?.backdrop)) {
    const own = extent(trace, from, to);
    if (!own) continue;
    const height = all ? all[1] - (zero ? 0 : all[0]) : 0;
    const limit = height > 0 ? (zero ? 0 : all[0]) + height * trace.meta.backdrop : Infinity;
    if (own[0] > limit) remarks.push(`↑ ${trace.name} is further up`);
    else if (own[1] > limit) remarks.push(`↑ ${trace.name} goes further up`);
    if (own[0] <= limit) all = join(all, [own[0], Math.min(own[1], limit)]);
  }
  if (!all) return { range: null, remarks };
  if (axis.tickvals) all = join(all, [Math.min(...axis.tickvals), Math.max(...axis.tickvals)]); // show all named levels
  const floor = zero ? Math.min(0, all[0]) : all[0];
  const height = all[1] - floor || (axis.ticksuffix === "B" ? 100 : 1); // bytes have no fractions
  return { range: [floor - (zero && floor === 0 ? 0 : height * 0.06), all[1] + height * above], remarks };
}

// ---- no more points than can be told apart ----
const SLICES = 300; // parts of the visible time; narrower ones look alike

/** The points of a trace to draw between two times: all points, or, if there are too many, the extremes of each slice. null: the whole
 * trace. */
function lean(trace, [from, to]) {
  const strokes = trace.connectgaps === false; // points come in threes: start, end, gap
  const unit = strokes ? 3 : 1;
  if (trace.x.length <= 2 * SLICES * unit) return null;
  const slices = new Map();
  let before = -1;
  let after = -1;
  for (let place = 0; place < trace.x.length; place += unit) {
    const x = trace.x[place];
    if (trace.x[place + (strokes ? 1 : 0)] < from) before = place;
    else if (x > to) {
      if (after < 0) after = place;
    } else {
      const slice = Math.floor(((x - from) / (to - from)) * SLICES);
      if (slices.has(slice)) slices.get(slice).push(place);
      else slices.set(slice, [place]);
    }
  }
  const held = [...slices.values()].reduce((sum, places) => sum + places.length, 0);
  const all = held <= 2 * SLICES;
  if (strokes) return all ? picked(trace, [...slices.values()].flat().flatMap((place) => [place, place + 1, place + 2])) : joined(trace, slices);
  const line = trace.mode === "lines";
  const kept = line && before >= 0 ? [before] : []; // a line starts at the point before the range and ends at the point after it
  for (const places of slices.values()) kept.push(...(all ? places : extremes(trace, places, line)));
  if (line && after >= 0) kept.push(after);
  return picked(trace, kept.sort((a, b) => a - b));
}

function extremes(trace, places, line) {
  let [low, high] = [places[0], places[0]];
  for (const place of places) {
    if (trace.y[place] < trace.y[low]) low = place;
    if (trace.y[place] > trace.y[high]) high = place;
  }
  return [...new Set(line ? [places[0], low, high, places[places.length - 1]] : [low, high])];
}

function picked(trace, places) {
  const of = (column) => column && places.map((place) => column[place]);
  return { x: of(trace.x), y: of(trace.y), customdata: of(trace.customdata), "error_y.array": of(trace.error_y?.array) };
}

/** Merge the strokes of each slice into one, from its first byte to its last. */
function joined(trace, slices) {
  const made = { x: [], y: [], customdata: [] };
  for (const places of slices.values()) {
    const [first, last] = [places[0], places[places.length - 1]];
    const sum = (column) => places.reduce((total, place) => total + trace.customdata[place][column], 0);
    const whole = [trace.customdata[first][0], trace.customdata[last][1], sum(2), sum(3)];
    made.x.push(trace.x[first], trace.x[last + 1], null);
    made.y.push(Math.min(...places.map((place) => trace.y[place])), Math.max(...places.map((place) => trace.y[place + 1])), null);
    made.customdata.push(whole, whole, null);
  }
  return made;
}

/** A copy of a trace with other points. */
function trimmed(trace, found) {
  if (!found) return trace;
  const { x, y, customdata } = found;
  return { ...trace, x, y, customdata, ...(trace.error_y ? { error_y: { ...trace.error_y, array: found["error_y.array"] } } : {}) };
}

// ---- one crosshair over the figures that share a time axis ----
const overTime = (plot) => plot.dataset.over === "time" && plot._fullLayout?.xaxis;

function cross(plots, own, event) {
  const { xaxis } = own._fullLayout;
  const pixel = event.clientX - own.getBoundingClientRect().left - xaxis._offset;
  const inside = pixel >= 0 && pixel <= xaxis._length;
  const time = xaxis.p2d(pixel);
  for (const plot of plots) {
    const line = plot.querySelector(":scope > .cross") ?? Object.assign(plot.appendChild(document.createElement("div")), { className: "cross" });
    const { xaxis: x, yaxis: y } = plot._fullLayout;
    line.hidden = !inside || time < x.range[0] || time > x.range[1];
    Object.assign(line.style, { left: `${x._offset + x.d2p(time)}px`, top: `${y._offset}px`, height: `${y._length}px` });
    line.dataset.at = plot === own ? `${time.toFixed(6)} s` : "";
    line.classList.toggle("late", pixel > xaxis._length / 2);
  }
}

/** Show the mouse position in all drawn figures of the group. */
function followMouse(plot, group) {
  const plots = () => group().filter((each) => overTime(each) && each.checkVisibility());
  plot.addEventListener("mousemove", (event) => overTime(plot) && cross(plots(), plot, event));
  plot.addEventListener("mouseleave", () => plots().forEach((each) => each.querySelector(":scope > .cross")?.setAttribute("hidden", "")));
}

const NARROW = 560; // pixels: in narrower figures, axis titles are left out

/** The requested times, as a shape. */
const highlight = ([from, to]) => ({ type: "rect", xref: "x", yref: "paper", x0: from, x1: to, y0: 0, y1: 1, layer: "below", fillcolor: colour("--accent"), opacity: 0.16, line: { width: 0 } });

/** Each figure needs its own traces, because Plotly stores state in them. */
const copied = (trace) => ({ ...trace, marker: { ...trace.marker } });

const rangeOf = (change, axis) => {
  const ends = [0, 1].map((end) => change[`${axis}.range[${end}]`] ?? change[`${axis}.range`]?.[end]);
  return ends[0] === undefined ? null : ends.map(Number).sort((a, b) => a - b);
};

const markOverTime = (plot, layout) => {
  if (layout.xaxis.title?.text.startsWith("seconds")) plot.dataset.over = "time";
};

/** Axis ticks with a space before the unit, as in text: Plotly writes `50ms`. */
function spaceUnits(plot) {
  const space = () => {
    for (const tick of plot.querySelectorAll(".xtick text, .ytick text")) {
      const text = tick.textContent.replace(/(?<=\d)(?=[µmkMGT]?(?:s|B|b\/s)$)/u, " ");
      if (text !== tick.textContent) tick.textContent = text;
    }
  };
  plot.on("plotly_afterplot", space);
  space();
}

export { darkness, colour, remark, dressed, STRIP, CONFIG, extent, fitted, followMouse, highlight, copied, rangeOf, lean, trimmed, markOverTime, NARROW, spaceUnits };
