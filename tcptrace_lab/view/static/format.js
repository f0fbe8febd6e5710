// Values as people read them, as `numbers.py` formats them; and small helpers for elements. Text is only ever set as text.
const DASH = "–";

const short = (value) => (value === 0 ? "0" : Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 12 }));

function prefixed(value, unit) {
  const prefixes = ["", "k", "M", "G", "T"];
  let step = 0;
  while (step < prefixes.length - 1 && Math.abs(Number(value.toPrecision(3))) >= 1000) {
    value /= 1000;
    step += 1;
  }
  return `${short(value)} ${prefixes[step]}${unit}`;
}

export const count = (value) => (value === null || value === undefined ? DASH : Number(value).toLocaleString("en"));
export const size = (value) => prefixed(value, "B");

export function duration(ns) {
  if (ns === 0) return "0 s";
  const magnitude = Math.abs(ns);
  if (magnitude >= 600e9) {
    const seconds = Math.round(magnitude / 1e9);
    const [scale, first, small, second] =
      seconds >= 172800 ? [86400, "d", 3600, "h"] : seconds >= 3600 ? [3600, "h", 60, "min"] : [60, "min", 1, "s"];
    const rest = Math.floor((seconds % scale) / small);
    return `${ns < 0 ? "-" : ""}${count(Math.floor(seconds / scale))} ${first}${rest ? ` ${rest} ${second}` : ""}`;
  }
  for (const [unit, of] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]]) if (magnitude >= of) return `${short(ns / of)} ${unit}`;
  return `${ns} ns`;
}

/** Nanoseconds as seconds with nine digits. */
export function exactSeconds(ns) {
  const whole = Math.trunc(Math.abs(ns) / 1e9);
  return `${ns < 0 ? "-" : ""}${whole}.${String(Math.abs(ns) - whole * 1e9).padStart(9, "0")}`;
}

const WORDS = {
  size: (value) => [size(value), `${value} bytes`],
  bytes: (value) => [`${count(value)} B`, `${value} bytes`],
  duration: (value) => [duration(value), `${exactSeconds(value)} s`],
  offset: (value) => [duration(value), `${exactSeconds(value)} s`],
  instant: (value) => [`${(value / 1e9).toFixed(6)} s`, `${exactSeconds(value)} s`],
  rate: (value) => [prefixed(value, "b/s"), `${Math.round(value)} b/s`],
  count: (value) => [count(value), `${value}`],
  ratio: (value) => [short(value), `${value}`],
  share: (value) => [value >= 0.0995 ? `${Math.round(value * 100)}%` : `${(value * 100).toFixed(1)}%`, ""],
  utc: (value) => [`${new Date(value / 1e6).toISOString().slice(0, 19).replace("T", " ")} UTC`, ""], // JSON's numbers have no nanoseconds
  bool: (value) => [value ? "yes" : "no", ""],
};

/** The short form of a value, and its exact form for a tooltip ("" if the short one is exact). */
export function formatted(value, kind) {
  if (value === null || value === undefined) return [DASH, "unknown"];
  return WORDS[kind]?.(value) ?? [Array.isArray(value) ? value.join(", ") : String(value), ""];
}

/** An element with properties and children; strings become text. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** cause → its colour, pattern and meaning. */
export const CAUSES = JSON.parse(document.body.dataset.causes);

export function swatch(cause) {
  const made = element("i", { className: `swatch ${CAUSES[cause]?.pattern ?? ""}`, title: CAUSES[cause]?.means ?? "" });
  made.style.backgroundColor = CAUSES[cause]?.colour ?? "gray";
  return made;
}

/** Put text on the clipboard, and say so on the button. */
export async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
  } catch {
    const field = element("textarea", { value: text });
    document.body.append(field);
    field.select();
    button.textContent = document.execCommand("copy") ? "copied" : "not copied";
    field.remove();
    button.focus();
  }
  setTimeout(() => (button.textContent = before), 2000);
}

/** Filters in the page that can be copied. */
export function addCopying() {
  for (const button of document.querySelectorAll(".filter .copy")) {
    button.addEventListener("click", () => copy(button.parentElement.querySelector("code").textContent, button));
  }
}
