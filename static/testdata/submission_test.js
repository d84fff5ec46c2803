// The rules of submission.js, one case each. It runs in a browser, or anywhere else that knows ES modules:
// run() gives {passed, failed: [{name, message}]}.
import { charged, fresh, open, patience, retryAfter, says, standing, step } from "../submission.js";

const HOUR = 3_600_000;
const keep = 36 * HOUR;
const at = (now, random = 1, hidden = false) => ({ now, random, hidden });
const page = { kind: "checkout", order: "ord_1", key: "K1", keep };
const stored = (created_at, key = "K1") => ({ order: "ord_1", key, method: "pm_card_visa", created_at });
const checking = { kind: "checking", order: "ord_1", keep, standing: "pending", since: 0, payment: "pay_1", resend: { key: "K1", method: "pm_card_visa" } };
const open_ = { id: "ord_1", status: "open", payment_key: "K1" };
const pending = { ...open_, payments: [{ id: "pay_1", status: "pending" }] };

// A run of the machine: events in, and what it did.
class Run {
  constructor(page, stored = null, clock = at(0)) {
    ({ state: this.state, effects: this.effects } = open(page, stored, clock));
    this.now = clock.now;
  }
  step(event, clock = at(this.now)) {
    this.now = clock.now;
    ({ state: this.state, effects: this.effects } = step(this.state, { turn: this.state.turn, ...event }, clock));
    return this;
  }
  submit(now = this.now, method = "pm_card_visa") { return this.step({ type: "submit", method }, at(now)); }
  answer(status, body = {}, more = {}, clock) { return this.step({ type: "answer", ours: true, status, body: { id: "pay_1", ...body }, retryAfter: 0, replayed: false, ...more }, clock); }
  problem(status, code, more = {}, retryAfter = 0, clock) { return this.answer(status, { code, ...more }, { retryAfter }, clock); }
  does() { return this.effects.map((e) => e.do).join(" "); }
  sends() { return this.effects.filter((e) => e.do === "send").map((e) => e.submission.key).join(" "); }
}

