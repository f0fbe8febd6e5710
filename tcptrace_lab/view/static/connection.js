// The page of a connection: its figures at any zoom, single packets, and its tables.
import { address, ask, debounced, quietly, remember, state } from "./api.js";
import { addCopying, element, formatted } from "./format.js";
import { Packet } from "./packet.js";
import { Plots } from "./plots.js";
import { Sheet } from "./sheet.js";

const section = document.getElementById("over-time");
const { id } = section.dataset;
const tabs = [...document.querySelectorAll("[role=tab]")];
const within = document.getElementById("within");

const INSTANTS = ["start_ns", "ts_ns", "first_ts_ns", "request_ts_ns"];
const ENDS = ["end_ns", "acked_ts_ns", "last_ts_ns", "ts_ns", "response_end_ts_ns"];

addCopying();
const packet = new Packet(document.getElementById("packet"), id, { jump: (...where) => plots.jump(...where) });
const plots = new Plots(section, { picked: (frame) => packet.show(frame), moved: debounced(() => within.checked && open(chosen()), 300) });
for (const button of document.querySelectorAll("#findings .jump")) {
  button.addEventListener("click", () => plots.jump(Number(button.dataset.from), Number(button.dataset.to), button.dataset.side));
}
document.getElementById("go").addEventListener("submit", (event) => {
  event.preventDefault();
  packet.show(Number(event.currentTarget.elements.frame.value));
});

// ---- tables ----
const chosen = () => tabs.find((tab) => tab.dataset.key === state.get("tab")) ?? tabs[0];

const times = () => (within.checked ? { from_ns: state.get("from"), to_ns: state.get("to") } : {});

/** Width of a column in rem, by what it holds. */
const width = ({ label, kind }) => Math.min(Math.max(label.length * 0.52 + 1.6, { text: 9, list: 9, cause: 12, bool: 5 }[kind] ?? 6.5), 15);

function columns(described) {
  return described.map((column) => {
    if (column.name === "from_client") return { ...column, label: "direction", kind: "text", width: 9, fill: (cell, row) => cell.append(row.from_client ? "client → server" : "server → client") };
    const own = { ...column, width: width(column), kind: column.kind === "list" ? "text" : column.kind };
    if (column.kind === "frame") own.fill = (cell, row) => row[column.name] && cell.append(link(row[column.name], () => packet.show(row[column.name]), `frame ${row[column.name]}`));
    if (column.kind === "instant" && INSTANTS.includes(column.name)) own.fill = (cell, row) => jumping(cell, row, column.name);
    return own;
  });
}

function link(text, action, title) {
  const made = element("button", { type: "button", className: "jump", ariaLabel: title, title }, text);
  made.addEventListener("click", action);
  return made;
}

function jumping(cell, row, name) {
  const [text, exact] = formatted(row[name], "instant");
  cell.title = exact;
  if (row[name] === null) return cell.append(text);
  const end = ENDS.map((each) => row[each]).find((value) => typeof value === "number" && value >= row[name]) ?? row[name];
  cell.append(link(text, () => plots.jump(row[name], end, row.from_client === undefined ? null : row.from_client ? "client" : "server"), `show ${text} in the figures`));
}

async function open(tab) {
  for (const each of tabs) {
    each.setAttribute("aria-selected", String(each === tab));
    each.tabIndex = each === tab ? 0 : -1;
  }
  document.getElementById("panel").setAttribute("aria-labelledby", tab.id);
  const path = `connection/${id}/${tab.dataset.key}`;
  for (const form of ["csv", "parquet"]) document.getElementById(form).href = address(`${path}.${form}`);
  const first = await ask(path, { ...times(), offset: 0, limit: 1 });
  return new Sheet({
    holder: document.getElementById("table"),
    label: `${tab.dataset.key} of connection ${id}`,
    columns: columns(first.columns),
    rows: (offset, limit, signal) => ask(path, { ...times(), offset, limit }, signal),
  });
}

for (const tab of tabs) {
  tab.addEventListener("click", () => {
    remember({ tab: tab.dataset.key });
    quietly(open(tab));
  });
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
}
within.checked = state.get("within") === "1";
within.addEventListener("change", () => {
  remember({ within: within.checked ? "1" : null });
  quietly(open(chosen()));
});
quietly(open(chosen()));
if (state.has("frame")) packet.show(Number(state.get("frame")));
