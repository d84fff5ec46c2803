// "Try to break it": sends the payment of this page in ways that charge twice elsewhere. It uses the shop's public routes,
// with the key and the method of the page, and the shop is not told. What it shows is what came back, and how many charges
// Stripe counts.
import * as talk from "./talk.js";
import { standing } from "./submission.js";

// Each experiment gets send(label, {key, method}), which resolves to a row of the table, and gives all rows, in order.
const experiments = {
  twice: ({ send }) => [send("1"), send("2")],

  eight: ({ send }) => Array.from({ length: 8 }, (_, i) => send(`${i + 1}`)),

  // The second key is what another tab would have if the shop minted one per page. It needs to be another one, and no more.
  tabs: ({ send, key }) => [send("1, first key"), send("2, second key", { key: `${key}-second-tab` })],

  body: ({ send, method, methods }) => {
    const first = send("1");
    const other = methods.find((m) => m !== method);
    return [first, first.then(() => send("2, another card", { method: other }))];
  },

  reply: ({ send, lose, arrived }) => {
    const lost = lose("1, reply lost");
    return [lost, lost.then(arrived).then(() => send("2, the retry"))];
  },
};

// offer puts the panel on the page. submission.begin() takes Pay off and gives the key, or false while the page is busy with
// a payment of its own; submission.end({answers, standing, key}) gives Pay back, or leaves it off.
export function offer(page, submission) {
  const template = document.querySelector("#panel");
  template.replaceWith(template.content.cloneNode(true));
  const panel = document.querySelector("#try");
  const buttons = [...panel.querySelectorAll("[data-try]")];
  const chargesURL = `${page.orderURL}/charges`;
  count();

  for (const button of buttons) button.addEventListener("click", () => run(button));

  async function run(button) {
    const key = submission.begin();
    if (!key) return;
    for (const b of buttons) b.setAttribute("aria-pressed", String(b === button));
    panel.querySelector("[data-slot=result]").replaceChildren();
    panel.querySelector("[data-slot=summary]").textContent = "";
    const begun = performance.now();
    const rows = await Promise.all(experiments[button.dataset.try](tools(key, page)));
    show(rows, button.textContent.trim(), begun);
    const charges = await count();
    const order = await talk.ask(page.orderURL, page.timeout);
    end(rows, order.order, charges);
  }

  // end leaves the table where it is: nobody is led away from it.
  function end(rows, order, charges) {
    const stands = order ? standing(order) : "unknown";
    submission.end({ answers: rows.map((row) => row.answer), standing: stands, key: order?.payment_key });
    if (stands === "payable") return;
    const next = document.querySelector(`template[data-tried="${stands === "paid" ? "paid" : "open"}"]`);
    document.querySelector("#pay").replaceWith(next.content.cloneNode(true));
    if (stands !== "paid") return;
    panel.querySelector("[data-slot=why]").hidden = false;
    for (const b of buttons) b.setAttribute("aria-describedby", "try-why");
    if (charges !== undefined && charges !== 1) panel.querySelector(".count").dataset.charges = "wrong";
  }

  // count asks Stripe, through the shop: a page may speak to its own origin alone.
  async function count() {
    const answer = await talk.read(chargesURL, page.timeout);
    const known = Number.isInteger(answer?.charges);
    const figure = panel.querySelector(".count");
    figure.dataset.charges = known ? String(answer.charges) : "";
    figure.querySelector(".count-value").textContent = known ? String(answer.charges) : "?";
    return known ? answer.charges : undefined;
  }

  function show(rows, name, begun) {
    const { content } = document.querySelector("#answers");
    const table = content.cloneNode(true).firstElementChild;
    table.querySelector("caption").textContent = `The answers to "${name}"`;
    const seen = new Set();
    table.querySelector("tbody").replaceChildren(...rows.map((row) => line(row, seen)));
    panel.querySelector("[data-slot=result]").replaceChildren(table);
    panel.querySelector("[data-slot=summary]").textContent = summary(rows, begun, page);
  }
}

