// The client's half of the protocol, as a state machine: which key is sent, when the same payment is sent again, and when
// a new key may be taken. There is no page, no network and no clock in here: all three are arguments, so every rule below
// is tested by feeding events and reading what comes out.
//
// A submission is one press of Pay: {order, key, method, created_at}, or with a confirmation token for the card, {order, key,
// token, created_at}. Every send of it carries its own key and its own method or token; no other is ever sent for it. A new
// key is taken from an answer alone, and only from one that says safe_new_key and names it.
//
//	ready        Pay can be pressed
//	preparing    a confirmation token is being made for the press; nothing was sent, and nothing is stored
//	testing      "Try to break it" is sending; Pay cannot be pressed
//	sending      a send is on its way
//	waiting      the next send, or the next question, is due at state.due
//	asking       the order is being read
//	handed_over  two minutes did not settle it: it says so, and goes on asking, slowly
//	stopped      the shop refused in a way that only loading the order again can mend
//	leaving      the browser is going to the order's page

export const patience = 120_000; // how long a payment may stay unsettled before it is handed over, in ms
const backoff = { first: 1_000, most: 8_000, least: 250 };
const hiddenPace = 15_000; // the least pause while nobody looks at the page
const slowPace = 20_000; // between questions after the hand-over
const stint = 30_000; // how long a press of "Send this same payment again" goes on for

// How an order stands, in its own JSON: paid, refunded, expired, payable, pending, requires_action, processing, closing.
export function standing(order) {
  if (order.status !== "open") return order.status;
  if (!order.payment_key) return "closing";
  const slot = (order.payments ?? []).find((p) => ["pending", "requires_action", "processing", "succeeded"].includes(p.status));
  if (slot) return slot.status === "succeeded" ? "paid" : slot.status;
  return "payable";
}

// fresh is false for a submission that must not be sent any more: past half the retention its key may be forgotten when
// it arrives, and would be a new payment. A time in the future is a clock that was set back, and proves nothing; a minute
// of it is a clock that was corrected.
export function fresh(submission, keep, now) {
  const age = now - submission.created_at;
  return age >= -60_000 && age <= keep;
}

// open gives the state of a page that was just loaded, and its first effects.
//
// page: kind ("checkout" or "checking"), order, key (what Pay would send), keep (half the retention, ms); on the checking
// page also standing, since (when the payment was made, ms) and resend ({key, method} or {key, token}), where the page offers that.
// stored is the submission that this browser kept for the order, or null.
export function open(page, stored, { now, random = 1, hidden = false }) {
  const state = {
    phase: "ready", page: page.kind, order: page.order, key: page.key ?? "", keep: page.keep,
    standing: page.standing ?? "payable", submission: null, unknown: false, why: "", payment: page.payment ?? "",
    next: "", sends: 0, turn: 0, then: "", due: 0, deadline: now + patience, handed: false, notice: null,
  };
  if (page.kind === "checking") return openChecking(state, page, stored, { now, random, hidden });
  if (!stored) return { state, effects: [] };
  // The order has another key by now: the shop settled that submission, and this page says how.
  if (stored.key !== state.key) return { state, effects: [{ do: "forget" }] };
  if (!fresh(stored, page.keep, now)) return ask({ ...state, submission: null }, [{ do: "forget" }]);
  return send({ ...state, submission: stored, unknown: true, why: "resumed", deadline: stored.created_at + patience });
}

function openChecking(state, page, stored, clock) {
  const { resend } = page;
  const kept = stored && resend && stored.key === resend.key;
  const forget = stored && !kept ? [{ do: "forget" }] : [];
  const since = kept ? stored.created_at : page.since ?? clock.now;
  state = { ...state, deadline: since + patience, why: page.standing, unknown: page.standing === "pending" };
  const submission = resend && { order: page.order, key: resend.key, ...paying(resend), created_at: since };
  if (submission && fresh(submission, page.keep, clock.now)) {
    const { state: next, effects } = send({ ...state, submission });
    return { state: next, effects: [...forget, ...effects] };
  }
  return wait(state, "ask", page.standing, 0, clock, forget);
}

