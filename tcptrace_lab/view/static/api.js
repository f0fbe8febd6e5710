// Questions to the server, and what the page says if one has no answer.
const trouble = document.getElementById("trouble");
const base = new URL(document.body.dataset.root || "./", location.href);

/** The address of an API call; parameters that are empty are left out. */
export function address(path, parameters = {}) {
  const url = new URL(`api/${path}`, base);
  for (const [key, value] of Object.entries(parameters)) if (value !== "" && value !== null && value !== undefined) url.searchParams.set(key, value);
  return url.href;
}

let failed = null; // the path of the answer that the page complains about

/** Show one line on the page, about the answer of a path. */
export function say(line, path = null) {
  failed = path;
  trouble.hidden = !line;
  trouble.textContent = line;
}

/** The answer as an object. An aborted question throws AbortError; any other failure is shown on the page, and thrown. */
export async function ask(path, parameters, signal) {
  let line;
  try {
    const answer = await fetch(address(path, parameters), { signal, headers: { Accept: "application/json" } });
    const body = await answer.json();
    if (answer.ok) {
      if (path === failed) say("");
      return body;
    }
    line = body.error ?? `The server answered with status ${answer.status}.`;
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    line = problem instanceof TypeError ? "The server has ended. Start tcptrace-lab view again, and open the address that it prints." : "The server's answer could not be read.";
  }
  say(line, path);
  throw new Error(line);
}

/** A question of which only the latest matters: a new one aborts the one before, and only answers to the latest are passed on. */
export function latest() {
  let running = null;
  return async (path, parameters) => {
    running?.abort();
    running = new AbortController();
    return ask(path, parameters, running.signal);
  };
}

/** For calls whose failure is already on the page. */
export const quietly = (promise) => promise.catch(() => null);

export function debounced(action, wait_ms = 150) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait_ms);
  };
}

// ---- the page's state is in its address, so that a link can be sent ----
export const state = new URLSearchParams(location.hash.slice(1));

/** Store values in the address; empty ones are removed. */
export function remember(changes) {
  for (const [key, value] of Object.entries(changes)) {
    if (value === "" || value === null || value === undefined || value === false) state.delete(key);
    else state.set(key, String(value));
  }
  history.replaceState(null, "", `${location.pathname}${location.search}${state.size ? `#${state}` : ""}`);
}

export const number = (key) => (state.has(key) && Number.isFinite(Number(state.get(key))) ? Number(state.get(key)) : null);

// The address has another use for what follows #, so the skip link moves the focus itself.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
window.addEventListener("hashchange", () => location.reload());