// tools are what an experiment sends with, on one page and one key.
function tools(key, page) {
  const { method, methods, paymentsURL, orderURL, timeout } = page;

  async function send(label, other = {}) {
    const at = performance.now();
    const answer = await talk.pay(paymentsURL, { key, method, ...other }, timeout);
    return { label, answer, ms: performance.now() - at };
  }

  let before; // how many payments the order had

  // lose sends the payment and does not listen: a beacon, which is what a page that is being closed can still send. It is
  // the form of the page, since a beacon has no headers.
  async function lose(label) {
    before = await known();
    const form = new URLSearchParams({ idempotency_key: key, payment_method: method });
    if (!navigator.sendBeacon?.(paymentsURL, form)) fetch(paymentsURL, { method: "POST", body: form, headers: { Accept: "application/json" } }).catch(() => {});
    return { label, answer: { type: "lost" }, ms: undefined };
  }

  // arrived waits until the shop knows of the payment that was lost, so that the retry is one.
  async function arrived() {
    for (let tries = 0; tries < 100 && (await known()) <= before; tries++) await new Promise((next) => setTimeout(next, 50));
  }

  // known is how many payments of the order the shop knows.
  async function known() {
    const read = await talk.ask(orderURL, timeout);
    return read.order?.payments?.length ?? 0;
  }

  return { key, method, methods, send, lose, arrived };
}

// line is a row of the table. A disc is an answer that charged; a red one charged besides another.
function line({ label, answer, ms }, seen) {
  const { status = 0, body = {}, replayed = false } = answer;
  const charge = body.charge ?? body.payment?.charge ?? "";
  const mark = markOf(answer, charge, seen);
  const words = answer.type === "lost" ? ["no answer"] : [String(status), element("span", "wide", ` ${body.code ?? { 201: "Created", 202: "Accepted" }[status] ?? ""}`)];
  return element("tr", "", [
    header(label),
    element("td", "", [glyph(mark), ...words]),
    element("td", "", answer.type === "lost" ? "" : replayed ? "yes" : "no"),
    element("td", "machine", charge ? [element("span", "wide", charge.slice(0, 5)), `\u2026${charge.slice(-4)}`] : ""),
    element("td", "number", ms === undefined ? "" : ms.toFixed(1)),
  ]);
}

function markOf({ type, status, body, replayed }, charge, seen) {
  if (type === "lost") return "fail";
  if (status === 201 && !replayed && charge) {
    seen.add(charge);
    return seen.size > 1 ? "extra" : "charge";
  }
  if (status < 300) return "none";
  if (status === 409) return "told";
  return status >= 500 && body.safe_new_key !== true ? "unknown" : "fail";
}

function summary(rows, begun, page) {
  const answered = rows.filter((row) => row.answer.type !== "lost");
  const replayed = answered.filter((row) => row.answer.replayed).length;
  const counted = (n, one, many = one) => `${n} ${n === 1 ? one : many}`;
  const kinds = [
    [answered.filter((r) => r.answer.status < 300 && !r.answer.replayed).length, "new answer", "new answers"],
    [replayed, "replayed"],
    [answered.filter((r) => r.answer.status === 402 && !r.answer.replayed).length, "declined"],
    [answered.filter((r) => r.answer.status > 402 && !r.answer.replayed).length, "refused or told to wait"],
    [rows.length - answered.length, "without an answer"],
  ].filter(([n]) => n > 0).map(([n, one, many]) => counted(n, one, many));
  return `${counted(rows.length, "copy", "copies")}${spread(begun, page)}: ${kinds.join(", ")}.`;
}

// spread says how far apart the copies left the browser, as the browser measured it: it keeps six connections to a host,
// so of eight copies two wait for a line.
function spread(begun, page) {
  const url = new URL(page.paymentsURL, window.location.href).href;
  const starts = performance.getEntriesByName?.(url, "resource").filter((e) => e.startTime >= begun && e.requestStart > 0).map((e) => e.requestStart) ?? [];
  if (starts.length < 2) return "";
  return `, sent within ${Math.ceil(Math.max(...starts) - Math.min(...starts))}\u00a0ms`;
}

function header(label) {
  const cell = element("th", "", label);
  cell.scope = "row";
  return cell;
}

function element(name, classes, content) {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  made.append(...[content].flat());
  return made;
}

function glyph(mark) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS(svg.namespaceURI, "use");
  for (const [name, value] of Object.entries({ width: 16, height: 16, "aria-hidden": "true", class: "mark" })) svg.setAttribute(name, value);
  for (const [name, value] of Object.entries({ href: `#${mark}`, x: 8, y: 8 })) use.setAttribute(name, value);
  svg.append(use);
  return svg;
}
