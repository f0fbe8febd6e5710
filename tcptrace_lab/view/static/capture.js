// The page of a capture: the overview over time, and the list of its connections.
import { address, ask, debounced, number, quietly, remember, state } from "./api.js";
import { addCopying, CAUSES, copy, count, duration, element, swatch } from "./format.js";
import { Overview } from "./overview.js";
import { Sheet } from "./sheet.js";

const filters = document.getElementById("filters");
const FIELDS = ["text", "address", "port", "cause", "finding", "min_bytes", "max_bytes", "lost"];
let span = [0, 1]; // the time that the column "over time" shows

const parameters = () => ({ ...Object.fromEntries(FIELDS.map((name) => [name, state.get(name)])), from_ns: state.get("from"), to_ns: state.get("to"), sort: state.get("sort") ?? "id", descending: state.get("descending") });

function restore() {
  for (const name of FIELDS) {
    const field = filters.elements[name];
    if (field.type === "checkbox") field.checked = state.get(name) === field.value;
    else {
      const value = state.get(name) ?? "";
      if (field.tagName === "SELECT" && ![...field.options].some((option) => option.value === value)) field.append(element("option", {}, value));
      field.value = value;
    }
  }
}

function lane(cell, row) {
  const made = element("span", { className: "lane", title: `${duration(row.end_ns - row.start_ns)}, mostly ${row.dominant_cause ?? "unknown"}` });
  const length = Math.max(span[1] - span[0], 1);
  const part = element("i", { className: CAUSES[row.dominant_cause]?.pattern ?? "" });
  part.style.left = `${((row.start_ns - span[0]) / length) * 100}%`;
  part.style.width = `${((row.end_ns - row.start_ns) / length) * 100}%`;
  part.style.backgroundColor = CAUSES[row.dominant_cause]?.colour ?? "gray";
  made.append(part);
  cell.append(made);
}

const COLUMNS = [
  { name: "id", label: "#", kind: "count", width: 5, meaning: "Number of the connection, as in Wireshark's tcp.stream", fill: (cell, row) => cell.append(element("a", { href: `connection/${row.id}`, ariaLabel: `connection ${row.id}` }, count(row.id))) },
  { name: "client", label: "client", kind: "text", width: 11 },
  { name: "server", label: "server", kind: "text", width: 11 },
  { name: "dominant_cause", label: "cause", kind: "cause", width: 12, meaning: "The cause that took most of the active time of the direction with more payload" },
  { name: "active_ns", label: "active", kind: "duration", width: 5.5, meaning: "Time in which the connection was not idle" },
  { name: "start_ns", label: "over time", kind: "lane", width: 12, meaning: "From its first frame to its last, on the time axis above, in the colour of its cause. Sorts by start.", fill: lane },
  { name: "findings", label: "findings", kind: "findings", width: 11, fill: (cell, row) => { cell.textContent = (row.findings ?? []).join(", "); cell.title = cell.textContent; } },
  { name: "label", label: "application", kind: "text", width: 9, meaning: "What the connection was for, by its first data" },
  { name: "client_bytes", label: "bytes →", kind: "size", width: 6, meaning: "Payload from the client" },
  { name: "server_bytes", label: "bytes ←", kind: "size", width: 6, meaning: "Payload from the server" },
  { name: "retransmitted", label: "retransmits", kind: "count", width: 6.5 },
  { name: "rtt_min_ns", label: "min RTT", kind: "duration", width: 6 },
  { name: "duration_ns", label: "duration", kind: "duration", width: 6, meaning: "From its first frame to its last", fill: (cell, row) => { cell.textContent = duration(row.end_ns - row.start_ns); } },
  { name: "filter", label: "Wireshark", kind: "text", width: 5.5, still: true, fill: (cell, row) => {
    const button = element("button", { type: "button", className: "copy", title: row.filter, ariaLabel: `copy the Wireshark filter ${row.filter}` }, "copy");
    button.addEventListener("click", () => copy(row.filter, button));
    cell.append(button);
  } },
].map((column) => ({ ...column, sorts: !column.still }));

async function start() {
  restore();
  addCopying();
  const capture = await ask("capture");
  for (const id of [...new Set(capture.findings.map((finding) => finding.id))]) {
    if (![...filters.elements.finding.options].some((option) => option.value === id)) filters.elements.finding.append(element("option", {}, id));
  }
  const pair = (one, other) => (number(one) !== null && number(other) !== null ? [number(one), number(other)] : null);
  const zoom = pair("zoom_from", "zoom_to");
  span = zoom ?? [0, capture.duration_ns];
  const found = document.getElementById("found");
  const list = new Sheet({
    holder: document.getElementById("list"),
    label: "Connections",
    columns: COLUMNS,
    sort: state.get("sort") ?? "id",
    descending: state.get("descending") === "1",
    rows: (offset, limit, signal) => ask("connections", { ...parameters(), offset, limit }, signal),
    sorted: (sort, descending) => changed({ sort, descending: descending ? "1" : null }, false),
    opened: (row) => (location.href = `connection/${row.id}`),
    counted: (total) => (found.textContent = total === capture.connections ? `${count(total)} ${total === 1 ? "connection" : "connections"}` : `${count(total)} of ${count(capture.connections)} connections`),
  });

  function links() {
    for (const form of ["csv", "parquet"]) document.getElementById(form).href = address(`connections.${form}`, parameters());
  }

  function changed(changes, reads = true) {
    remember(changes);
    links();
    if (reads) list.reload();
  }

  links();
  const fields = () => Object.fromEntries(FIELDS.map((name) => [name, filters.elements[name].type === "checkbox" ? filters.elements[name].checked && filters.elements[name].value : filters.elements[name].value.trim()]));
  const typed = debounced(() => changed(fields()), 200);
  filters.addEventListener("input", typed);
  filters.addEventListener("submit", (event) => event.preventDefault());
  const overview = new Overview(document.getElementById("overview"), capture.duration_ns, {
    selection: pair("from", "to"),
    zoom,
    changed: (from, to) => changed({ from, to }),
    zoomed: (zoom_from, zoom_to) => {
      span = zoom_from === null ? [0, capture.duration_ns] : [zoom_from, zoom_to];
      remember({ zoom_from, zoom_to });
      list.redraw();
    },
  });
  filters.addEventListener("reset", () => setTimeout(() => {
    changed(fields(), false);
    overview.select(null);
  }));
  document.getElementById("link").addEventListener("click", (event) => copy(location.href, event.currentTarget));
}

quietly(start());
