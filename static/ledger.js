// Keeps the ledger's page up to date: server-sent events while the page is seen, polling where they do not come through,
// nothing while it is hidden. Between two messages it counts leases and ages on by itself, from the seconds that the
// server gave. Without this file the page stands as it was read.

const box = document.getElementById("ledger");
const live = document.getElementById("ledger-live");
const pollEvery = 5000;

let events;
let poll;
let counted = performance.now(); // when the seconds in the page were true
let told = performance.now();    // when the server said last that they are
let state = "off";               // live, polling, lost or off

const plural = (n, unit) => `${n} ${unit}${n === 1 ? "" : "s"}`;

// ago and lease are the words of the server's own rendering.
export function ago(seconds) {
  const s = Math.max(seconds, 0);
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return plural(Math.floor(s / 86400), "day");
}

export function lease(left) {
  return left > 0 ? `${Math.ceil(left)} s left` : `lapsed ${ago(-left)} ago`;
}

function count() {
  const passed = (performance.now() - counted) / 1000;
  for (const part of box.querySelectorAll("[data-lease]")) {
    const left = Number(part.dataset.lease) - passed;
    const words = part.querySelector(".lease-left").lastChild;
    words.textContent = lease(left);
    const share = Math.min(Math.max(left / Number(part.dataset.total), 0), 1);
    part.querySelector(".lease-fill").setAttribute("width", (48 * share).toFixed(1));
  }
  for (const part of box.querySelectorAll("[data-age]")) part.textContent = ago(Number(part.dataset.age) + passed);
  if (state === "live" || state === "polling") {
    live.textContent = `${state === "live" ? "Live" : "Read every 5 s"}, ${ago((performance.now() - told) / 1000)} ago.`;
  } else if (state === "lost") {
    live.textContent = "Not live: the shop does not answer. Trying again.";
  }
}

// replace puts new content in place and leaves open what was open, and the focus where it was.
function replace(nodes, mark) {
  const open = [...box.querySelectorAll("details[open]")].map((details) => details.id);
  const focused = document.activeElement?.closest("#ledger details")?.id;
  box.replaceChildren(...nodes);
  box.classList.add("unmoved"); // drawings play once, when the page opens
  box.dataset.mark = mark;
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) document.getElementById(focused)?.querySelector("summary")?.focus({ preventScroll: true });
  counted = told = performance.now();
  count();
}

function heard(next) {
  state = next;
  told = performance.now();
  count();
}

function connect() {
  disconnect();
  if (!window.EventSource) return startPolling();
  events = new EventSource(`${box.dataset.events}?after=${encodeURIComponent(box.dataset.mark)}`);
  events.onopen = () => heard("live");
  events.addEventListener("alive", () => heard("live"));
  events.addEventListener("keys", (message) => {
    const template = document.createElement("template");
    template.innerHTML = message.data;
    state = "live";
    replace(template.content.childNodes, message.lastEventId);
  });
  events.onerror = () => {
    state = "lost";
    count();
    // The browser connects again by itself after a lost line, but not after a refusal.
    if (events.readyState === EventSource.CLOSED) startPolling();
  };
}

function startPolling() {
  disconnect();
  poll = setTimeout(async () => {
    try {
      const answer = await fetch("/ledger", { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(10000) });
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("ledger");
      state = "polling";
      if (page.dataset.mark === box.dataset.mark) heard("polling");
      else replace(page.childNodes, page.dataset.mark);
    } catch {
      state = "lost";
      count();
    }
    if (!document.hidden) startPolling();
  }, pollEvery);
}

function disconnect() {
  events?.close();
  events = undefined;
  clearTimeout(poll);
}

if (box) {
  const watch = () => (document.hidden ? disconnect() : connect());
  document.addEventListener("visibilitychange", watch);
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => event.persisted && watch());
  setInterval(count, 1000);
  watch();
}
