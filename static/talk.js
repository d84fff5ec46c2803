// One request, and what it proves, as an event for submission.js. Nothing is sent again in here.
import { retryAfter } from "./submission.js";

// pay sends a submission: the key in the header (a string of RFC 8941), the declared field in the body.
export async function pay(url, { key, method, token }, timeout) {
  const sent = await request(url, timeout, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "Idempotency-Key": `"${key.replace(/["\\]/g, "\\$&")}"` },
    body: JSON.stringify(token ? { confirmation_token: token } : { payment_method: method }),
    redirect: "manual", // no answer of this route is a redirect, so one is not the shop's
  });
  if (!sent) return { type: "lost" };
  const { response, body } = sent;
  const ours = response.status < 300 ? Boolean(body?.id && body?.status) : typeof body?.code === "string";
  return {
    type: "answer", ours, status: response.status, body: body ?? {},
    retryAfter: retryAfter(response.headers.get("Retry-After"), Date.now()),
    replayed: response.headers.get("Idempotent-Replayed") === "true",
  };
}

// ask reads an order.
export async function ask(url, timeout) {
  const sent = await request(url, timeout, { headers: { Accept: "application/json" } });
  if (!sent) return { type: "lost" };
  const { response, body } = sent;
  if (response.ok && body?.id && body?.status) return { type: "order", order: body };
  if ([401, 404].includes(response.status) && typeof body?.code === "string") return { type: "missing", status: response.status, body };
  return { type: "lost" };
}

// read gives the JSON of a GET, or null.
export async function read(url, timeout) {
  const sent = await request(url, timeout, { headers: { Accept: "application/json" } });
  return sent?.response.ok ? sent.body : null;
}

// request gives the answer and its JSON, or null if none came within the timeout. A body that is not JSON is null.
async function request(url, timeout, options) {
  const hangUp = new AbortController();
  const timer = setTimeout(() => hangUp.abort(), timeout);
  try {
    const response = await fetch(url, { ...options, credentials: "same-origin", cache: "no-store", signal: hangUp.signal });
    const text = await response.text();
    return { response, body: json(response.headers.get("Content-Type"), text) };
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}

function json(type, text) {
  if (!/^application\/(problem\+)?json\b/i.test(type ?? "")) return null;
  try {
    const body = JSON.parse(text);
    return body && typeof body === "object" ? body : null;
  } catch {
    return null;
  }
}
