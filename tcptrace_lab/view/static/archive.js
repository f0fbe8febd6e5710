// The page of an archive: causes over time, its captures, and questions in SQL.
import { address, ask, debounced, quietly, remember, state } from "./api.js";
import { highest, patterns, stacked, svg, text } from "./chart.js";
import { copy, count, element, formatted, swatch } from "./format.js";
import { Sheet } from "./sheet.js";

const HEIGHT = 220;

function trend(periods) {
  const holder = document.getElementById("trend-chart");
  if (!periods?.length) return holder.replaceChildren(element("p", { className: "empty" }, "No capture has a time."));
  const causes = {};
  for (const [place, period] of periods.entries()) {
    const active = Object.entries(period.causes).filter(([cause]) => cause !== "idle");
    const sum = active.reduce((total, [, ns]) => total + ns, 0) || 1;
    for (const [cause, ns] of active) (causes[cause] ??= new Array(periods.length).fill(0))[place] = ns / sum;
  }
  const box = element("div", { className: "overview chart", role: "img", ariaLabel: `Causes over time: ${periods.length} periods from ${periods[0].start} to ${periods.at(-1).start}` });
  const named = Object.entries(causes).map(([cause, shares]) => [cause, shares.reduce((total, share) => total + share, 0)]).sort((a, b) => b[1] - a[1]);
  holder.replaceChildren(box, element("ul", { className: "legend" }, ...named.slice(0, 10).map(([cause]) => element("li", {}, swatch(cause), ` ${cause}`))));
  const draw = () => {
    const width = box.clientWidth;
    const x = (column) => (column / periods.length) * width;
    const picture = svg("svg", { width, height: HEIGHT, "aria-hidden": "true" }, patterns(), ...stacked(causes, periods.length, x, HEIGHT - 20, HEIGHT - 24, highest(causes, periods.length)));
    picture.append(text(0, HEIGHT - 4, periods[0].start), ...(periods.length > 1 ? [text(width, HEIGHT - 4, periods.at(-1).start, "end")] : []));
    box.replaceChildren(picture);
  };
  new ResizeObserver(debounced(draw, 50)).observe(box);
  draw();
}

async function captures() {
  const search = document.getElementById("filters").elements.text;
  search.value = state.get("text") ?? "";
  const first = await ask("archive/captures", { offset: 0, limit: 1 });
  const [name, ...others] = first.columns;
  const named = { ...name, width: 16, sorts: true, fill: (cell, row) => cell.append(element("a", { href: `capture/${row.capture_id}/` }, element("bdi", {}, formatted(row[name.name], name.kind)[0]))) };
  const list = new Sheet({
    holder: document.getElementById("list"),
    label: "Captures",
    columns: [named, ...others.map((column) => ({ ...column, sorts: true, width: Math.max(column.label.length * 0.55 + 1.5, { text: 12, utc: 13 }[column.kind] ?? 6.5) }))],
    sort: state.get("sort") ?? "",
    descending: state.get("descending") === "1",
    rows: (offset, limit, signal) => ask("archive/captures", { text: state.get("text"), sort: state.get("sort"), descending: state.get("descending"), offset, limit }, signal),
    sorted: (sort, descending) => remember({ sort, descending: descending ? "1" : null }),
    opened: (row) => (location.href = `capture/${row.capture_id}/`),
    counted: (total) => (document.getElementById("found").textContent = `${count(total)} ${total === 1 ? "capture" : "captures"}`),
  });
  search.addEventListener("input", debounced(() => {
    remember({ text: search.value.trim() });
    list.reload();
  }, 200));
  document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
}

async function query(sql) {
  const [answered, answer, csv] = ["answered", "answer", "query-csv"].map((name) => document.getElementById(name));
  answered.textContent = "…";
  remember({ sql });
  const found = await quietly(ask("archive/query", { sql }));
  answered.textContent = found ? `${count(found.rows.length)} ${found.rows.length === 1 ? "row" : "rows"}${found.truncated ? ", the first ones" : ""}` : "no answer: see above";
  if (!found) return document.getElementById("trouble").scrollIntoView({ block: "center" });
  csv.hidden = false;
  csv.href = address("archive/query.csv", { sql });
  const numeric = found.columns.map((_, place) => found.rows.every((row) => row[place] === null || typeof row[place] === "number"));
  return new Sheet({
    holder: answer,
    label: "Result of the query",
    columns: found.columns.map((name, place) => ({ name: String(place), label: name, kind: numeric[place] ? "integer" : "text", width: Math.max(name.length * 0.55 + 1.5, numeric[place] ? 8 : 12) })),
    rows: async (offset, limit) => ({ total: found.rows.length, rows: found.rows.slice(offset, offset + limit) }),
  });
}

const form = document.getElementById("ask");
form.addEventListener("submit", (event) => {
  event.preventDefault();
  query(form.elements.sql.value);
});
document.getElementById("link").addEventListener("click", (event) => copy(location.href, event.currentTarget));
if (state.has("sql")) {
  form.elements.sql.value = state.get("sql");
  query(state.get("sql"));
}
quietly(ask("archive").then((archive) => trend(archive.trend)));
quietly(captures());
