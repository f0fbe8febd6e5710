// A table of any number of rows, of which only those in sight exist. The server has the rows; pages of them are kept while they are near.
import { element, formatted, swatch } from "./format.js";

const ROW = 30; // pixels, as in view.css
const BESIDE = 8; // rows kept above and below those in sight
const PAGE = 200; // rows asked for at once
const PAGES_KEPT = 12;
const TALLEST = 8_000_000; // pixels: browsers do not scroll much further; beyond, a pixel of scrolling is more than a pixel of rows

export class Sheet {
  /** @param options holder, label; columns: [{name, label, kind, meaning, width, sorts, fill(cell, row)}]; rows(offset, limit, signal) →
   * {total, rows}; sorted(name, descending), called when the reader sorts; opened(row), for Enter; counted(total). */
  constructor(options) {
    Object.assign(this, options);
    this.box = element("div", { className: "sheet", role: "region", ariaLabel: this.label });
    this.table = element("table", { role: "grid", tabIndex: 0, ariaLabel: this.label });
    this.body = element("tbody");
    this.box.append(this.table);
    this.holder.replaceChildren(this.box);
    this.box.addEventListener("scroll", () => this.soon(), { passive: true });
    this.table.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr[aria-rowindex]");
      if (row && !event.target.closest("a, button")) this.activate(Number(row.getAttribute("aria-rowindex")) - 2, false);
    });
    new ResizeObserver(() => this.soon()).observe(this.box);
    this.setColumns(this.columns);
    this.reload();
  }

  setColumns(columns) {
    this.columns = columns;
    const group = element("colgroup");
    const head = element("tr", { "aria-rowindex": "1" });
    for (const column of columns) {
      const col = element("col");
      col.style.width = `${column.width ?? (column.kind === "text" ? 14 : 7)}rem`;
      group.append(col);
      const cell = element("th", { scope: "col", className: isText(column) ? "text" : "", title: column.meaning ?? "" });
      if (column.sorts) {
        cell.setAttribute("aria-sort", column.name === this.sort ? (this.descending ? "descending" : "ascending") : "none");
        const button = element("button", { type: "button" }, column.label);
        button.addEventListener("click", () => this.sortBy(column, cell));
        cell.append(button);
      } else cell.append(element("span", {}, column.label));
      head.append(cell);
    }
    this.table.replaceChildren(group, element("thead", {}, head), this.body);
  }

  sortBy(column, cell) {
    const first = !isText(column); // numbers: largest first
    this.descending = column.name === this.sort ? !this.descending : first;
    this.sort = column.name;
    for (const other of cell.parentElement.children) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
    cell.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
    this.sorted?.(this.sort, this.descending);
    this.reload();
  }

  /** Forget all rows and ask anew, from the top. Rows that are shown stay until the new ones are there. */
  reload() {
    this.asking?.abort();
    this.asking = new AbortController();
    this.pages = new Map();
    this.made = new Map();
    this.active = -1;
    this.box.scrollTop = 0;
    this.box.classList.add("busy");
    return this.page(0);
  }

  async page(which) {
    if (this.pages.has(which)) return;
    this.pages.set(which, null);
    const { signal } = this.asking;
    try {
      const { total, rows } = await this.rows(which * PAGE, PAGE, signal);
      if (signal.aborted) return;
      this.pages.set(which, rows);
      if (total !== this.total) this.counted?.(total);
      this.total = total;
      this.table.setAttribute("aria-rowcount", total + 1);
      this.box.classList.toggle("few", total * ROW < 360);
      this.box.classList.remove("busy");
      this.draw();
    } catch (problem) {
      if (this.pages.get(which) === null) this.pages.delete(which);
      if (problem.name !== "AbortError") this.box.classList.remove("busy");
    }
  }

  soon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.draw();
    });
  }

  /** What scrolling shows: the first row in sight (with its fraction), the number of rows in sight, and the height of all. */
  sight() {
    const total = this.total ?? 0;
    const seen = Math.max((this.box.clientHeight - (this.table.tHead?.offsetHeight ?? 0)) / ROW, 1);
    const height = Math.min(total * ROW, TALLEST);
    const most = Math.max(height - seen * ROW, 1);
    const first = height === total * ROW ? this.box.scrollTop / ROW : (this.box.scrollTop / most) * Math.max(total - seen, 0);
    return { total, seen, height, most, first: Math.min(Math.max(first, 0), Math.max(total - seen, 0)) };
  }

  draw() {
    if (this.total === undefined || !this.pages.size) return;
    const { total, seen, height, first } = this.sight();
    const from = Math.max(Math.floor(first) - BESIDE, 0);
    const to = Math.min(Math.ceil(first + seen) + BESIDE, total);
    const above = Math.max(Math.min(this.box.scrollTop, height) - (first - from) * ROW, 0);
    const below = Math.max(height - above - (to - from) * ROW, 0);
    const rows = [];
    for (let place = from; place < to; place += 1) rows.push(this.rowAt(place));
    const shown = [...this.body.children].slice(1, -1);
    if (rows.length && rows.length === shown.length && rows.every((row, place) => row === shown[place])) {
      for (const [space, tall] of [[this.body.firstChild, above], [this.body.lastChild, below]]) space.firstChild.style.height = `${tall}px`;
    } else {
      const focus = this.focused();
      this.body.replaceChildren(this.space(above), ...rows, this.space(below));
      this.restoreFocus(focus);
    }
    for (const place of this.made.keys()) if (place < from || place >= to) this.made.delete(place);
    for (let which = Math.floor(from / PAGE); which * PAGE < to; which += 1) this.page(which);
    this.forget(Math.floor(from / PAGE));
    if (!total) this.body.replaceChildren(element("tr", {}, element("td", { className: "text empty", colSpan: this.columns.length }, "No rows.")));
  }

  /** Where the focus is inside the rows: rows are made anew while the reader scrolls. */
  focused() {
    const cell = document.activeElement?.closest?.("td");
    if (!cell || !this.body.contains(cell)) return null;
    return { row: cell.parentElement.getAttribute("aria-rowindex"), cell: cell.cellIndex };
  }

  restoreFocus(focus) {
    if (!focus) return;
    const row = this.body.querySelector(`tr[aria-rowindex="${focus.row}"]`);
    (row?.cells[focus.cell]?.querySelector("a, button") ?? this.table).focus({ preventScroll: true });
  }

  /** Make the rows anew, because what they show depends on more than their data. */
  redraw() {
    this.made.clear();
    this.draw();
  }

  space(height) {
    const row = element("tr", { className: "space", ariaHidden: "true" }, element("td", { colSpan: this.columns.length }));
    row.firstChild.style.height = `${height}px`;
    return row;
  }

  /** The element of a row. It stays the same while the reader scrolls, so that it keeps the focus and takes clicks. */
  rowAt(place) {
    const data = this.data(place);
    const known = this.made.get(place);
    const row = known?.data === data ? known.row : this.rowOf(place, data);
    this.made.set(place, { row, data });
    row.className = place === this.active ? "active" : "";
    row.setAttribute("aria-selected", String(place === this.active));
    return row;
  }

  rowOf(place, data) {
    const row = element("tr", { "aria-rowindex": String(place + 2), id: `${this.holder.id}-${place}` });
    for (const column of this.columns) {
      const cell = element("td", { className: isText(column) ? "text" : "number" });
      if (data) fill(cell, column, data);
      else cell.textContent = "…";
      row.append(cell);
    }
    return row;
  }

  forget(near) {
    if (this.pages.size <= PAGES_KEPT) return;
    const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - near) - Math.abs(a - near));
    for (const which of far.slice(0, this.pages.size - PAGES_KEPT)) this.pages.delete(which);
  }

  data(place) {
    return this.pages.get(Math.floor(place / PAGE))?.[place % PAGE] ?? null;
  }

  activate(place, scrolls = true) {
    const { total, seen, height, most, first } = this.sight();
    if (!total) return;
    this.active = Math.min(Math.max(place, 0), total - 1);
    if (scrolls && (this.active < first || this.active > first + seen - 1)) {
      const top = this.active < first ? this.active : this.active - Math.floor(seen) + 1;
      this.box.scrollTop = height === total * ROW ? top * ROW : (top / Math.max(total - seen, 1)) * most;
    }
    this.draw();
    this.table.setAttribute("aria-activedescendant", `${this.holder.id}-${this.active}`);
  }

  key(event) {
    if (event.target !== this.table) return;
    const seen = Math.floor(this.sight().seen);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: seen, PageUp: -seen, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      this.activate(step === Infinity ? (this.total ?? 1) - 1 : step === -Infinity ? 0 : Math.max(this.active, step < 0 ? 0 : -1) + step);
    } else if (event.key === "Enter" && this.data(this.active)) this.opened?.(this.data(this.active));
  }
}

const isText = (column) => column.kind === "text" || column.kind === "cause" || column.kind === "findings" || column.kind === "lane";

function fill(cell, column, row) {
  if (column.fill) return column.fill(cell, row);
  const value = row[column.name];
  const [text, exact] = formatted(value, column.kind);
  if (column.kind === "cause" && value) cell.append(swatch(value), ` ${text}`);
  else cell.append(column.kind === "text" ? element("bdi", {}, text) : text);
  cell.title = exact || (column.kind === "text" ? text : "");
}