// step takes an event to the next state and to what is to be done. clock is {now, random, hidden}: ms, 0 to 1, and whether
// the page is out of sight. Answers carry the turn of the effect that asked for them; late ones are not listened to, which
// is safe, since the same question gets the same answer again.
export function step(state, event, clock) {
  const stale = ["answer", "order", "lost", "missing", "prepared", "unprepared"].includes(event.type) && event.turn !== state.turn;
  if (stale) return { state, effects: [] };
  switch (event.type) {
    case "submit": return submit(state, event, clock);
    case "press": return press(state);
    case "prepared": return submit({ ...state, phase: "ready" }, event, clock);
    case "unprepared": return giveUp(state, event);
    case "blocked": return blocked(state);
    case "answer": return answer(state, event, clock);
    case "lost": return lost(state, clock);
    case "order": return read(state, event.order, clock);
    case "missing": return stop(state, event);
    case "due": return due(state);
    case "check": return check(state);
    case "again": return again(state, clock);
    case "back": return ask(state); // out of the back/forward cache, whatever it was doing
    case "elsewhere": return state.phase === "ready" ? ask(state) : { state, effects: [] };
    case "test": return state.phase === "ready" ? { state: { ...state, phase: "testing", notice: null }, effects: [] } : { state, effects: [] };
    case "tested": return tested(state, event);
  }
  return { state, effects: [] };
}

// idle is true while a press of Pay, or Enter, counts. It counts once: while anything is going on, a second one is nothing.
function idle(state) {
  return state.phase === "ready" && state.page === "checkout";
}

// paying is what a submission pays with: a method of the list, or a confirmation token.
function paying({ method, token }) {
  return token ? { token } : { method };
}

// press is a press of Pay where a token has to be made first, one for each press. Who meanwhile comes back to this page out of
// the back/forward cache asks the order, which makes that token late; a late token is not sent.
function press(state) {
  if (!idle(state)) return { state, effects: [] };
  const turn = state.turn + 1;
  return { state: { ...state, phase: "preparing", turn, notice: null }, effects: [{ do: "prepare", turn }] };
}

// giveUp ends a press for which there is no token: Stripe refused what is in the form, or did not answer. The key is as
// unused as before.
function giveUp(state, { refused }) {
  return { state: { ...state, phase: "ready", notice: { says: refused ? "card_refused" : "card_lost", refused } }, effects: [] };
}

// blocked is a page on which no token can be made, as Stripe's element did not come. A submission on its way does not need
// one.
function blocked(state) {
  if (!["ready", "preparing"].includes(state.phase)) return { state, effects: [] };
  return { state: { ...state, phase: "stopped", notice: { says: "card_blocked" } }, effects: [] };
}

function submit(state, event, { now }) {
  if (!idle(state)) return { state, effects: [] };
  const submission = { order: state.order, key: state.key, ...paying(event), created_at: now };
  const begun = { ...state, submission, unknown: false, why: "", next: "", sends: 0, deadline: now + patience, handed: false, notice: null };
  const { state: sending, effects } = send(begun);
  return { state: sending, effects: [{ do: "store", submission }, ...effects] }; // stored before it is sent
}

function send(state) {
  const turn = state.turn + 1;
  return { state: { ...state, phase: "sending", turn, sends: state.sends + 1 }, effects: [{ do: "send", turn, submission: state.submission }] };
}

function ask(state, before = []) {
  const turn = state.turn + 1;
  return { state: { ...state, phase: "asking", turn }, effects: [...before, { do: "ask", turn }] };
}

function due(state) {
  if (state.phase !== "waiting" && state.phase !== "handed_over") return { state, effects: [] };
  return state.then === "send" ? send(state) : ask(state);
}

// check is "Check now", the page coming into sight, or the network coming back. While Stripe or the shop is busy there is
// nothing to find out: nothing was charged, and the same payment goes again when Retry-After is over, not before.
function check(state) {
  const known = !state.unknown && ["provider_busy", "overloaded"].includes(state.why);
  return state.phase === "waiting" && known || !["waiting", "handed_over"].includes(state.phase) ? { state, effects: [] } : ask(state);
}

// again is "Send this same payment again": the same key, at once, and for a while as often as the shop allows.
function again(state, { now }) {
  if (!state.submission || !["waiting", "handed_over"].includes(state.phase)) return { state, effects: [] };
  return send({ ...state, sends: 0, deadline: Math.max(state.deadline, now + stint) });
}

