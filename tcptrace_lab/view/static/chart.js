// Charts over time, in SVG: the overview of a capture, and the trend of an archive. Causes have the report's colours and patterns.
import { CAUSES } from "./format.js";

const SPACE = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const LINES = {
  rising: ["M-1,1l2,-2M0,6l6,-6M5,7l2,-2"],
  falling: ["M-1,5l2,2M0,0l6,6M5,-1l2,2"],
  crossed: ["M-1,1l2,-2M0,6l6,-6M5,7l2,-2", "M-1,5l2,2M0,0l6,6M5,-1l2,2"],
  level: ["M0,3h6"],
  upright: ["M3,0v6"],
  squared: ["M0,3h6", "M3,0v6"],
  dotted: ["M2,3a1,1 0 1 0 2,0a1,1 0 1 0 -2,0"],
};

/** The patterns of `report.css`, for areas in SVG. */
export function patterns() {
  const defined = svg("defs");
  for (const [name, lines] of Object.entries(LINES)) {
    const pattern = svg("pattern", { id: `pattern-${name}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" });
    for (const d of lines) pattern.append(svg("path", { d, stroke: "rgb(255 255 255 / .4)", "stroke-width": name === "dotted" ? 0 : 1.5, fill: name === "dotted" ? "rgb(255 255 255 / .6)" : "none" }));
    defined.append(pattern);
  }
  return defined;
}

/** Stacked columns of causes: one area per cause, from `bottom` up; `tall` is the height of the tallest column.
 * `causes`: cause → values per column; `x(column)`: its left edge. */
export function stacked(causes, columns, x, bottom, tall, largest) {
  const made = [];
  const filled = new Float64Array(columns);
  for (const cause of Object.keys(CAUSES)) {
    const values = causes[cause];
    if (!values?.some((value) => value > 0)) continue;
    let d = "";
    for (let column = 0; column < columns; column += 1) {
      const value = values[column] ?? 0;
      if (!value) continue;
      const [low, high] = [bottom - (filled[column] / largest) * tall, bottom - ((filled[column] + value) / largest) * tall];
      d += `M${x(column).toFixed(2)},${low.toFixed(2)}V${high.toFixed(2)}H${x(column + 1).toFixed(2)}V${low.toFixed(2)}Z`;
      filled[column] += value;
    }
    const title = svg("title");
    title.textContent = `${cause}: ${CAUSES[cause].means}`;
    made.push(svg("path", { d, fill: CAUSES[cause].colour }, title));
    if (CAUSES[cause].pattern !== "plain") made.push(svg("path", { d, fill: `url(#pattern-${CAUSES[cause].pattern})`, "pointer-events": "none" }));
  }
  return made;
}

/** The largest sum of a column. */
export function highest(causes, columns) {
  let most = 0;
  for (let column = 0; column < columns; column += 1) {
    let sum = 0;
    for (const values of Object.values(causes)) sum += values[column] ?? 0;
    most = Math.max(most, sum);
  }
  return most || 1;
}

export function text(x, y, words, anchor = "start") {
  const made = svg("text", { x, y, "text-anchor": anchor });
  made.textContent = words;
  return made;
}
