// The panel of one packet: its fields, what kind of segment it is, and why it was sent at this time.
import { ask, quietly, remember } from "./api.js";
import { copy, duration, element, formatted, swatch } from "./format.js";

export class Packet {
  constructor(panel, connection, { jump }) {
    Object.assign(this, { panel, connection, jump });
    document.addEventListener("keydown", (event) => event.key === "Escape" && !panel.hidden && this.close());
  }

  close() {
    this.panel.hidden = true;
    remember({ frame: null });
    this.before?.focus({ preventScroll: true });
  }

  async show(frame) {
    const packet = await quietly(ask(`frame/${frame}`, { connection: this.connection }));
    if (!packet) return;
    if (this.panel.hidden) this.before = document.activeElement;
    remember({ frame });
    const shut = element("button", { type: "button", className: "shut" }, "close");
    shut.addEventListener("click", () => this.close());
    const side = packet.from_client ? "client → server" : "server → client";
    this.panel.replaceChildren(
      shut,
      element("p", { className: "kicker" }, `${side}, ${formatted(packet.ts_ns, "instant")[0]}`),
      element("h2", {}, `Frame ${packet.frame}`),
      element("p", { className: "why" }, packet.sentence ?? ""),
      element("p", {}, element("b", {}, String(packet.kind ?? "")), packet.kind_means ? `: ${packet.kind_means}` : ""),
      ...this.wait(packet),
      element("h3", {}, "Fields"),
      list(packet.fields.map(({ label, value, kind, tooltip }) => [label, ...formatted(value, kind), tooltip])),
    );
    this.panel.hidden = false;
    this.panel.focus({ preventScroll: true });
  }

  /** The wait that this packet ended. */
  wait({ wait, from_client }) {
    if (!wait) return [];
    const show = element("button", { type: "button", className: "jump" }, "Show this wait");
    show.addEventListener("click", () => this.jump(wait.start_ns, wait.end_ns, from_client ? "client" : "server"));
    const line = element("p", { className: "filter" }, element("span", { className: "term" }, "Wireshark filter"), " ", element("code", {}, wait.filter ?? ""), " ");
    const button = element("button", { type: "button", className: "copy" }, "copy");
    button.addEventListener("click", () => copy(wait.filter, button));
    line.append(button);
    return [
      element("h3", {}, `The wait before it: ${duration(wait.end_ns - wait.start_ns)}`),
      element("p", {}, swatch(wait.cause), ` ${wait.cause}, ${wait.confidence}: ${wait.means}`),
      ...(wait.evidence ? [element("p", {}, element("span", { className: "term" }, "Evidence"), ` ${wait.evidence}`)] : []),
      ...(wait.filter ? [line] : []),
      element("p", {}, show),
    ];
  }
}

function list(rows) {
  const made = element("dl");
  for (const [label, text, exact, tooltip] of rows) made.append(element("dt", { title: tooltip ?? "" }, label), element("dd", { title: exact }, element("bdi", {}, text)));
  return made;
}