// answer reads what came back for a send. Only an answer of the shop's own is one: a page of a proxy or of a hotel's
// network, whatever its status, says nothing about the payment.
function answer(state, a, clock) {
  if (state.phase !== "sending") return { state, effects: [] };
  if (!a.ours) return lost(state, clock);
  const code = a.body.code ?? "";
  const named = { ...state, payment: a.body.payment?.id ?? state.payment };
  if (a.status < 300) return leave(state, { replayed: a.replayed });
  switch (code) {
    case "request_in_progress":
      return wait({ ...named, unknown: true }, "send", code, a.retryAfter, clock);
    case "claim_contended":
    case "overloaded": // nothing was claimed by this send; an earlier one may still be unknown
      return wait(named, "send", code, a.retryAfter, clock);
    case "provider_busy": // the key was released: this attempt, and all before it, surely took nothing
      return wait({ ...named, unknown: false, next: newKey(a.body) }, "send", code, a.retryAfter, clock);
    case "provider_refused":
      return refused(state, a);
  }
  if (a.status >= 500) return wait({ ...named, unknown: true }, "send", code, a.retryAfter, clock);
  if (a.status === 402) return refused(state, a);
  if (a.status === 409) return leave(state, { code });
  // With no key to go on with, the order is being paid, is paid or is closed, by the request that has this one's key: only
  // its own page can answer whether the card was charged.
  if (code === "key_reused") return newKey(a.body) ? refused(state, a) : leave(state, a.body.safe_new_key === true ? { code } : {});
  return stop(state, a);
}

// newKey is the only way to a new key: the answer says that one is safe, and names it.
function newKey(body) {
  return body.safe_new_key === true && typeof body.payment_key === "string" ? body.payment_key : "";
}

// refused ends a submission by which no money moved and none can: Pay comes back, with the next key.
function refused(state, { body }) {
  const key = newKey(body);
  if (state.page !== "checkout" || !key) return leave(state, { code: body.code });
  const said = { payment_not_made: "payment_not_made", provider_refused: "provider_refused", key_reused: "out_of_date" };
  return giveBack(state, key, { says: said[body.code] ?? "declined", decline: body.decline_code ?? body.code });
}

function giveBack(state, key, notice) {
  const ready = { ...state, phase: "ready", key, submission: null, unknown: false, why: "", next: "", sends: 0, handed: false, notice };
  return { state: ready, effects: [{ do: "forget" }] };
}

// leave goes to the order's own page, which says how it stands. What was settled is not to be sent again; what is still
// pending stays stored, and that page takes it up.
function leave(state, { replayed = false, code = "", pending = false }) {
  const left = { ...state, phase: "leaving", submission: pending ? state.submission : null };
  return { state: left, effects: [...(pending ? [] : [{ do: "forget" }]), { do: "go", replayed, code }] };
}

// stop is for a refusal that the same request would meet again: no session, another customer, a page that is too old. Where
// the shop did not know who asked, a submission whose outcome is unknown stays stored, in case the session comes back.
function stop(state, { status, body = {} }) {
  const kept = state.unknown && [401, 403, 404].includes(status);
  const notice = { says: "stopped", code: body.code ?? "" };
  const stopped = { ...state, phase: "stopped", notice, unknown: kept, submission: kept ? state.submission : null };
  return { state: stopped, effects: kept ? [] : [{ do: "forget" }] };
}

// lost is a send or a question without an answer. After a send the money may have moved. After a question with nothing on
// its way Pay comes back: its key is the order's, so that whatever happened meanwhile, it cannot charge twice.
function lost(state, clock) {
  if (state.phase === "sending") return wait({ ...state, unknown: true }, "send", "lost", 0, clock);
  if (state.phase !== "asking") return { state, effects: [] };
  if (state.submission) return wait(state, "send", state.why, 0, clock);
  if (state.page === "checking") return wait(state, "ask", state.why, 0, clock);
  return { state: { ...state, phase: "ready" }, effects: [] };
}