function equal(got, want, what = "") {
  if (JSON.stringify(got) !== JSON.stringify(want)) throw new Error(`${what} is ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
}

const sending = () => new Run(page).submit();
const pressed = () => new Run(page).step({ type: "press" });

const cases = {
  // What a submission is.
  "a submission is stored before it is sent": () => {
    const run = sending();
    equal(run.does(), "store send");
    equal(run.effects[0].submission, { order: "ord_1", key: "K1", method: "pm_card_visa", created_at: 0 });
    equal(run.effects[1].submission, run.effects[0].submission);
  },
  "a second press while anything is going on does nothing": () => {
    for (const run of [sending(), sending().step({ type: "lost" }), sending().problem(409, "request_in_progress"), sending().step({ type: "back" })]) {
      const before = run.state;
      equal(run.submit(5, "pm_card_mastercard").does(), "");
      equal(run.state, before);
    }
  },
  "a paid answer forgets the submission and goes to the order": () => {
    for (const [status, replayed] of [[201, false], [201, true], [202, false]]) {
      const run = sending().answer(status, {}, { replayed });
      equal(run.does(), "forget go");
      equal(run.effects[1].replayed, replayed);
    }
  },

  // The same key again.
  "whatever may have charged is sent again with the same key and the same method": () => {
    const ways = {
      "network": (r) => r.step({ type: "lost" }),
      "a page of a proxy": (r) => r.step({ type: "answer", ours: false, status: 502 }),
      "a page with status 200": (r) => r.step({ type: "answer", ours: false, status: 200 }),
      "request_in_progress": (r) => r.problem(409, "request_in_progress"),
      "claim_contended": (r) => r.problem(409, "claim_contended"),
      "outcome_unknown": (r) => r.problem(503, "outcome_unknown"),
      "internal": (r) => r.problem(500, "internal"),
      "a code of tomorrow": (r) => r.problem(503, "something_new", { safe_new_key: true, payment_key: "K2" }),
      "provider_busy": (r) => r.problem(503, "provider_busy", { safe_new_key: true, payment_key: "K2" }),
      "overloaded": (r) => r.problem(503, "overloaded", { safe_new_key: true }),
    };
    for (const [name, meet] of Object.entries(ways)) {
      const run = meet(sending());
      equal(run.does(), "wait", name);
      equal(run.state.key, "K1", name);
      run.step({ type: "due" });
      equal(run.effects.map((e) => [e.do, e.submission.key, e.submission.method]), [["send", "K1", "pm_card_visa"]], name);
    }
  },
  "a lost answer is unknown, and a busy Stripe is surely not charged": () => {
    const run = sending().step({ type: "lost" });
    equal([says(run.state), charged(run.state)], ["checking", "unknown"]);
    run.step({ type: "due" }).problem(503, "provider_busy", { safe_new_key: true, payment_key: "K2" });
    equal([says(run.state), charged(run.state)], ["busy", "no"]);
    run.step({ type: "due" }).problem(503, "overloaded", { safe_new_key: true });
    equal([says(run.state), charged(run.state)], ["shop_busy", "no"]);
  },
  "a busy shop does not make a lost answer known": () => {
    const run = sending().step({ type: "lost" }).step({ type: "due" }).problem(503, "overloaded", { safe_new_key: true });
    equal([says(run.state), charged(run.state)], ["checking", "unknown"]);
  },
  "Retry-After is honoured, however the dice fall": () => {
    for (const random of [0, 0.5, 1]) {
      const run = sending().problem(503, "provider_busy", {}, 3_000, at(0, random));
      equal(run.effects[0].ms >= 3_000, true, `after ${run.effects[0].ms} ms`);
      equal(run.state.due, run.effects[0].ms);
    }
  },
  "without Retry-After the pause is anywhere up to a bound that doubles": () => {
    const run = sending();
    const most = [];
    for (let i = 0; i < 6; i++) most.push(run.step({ type: "lost" }, at(0, 1)).effects[0].ms) && run.step({ type: "due" });
    equal(most, [2_000, 4_000, 8_000, 8_000, 8_000, 8_000]);
    equal(sending().step({ type: "lost" }, at(0, 0)).effects[0].ms, 250);
    equal(sending().step({ type: "lost" }, at(0, 0.5)).effects[0].ms, 1_000);
  },
  "a page that nobody looks at asks rarely, and at once when it is seen again": () => {
    const run = sending().step({ type: "lost" }, at(0, 0, true));
    equal(run.effects[0].ms, 15_000);
    equal(run.step({ type: "check" }).does(), "ask");
    equal(run.step({ type: "order", order: open_ }).sends(), "K1");
  },
  "an answer to an earlier send is not listened to": () => {
    const run = sending();
    const early = run.state.turn;
    run.step({ type: "lost" }).step({ type: "due" });
    run.step({ type: "answer", turn: early, ours: true, status: 402, body: { safe_new_key: true, payment_key: "K2" } });
    equal([run.state.phase, run.state.key, run.does()], ["sending", "K1", ""]);
  },

  // A new key.
  "a decline takes the next key and gives Pay back": () => {
    const run = sending().problem(402, "card_declined", { safe_new_key: true, payment_key: "K2", decline_code: "insufficient_funds" });
    equal([run.does(), run.state.phase, run.state.key, says(run.state), run.state.notice.decline], ["forget", "ready", "K2", "declined", "insufficient_funds"]);
    equal(run.submit().sends(), "K2");
  },
  "no other answer takes a key": () => {
    const bodies = [{}, { safe_new_key: false, payment_key: "K2" }, { payment_key: "K2" }, { safe_new_key: "true", payment_key: "K2" }, { safe_new_key: true }, { safe_new_key: true, payment_key: 2 }, { safe_new_key: true, payment_key: "" }];
    for (const body of bodies) {
      for (const [status, code] of [[402, "card_declined"], [422, "key_reused"], [503, "provider_refused"], [503, "provider_busy"], [409, "request_in_progress"]]) {
        equal(sending().problem(status, code, body).state.key, "K1", `${code} with ${JSON.stringify(body)}`);
      }
    }
  },
  "while the outcome is unknown no answer in between takes a key": () => {
    const run = sending().problem(503, "outcome_unknown", { safe_new_key: false });
    for (const [status, code] of [[409, "request_in_progress"], [503, "overloaded"], [409, "claim_contended"], [503, "outcome_unknown"]]) {
      run.step({ type: "due" }).problem(status, code, { safe_new_key: true, payment_key: "K2" });
      equal([run.state.phase, run.state.key, run.state.next, run.state.unknown], ["waiting", "K1", "", true], code);
    }
  },
  "not made, refused and out of date give Pay back with the next key": () => {
    for (const [status, code, said] of [[402, "payment_not_made", "payment_not_made"], [503, "provider_refused", "provider_refused"], [422, "key_reused", "out_of_date"]]) {
      const run = sending().problem(status, code, { safe_new_key: true, payment_key: "K2" });
      equal([run.does(), run.state.phase, run.state.key, says(run.state), charged(run.state)], ["forget", "ready", "K2", said, "no"], code);
    }
  },
  "a key that another request holds leads to the order, which knows whether the card was charged": () => {
    equal(sending().problem(422, "key_reused", { safe_new_key: false }).does(), "forget go");
    const run = sending().problem(422, "key_reused", { safe_new_key: true }); // paid, or closed: there is no next key
    equal([run.does(), run.effects[1].code], ["forget go", "key_reused"]);
  },
  "while a send is on its way nobody knows whether the card was charged": () => {
    const run = sending();
    equal([says(run.state), charged(run.state)], ["", "unknown"]);
    run.problem(503, "provider_busy", { safe_new_key: true, payment_key: "K2" });
    equal(charged(run.state), "no");
    equal(charged(run.step({ type: "due" }).state), "unknown");
    equal(charged(new Run(page).step({ type: "test" }).state), "unknown");
  },
  "a page that is hidden and seen again while Stripe or the shop is busy sends no sooner, and forgets nothing": () => {
    for (const code of ["provider_busy", "overloaded"]) {
      const run = sending().problem(503, code, { safe_new_key: true, payment_key: "K2" }, 3_000);
      const before = run.state;
      equal(run.step({ type: "check" }).does(), "", code);
      equal(run.state, before, code);
      equal(run.step({ type: "due" }, at(3_000)).sends(), "K1", code);
    }
    const back = sending().problem(503, "provider_busy", { safe_new_key: true, payment_key: "K2" }).step({ type: "back" });
    equal(back.step({ type: "order", order: { ...open_, payment_key: "K2" } }).sends(), "K1");
    const over = sending().problem(503, "provider_busy", { safe_new_key: true, payment_key: "K2" }).step({ type: "due" });
    over.step({ type: "lost" }, at(patience)).step({ type: "check" });
    equal(over.step({ type: "order", order: { ...open_, payment_key: "K2" } }).does(), "forget go"); // it may have arrived
  },
  "an order that is being paid, is paid or is closed leads to its page": () => {
    for (const code of ["payment_in_progress", "order_already_paid", "order_closed"]) {
      const run = sending().problem(409, code);
      equal([run.does(), run.effects[1].code], ["forget go", code]);
    }
  },
  "a refusal that would be met again stops, and keeps what is unknown": () => {
    for (const [status, code] of [[400, "invalid_request"], [401, "no_session"], [403, "cross_site"], [404, "not_found"], [413, "too_large"], [415, "media_type"], [405, "method_not_allowed"]]) {
      const run = sending().problem(status, code);
      equal([run.does(), run.state.phase, says(run.state), run.state.notice.code, charged(run.state)], ["forget", "stopped", "stopped", code, "no"], code);
      const later = sending().step({ type: "lost" }).step({ type: "due" }).problem(status, code);
      const kept = [401, 403, 404].includes(status);
      equal([later.does(), charged(later.state)], kept ? ["", "unknown"] : ["forget", "no"], code);
    }
  },

  // Two minutes.
  "after two minutes of unknown it is handed over, with its payment's name": () => {
    const run = sending();
    run.problem(503, "outcome_unknown", { payment: { id: "pay_9" } });
    run.step({ type: "due" }, at(patience - 1)).step({ type: "lost" });
    equal([run.state.phase, run.effects[0].ms], ["waiting", 1]); // one last try
    run.step({ type: "due" }, at(patience)).step({ type: "lost" });
    equal([run.state.phase, says(run.state), charged(run.state), run.state.payment], ["handed_over", "handed_over", "unknown", "pay_9"]);
    equal(run.does(), "wait");
    equal(run.step({ type: "due" }).does(), "ask"); // it goes on asking, and sends nothing by itself
    equal(run.step({ type: "lost" }).state.phase, "handed_over");
  },
  "a handed over payment that never arrived gives Pay back, with the same key": () => {
    const run = sending().step({ type: "lost" }, at(patience)).step({ type: "due" });
    equal([run.does(), says(run.state)], ["ask", "handed_over"]); // and it says so while it asks
    run.step({ type: "order", order: open_ });
    equal([run.does(), run.state.phase, run.state.key, says(run.state), charged(run.state)], ["forget", "ready", "K1", "not_arrived", "no"]);
    equal(run.submit().sends(), "K1");
    equal(says(run.state), "");
  },
  "a handed over payment that settles is shown": () => {
    const run = sending().step({ type: "lost" }, at(patience));
    equal(run.state.phase, "handed_over");
    run.step({ type: "check" });
    equal(run.step({ type: "order", order: { ...open_, status: "paid" } }).does(), "forget go");
  },
  "a payment that was not charged in two minutes gives Pay back": () => {
    const busy = sending().problem(503, "provider_busy", { safe_new_key: true, payment_key: "K2" }, 0, at(patience));
    equal([busy.state.phase, busy.state.key, says(busy.state), busy.does()], ["ready", "K2", "still_busy", "forget"]);
    const shop = sending().problem(503, "overloaded", { safe_new_key: true }, 0, at(patience));
    equal([shop.state.phase, shop.state.key, says(shop.state)], ["ready", "K1", "still_shop_busy"]);
  },
  "two minutes are counted from the press, not from the reload": () => {
    const run = new Run(page, stored(0), at(patience + 1)).step({ type: "lost" });
    equal(run.state.phase, "handed_over");
  },
  "a Retry-After beyond two minutes still gets one last try": () => {
    equal(sending().problem(503, "outcome_unknown", {}, 10 * patience).effects[0].ms, patience);
  },

  // After a reload.
  "a stored submission is sent again, as it was": () => {
    const run = new Run(page, stored(0), at(HOUR));
    equal(run.effects.map((e) => [e.do, e.submission]), [["send", stored(0)]]);
    equal([says(run.state), charged(run.state)], ["checking", "unknown"]);
  },
  "a submission older than half the retention is never sent": () => {
    for (const now of [keep + 1, -60_001]) {
      const run = new Run(page, stored(0), at(now));
      equal(run.does(), "forget ask");
      equal(run.step({ type: "order", order: open_ }).does(), "");
      equal([run.state.phase, run.state.submission], ["ready", null]);
      const other = new Run({ ...checking, resend: { key: "K1", method: "pm_card_visa" } }, stored(0), at(now));
      equal(other.sends(), "");
    }
    equal([fresh(stored(0), keep, keep), fresh(stored(0), keep, keep + 1)], [true, false]);
  },
  "a submission that the shop settled meanwhile is forgotten": () => {
    const run = new Run({ ...page, key: "K2" }, stored(0), at(1));
    equal([run.does(), run.state.phase, run.state.key], ["forget", "ready", "K2"]);
  },
  "the checking page takes the submission up, stored or not": () => {
    for (const kept of [null, stored(0)]) {
      const run = new Run(checking, kept, at(10));
      equal(run.sends(), "K1");
      equal(run.problem(402, "card_declined", { safe_new_key: true, payment_key: "K2" }).does(), "forget go");
      equal(new Run(checking, kept, at(10)).answer(201).does(), "forget go");
    }
  },
  "the checking page keeps to the key that holds the order": () => {
    const run = new Run(checking, stored(0, "K0"), at(10));
    equal([run.does(), run.sends()], ["forget send", "K1"]);
  },
  "the checking page hands over, goes on asking, and sends again when it is told to": () => {
    const run = new Run(checking, null, at(patience)).step({ type: "lost" });
    equal([run.state.phase, run.does()], ["handed_over", "wait"]);
    run.step({ type: "due" }).step({ type: "order", order: pending });
    equal([run.state.phase, run.does()], ["handed_over", "wait"]);
    equal(run.step({ type: "again" }, at(patience + 1)).sends(), "K1");
    run.problem(409, "request_in_progress", {}, 1_000); // and once more, when the shop says so
    equal([run.state.phase, run.state.due - run.now <= 2_000, says(run.state)], ["waiting", true, "handed_over"]);
    equal(run.step({ type: "due" }, at(patience + 30_001)).sends(), "K1");
    equal(run.step({ type: "lost" }).state.phase, "handed_over");
  },
  "a page without a submission only asks": () => {
    for (const status of ["processing", "requires_action"]) {
      const run = new Run({ ...checking, resend: null, standing: status }, null, at(0));
      equal(run.does(), "wait");
      for (let i = 1; i < 20; i++) {
        const order = { ...open_, payments: [{ status }] };
        equal(run.step({ type: "due" }, at(i * 10_000)).does(), "ask");
        equal(run.step({ type: "order", order }).does(), "wait");
        equal([run.state.phase, charged(run.state)], ["waiting", status === "processing" ? "processing" : "no"]);
      }
      equal(run.step({ type: "due" }).step({ type: "order", order: { ...open_, status: "paid" } }).does(), "forget go");
    }
  },

  // Back, and other tabs.
  "a page out of the back/forward cache asks before anything": () => {
    for (const run of [new Run(page), sending(), sending().answer(201), sending().step({ type: "lost" })]) {
      equal(run.step({ type: "back" }).does(), "ask");
      equal(run.step({ type: "order", order: { ...open_, status: "paid" } }).does(), "forget go");
    }
    const waiting = sending().step({ type: "back" }).step({ type: "order", order: pending });
    equal(waiting.does(), "go"); // still stored: the checking page takes it up
    const idle = new Run(page).step({ type: "back" }).step({ type: "order", order: open_ });
    equal([idle.state.phase, idle.does()], ["ready", ""]);
    const old = new Run(page).step({ type: "back" }).step({ type: "order", order: { ...open_, payment_key: "K2" } });
    equal(old.does(), "forget go");
    const unsent = sending().step({ type: "back" }).step({ type: "order", order: open_ });
    equal(unsent.sends(), "K1");
  },
  "a question that is lost gives Pay back where nothing is on its way": () => {
    equal(new Run(page).step({ type: "back" }).step({ type: "lost" }).state.phase, "ready");
    equal(sending().step({ type: "back" }).step({ type: "lost" }).state.phase, "waiting");
  },
  "another tab's payment is looked at only by a page that is idle": () => {
    equal(new Run(page).step({ type: "elsewhere" }).does(), "ask");
    equal(sending().step({ type: "elsewhere" }).does(), "");
  },
  "an order that is not this customer's stops": () => {
    const run = new Run(page).step({ type: "back" }).step({ type: "missing", status: 404 });
    equal([run.state.phase, says(run.state)], ["stopped", "stopped"]);
  },

  // A card in Stripe's element, of which a confirmation token is made first.
  "a press makes one token, and sends and stores nothing before it is there": () => {
    const run = pressed();
    equal([run.does(), run.state.phase, run.state.submission, charged(run.state), says(run.state)], ["prepare", "preparing", null, "no", ""]);
    equal(run.step({ type: "press" }).does(), "");
    equal(run.submit().does(), "");
    equal(run.step({ type: "check" }).does(), "");
    equal(run.step({ type: "elsewhere" }).does(), "");
    run.step({ type: "prepared", token: "ctoken_1" }, at(7));
    equal(run.does(), "store send");
    equal(run.effects[0].submission, { order: "ord_1", key: "K1", token: "ctoken_1", created_at: 7 });
    equal(run.effects[1].submission, run.effects[0].submission);
    equal(run.step({ type: "press" }).does(), "");
  },
  "a token that comes late, or twice, is not sent": () => {
    const run = pressed();
    const early = run.state.turn;
    run.step({ type: "back" });
    equal(run.step({ type: "prepared", turn: early, token: "ctoken_1" }).does(), "");
    run.step({ type: "order", order: open_ });
    equal([run.state.phase, run.state.key], ["ready", "K1"]);
    equal(run.step({ type: "prepared", turn: early, token: "ctoken_1" }).does(), "");
    run.step({ type: "press" });
    const turn = run.state.turn;
    equal(run.step({ type: "prepared", token: "ctoken_2" }).sends(), "K1");
    equal(run.step({ type: "prepared", turn, token: "ctoken_2" }).does(), "");
    equal(run.step({ type: "unprepared", turn, refused: "Late." }).state.phase, "sending");
  },
  "whatever may have charged is sent again with the same key and the same token": () => {
    const run = pressed().step({ type: "prepared", token: "ctoken_1" });
    const first = run.effects[1].submission;
    for (const meet of [(r) => r.step({ type: "lost" }), (r) => r.problem(503, "outcome_unknown"), (r) => r.problem(503, "provider_busy", { safe_new_key: true, payment_key: "K2" })]) {
      meet(run).step({ type: "due" });
      equal(run.effects.map((e) => [e.do, e.submission]), [["send", first]]);
    }
  },
  "after a decline the next press makes another token, for the next key": () => {
    const run = pressed().step({ type: "prepared", token: "ctoken_1" });
    run.problem(402, "card_declined", { safe_new_key: true, payment_key: "K2" });
    equal([run.does(), run.state.key, says(run.state)], ["forget", "K2", "declined"]);
    run.step({ type: "press" });
    equal([run.does(), says(run.state)], ["prepare", ""]);
    run.step({ type: "prepared", token: "ctoken_2" });
    equal([run.effects[1].submission.key, run.effects[1].submission.token], ["K2", "ctoken_2"]);
  },
  "a press without a token gives Pay back, with the same key": () => {
    for (const [refused, said] of [["Your card number is incomplete.", "card_refused"], [undefined, "card_lost"]]) {
      const run = pressed().step({ type: "unprepared", refused });
      equal([run.does(), run.state.phase, run.state.key, says(run.state), run.state.notice.refused, charged(run.state)], ["", "ready", "K1", said, refused, "no"]);
      equal(run.step({ type: "press" }).does(), "prepare");
    }
  },
  "an element that does not come stops the page, but nothing that is on its way": () => {
    for (const run of [new Run(page), pressed()]) {
      run.step({ type: "blocked" });
      equal([run.does(), run.state.phase, says(run.state), charged(run.state)], ["", "stopped", "card_blocked", "no"]);
      equal(run.step({ type: "press" }).does(), "");
    }
    for (const run of [sending(), sending().step({ type: "lost" })]) {
      const before = run.state;
      equal(run.step({ type: "blocked" }).state, before);
    }
  },
  "a stored token is sent again after a reload, by both pages, and no new one is made": () => {
    const kept = { order: "ord_1", key: "K1", token: "ctoken_1", created_at: 0 };
    equal(new Run(page, kept, at(9_000)).effects, [{ do: "send", turn: 1, submission: kept }]);
    const resend = { key: "K1", token: "ctoken_1" };
    equal(new Run({ ...checking, resend }, kept, at(9_000)).effects.at(-1).submission, kept);
    equal(new Run({ ...checking, resend }, null, at(9_000)).effects.at(-1).submission, kept);
  },

  // Try to break it.
  "an experiment keeps Pay off and ends with the key that is safe": () => {
    const run = new Run(page).step({ type: "test" });
    equal(run.submit().does(), "");
    const answers = [{ body: { safe_new_key: true, payment_key: "K2" } }, { body: { safe_new_key: false, payment_key: "K3" } }];
    run.step({ type: "tested", answers, standing: "payable" });
    equal([run.state.phase, run.state.key], ["ready", "K2"]);
    const both = new Run(page).step({ type: "test" });
    both.step({ type: "tested", answers: ["K3", "K2"].map((k) => ({ body: { safe_new_key: true, payment_key: k } })), standing: "payable", key: "K3" });
    equal(both.state.key, "K3");
    const unsafe = new Run(page).step({ type: "test" }).step({ type: "tested", answers: [{}], standing: "payable", key: "K9" });
    equal(unsafe.state.key, "K1");
    const paid = new Run(page).step({ type: "test" }).step({ type: "tested", answers: [], standing: "paid" });
    equal([paid.state.phase, charged(paid.state), paid.does()], ["stopped", "yes", ""]); // nobody is led away from the table
    equal(sending().step({ type: "test" }).state.phase, "sending");
  },

  "Retry-After is seconds or a date": () => {
    equal([retryAfter("3", 0), retryAfter(" 120 ", 5), retryAfter(null, 0), retryAfter("soon", 0), retryAfter("-3", 0), retryAfter("", 0)], [3_000, 120_000, 0, 0, 0, 0]);
    const date = "Sat, 14 Nov 2026 10:42:07 GMT";
    equal([retryAfter(date, Date.parse(date) - 7_000), retryAfter(date, Date.parse(date) + 1)], [7_000, 0]);
  },
  "how an order stands": () => {
    const of = (status, more) => standing({ status, ...more });
    equal(of("paid"), "paid");
    equal(of("refunded"), "refunded");
    equal(of("expired"), "expired");
    equal(of("open", { payment_key: "K" }), "payable");
    equal(of("open", {}), "closing");
    equal(of("open", { payments: [{ status: "pending" }] }), "closing");
    equal(of("open", { payment_key: "K", payments: [{ status: "failed" }, { status: "released" }, { status: "canceled" }] }), "payable");
    for (const s of ["pending", "processing", "requires_action"]) equal(of("open", { payment_key: "K", payments: [{ status: "failed" }, { status: s }] }), s);
  },
};

// run runs every case.
export function run() {
  const failed = [];
  for (const [name, test] of Object.entries(cases)) {
    try {
      test();
    } catch (err) {
      failed.push({ name, message: String(err?.message ?? err) });
    }
  }
  return { passed: Object.keys(cases).length - failed.length, failed };
}