// read takes an order that was asked for. A page that shows something else than what is true goes to where it is.
function read(state, order, clock) {
  if (state.phase !== "asking") return { state, effects: [] };
  const now = standing(order);
  if (state.page === "checking") {
    if (now !== state.standing) return leave(state, { pending: now === "pending" });
    return wait(state, state.submission ? "send" : "ask", state.why, 0, clock);
  }
  // After a busy Stripe the order has the next key, while the submission keeps its own, which is still good.
  const ours = order.payment_key === state.key || (state.submission && !state.handed && order.payment_key === state.next);
  if (now !== "payable" || !ours) return leave(state, { pending: now === "pending" });
  // Nobody holds the order: a submission on its way did not arrive. It is sent again as it was; but after the hand-over,
  // when nobody may be looking any more, it is for the person to press Pay. The key is the same, should it still arrive.
  if (state.submission && state.handed) return giveBack(state, state.key, { says: "not_arrived" });
  if (state.submission) return send(state);
  return { state: { ...state, phase: "ready", why: "", sends: 0 }, effects: [] };
}

// wait pauses before the next send or question, with full jitter, and no shorter than Retry-After asks. What is not settled
// when the patience ends is handed over; what surely took no money gives Pay back.
function wait(state, then, why, retryAfter, { now, random, hidden }, before = []) {
  const over = now >= state.deadline;
  if (over && state.unknown) {
    const due = now + slowPace;
    return { state: { ...state, phase: "handed_over", handed: true, why, then: "ask", due }, effects: [...before, { do: "wait", ms: slowPace }] };
  }
  if (over && then === "send") {
    if (state.page !== "checkout") return leave(state, { code: why });
    return giveBack(state, state.next || state.key, { says: why === "provider_busy" ? "still_busy" : "still_shop_busy" });
  }
  const most = Math.min(backoff.most, backoff.first * 2 ** Math.min(state.sends, 10));
  let ms = Math.max(retryAfter || 0, backoff.least, random * most, hidden ? hiddenPace : 0, over ? slowPace : 0);
  if (!over) ms = Math.min(ms, state.deadline - now); // one last try when the patience ends, however long it was told to wait
  const tries = then === "ask" ? state.sends + 1 : state.sends; // a question is counted here, a send where it is sent
  return { state: { ...state, phase: "waiting", why, then, due: now + ms, sends: tries }, effects: [...before, { do: "wait", ms }] };
}

// tested ends an experiment of "Try to break it", with the answers that it got and the key that the order has now. Of two
// safe keys in the answers it takes the order's own.
function tested(state, { answers, standing: now, key }) {
  if (state.phase !== "testing") return { state, effects: [] };
  const safe = answers.map((a) => newKey(a.body ?? {})).filter(Boolean);
  const next = safe.includes(key) ? key : safe.at(-1) ?? state.key;
  if (now === "payable") return { state: { ...state, phase: "ready", key: next }, effects: [] };
  return { state: { ...state, phase: "stopped", standing: now, notice: { says: "" } }, effects: [] };
}

// says names what the page tells the person in a state: a template of the page, or "" for nothing.
export function says(state) {
  if (state.notice) return state.notice.says;
  if (state.handed && state.phase !== "leaving") return "handed_over";
  const going = state.phase === "waiting" || (state.phase === "sending" && (state.sends > 1 || state.why === "resumed"));
  if (state.phase === "asking") return state.submission && state.unknown ? "checking" : "";
  if (!going) return "";
  if (state.why === "request_in_progress") return "on_its_way";
  if (state.unknown) return "checking";
  return { provider_busy: "busy", overloaded: "shop_busy", claim_contended: "on_its_way" }[state.why] ?? "checking";
}

// charged answers "was I charged?" as far as this page knows: no, unknown, processing, or yes. While a send is on its way
// nobody knows, and another tab says so.
export function charged(state) {
  if (state.unknown || ["sending", "testing"].includes(state.phase)) return "unknown";
  return { paid: "yes", processing: "processing", payable: "no", requires_action: "no" }[state.standing] ?? "unknown";
}

// retryAfter reads the header of that name: seconds, or a date (RFC 9110, section 10.2.3). It gives ms from now, or 0.
export function retryAfter(text, now) {
  if (/^\s*\d+\s*$/.test(text ?? "")) return Number(text) * 1_000;
  const date = Date.parse(/^[A-Z][a-z]{2}, /.test(text ?? "") ? text : "");
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}
