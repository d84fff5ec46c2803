// The page as the script sees it. All words are the server's: they lie in <template data-says="..."> and are set in place
// where they become true.

// Page is the checkout page, or the checking page, of one order.
export class Page {
  #root;
  #form;
  #pay;
  #key;
  #resend;
  #check;
  #shown = "";
  #ticking;
  #told;

  constructor(root) {
    const { page, order, keep, timeout, standing, age, payment } = root.dataset;
    Object.assign(this, { kind: page, order, keep: Number(keep), timeout: Number(timeout), standing, payment });
    // An age and not a time, which would be the server's and not this machine's.
    this.since = age === undefined ? undefined : Date.now() - Number(age);
    this.orderURL = `/orders/${encodeURIComponent(order)}`;
    this.paymentsURL = `${this.orderURL}/payments`;
    this.returnURL = new URL(`${this.orderURL}/return`, window.location.href).href;
    this.#root = root;
    this.#form = root.querySelector("#pay");
    this.#resend = root.querySelector("#resend");
    this.#check = root.querySelector("[data-do=check]");
    this.#told = root.querySelector(".notice");
    if (this.#form) {
      this.#pay = this.#form.querySelector(".button-pay");
      this.#pay.hidden = false;
      this.#key = this.#form.querySelector("[name=idempotency_key]");
      // place is where Stripe's element goes, in place of a list of methods.
      this.place = this.#form.querySelector("#element");
      // From the form, as the server wrote it, and not from the field, into which a browser may have put the value of an
      // older page.
      this.key = this.#key.value = this.#form.dataset.key;
    }
    if (this.#resend) {
      const { key, method, token } = this.#resend.dataset;
      this.resend = token ? { key, token } : { key, method };
    }
  }

  // method is what is chosen now.
  get method() { return this.#form.querySelector("[name=payment_method]:checked")?.value; }

  // methods are all that could be chosen, in order.
  get methods() { return [...this.#form.querySelectorAll("[name=payment_method]")].map((radio) => radio.value); }

  // onChallenge calls for a press of "Answer your bank", once at a time, and tells where nothing could be shown. Afterwards the
  // shop asks how it ended, as on the way back from a bank's page.
  onChallenge(call) {
    const button = this.#root.querySelector("#challenge");
    if (!button) return;
    const blocked = this.#root.querySelector("[data-slot=challenge-blocked]");
    button.hidden = false;
    button.addEventListener("click", async () => {
      if (button.getAttribute("aria-disabled")) return;
      button.setAttribute("aria-disabled", "true");
      blocked.hidden = true;
      if (await call(button.dataset.key, `${this.orderURL}/challenge`)) return window.location.replace(this.returnURL);
      blocked.hidden = false;
      button.removeAttribute("aria-disabled");
    });
  }

  elementCame() { this.#form.querySelector("[data-slot=coming]").remove(); }

  onSubmit(call) {
    this.#form?.addEventListener("submit", (event) => {
      event.preventDefault();
      call(this.method);
    });
  }

  onAgain(call) {
    this.#resend?.addEventListener("submit", (event) => {
      event.preventDefault();
      call();
    });
  }

  // onCheck calls for every "Check now". One that has nothing to add to what is going on is an ordinary link.
  onCheck(call) {
    this.#root.addEventListener("click", (event) => {
      const link = event.target.closest?.("[data-do=check]");
      if (link && call(link.href)) event.preventDefault();
    });
  }

  go({ replayed, code }) {
    clearInterval(this.#ticking);
    const query = replayed ? "?replayed=1" : code ? `?code=${encodeURIComponent(code)}` : "";
    window.location.replace(this.orderURL + query);
  }

  show(state, { says, charged }) {
    this.#showButton(state);
    this.#showKey(state);
    if (this.kind === "checking") this.#showChecking(state, says);
    else this.#showCheckout(state, says, charged);
    this.#tick(state);
  }

  #showButton(state) {
    if (!this.#pay) return;
    const off = state.phase !== "ready";
    this.#pay.dataset.label ??= this.#pay.textContent;
    const sending = ["sending", "leaving"].includes(state.phase) && !state.unknown;
    const { label, sending: sends, preparing, stopped, off: checks } = this.#pay.dataset;
    this.#pay.textContent = !off ? label : sending ? sends : { preparing, stopped }[state.phase] ?? checks;
    // Not disabled: that would take the focus away from whoever pressed it, and drop it on the floor.
    for (const button of [this.#pay, ...document.querySelectorAll("[data-try]")]) {
      if (off) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
    }
    // Nothing to choose while a payment is not settled. The focus goes to what is left.
    const settled = !off || ["preparing", "sending", "testing", "leaving"].includes(state.phase) && !state.unknown;
    const fieldsets = this.#form.querySelectorAll("fieldset");
    if (!settled && document.activeElement?.closest("fieldset")) this.#pay.focus({ preventScroll: true });
    for (const fieldset of fieldsets) fieldset.disabled = !settled;
    if (this.place) this.place.inert = !settled; // a frame is no field, and is not disabled with them
  }

  #showKey(state) {
    if (!this.#key || this.#form.dataset.key === state.key) return;
    this.#form.dataset.key = this.#key.value = state.key;
    for (const slot of this.#root.querySelectorAll("[data-slot=key]")) slot.textContent = state.key;
  }

  #showCheckout(state, says, charged) {
    const line = this.#root.querySelector(".money-line");
    if (line.dataset.charged !== charged) {
      const part = clone(`[data-charged="${charged}"]`);
      if (part) {
        this.#root.querySelector(".total dt").textContent = part.firstElementChild.dataset.total;
        line.replaceWith(part.querySelector(".money-line"));
      }
    }
    if (says === this.#shown) return;
    // A notice of the server that stopped being true goes with the first thing that happens.
    const waiting = this.#root.querySelector("#waiting");
    const outcome = this.#root.querySelector("#outcome");
    const first = this.#shown === "" && state.phase === "ready";
    if (first && says === "") return;
    this.#shown = says;
    waiting.replaceChildren();
    outcome.replaceChildren();
    if (says === "" && !this.#root.querySelector("h1")) {
      says = state.phase === "preparing" ? "card_reading" : "sending";
      if (says === "card_reading") this.#shown = says; // so that what follows takes its place
    }
    const notice = says && clone(`[data-says="${says}"]`);
    if (!notice) return;
    fill(notice, state);
    this.#head(notice);
    const alerts = state.phase === "ready" || state.phase === "stopped";
    (alerts ? outcome : waiting).replaceChildren(notice);
    // Whoever pressed Pay is at the other end of the page.
    if (alerts) outcome.querySelector(".notice").focus();
    else waiting.querySelector(".notice").scrollIntoView({ block: "nearest" });
  }

  #showChecking(state, says) {
    // Where it is Stripe or the bank that is waited for, the trail says so already.
    const now = this.standing === "pending" && this.#root.querySelector(".trail .now span");
    const part = now && clone(`[data-says="${state.phase === "waiting" || state.phase === "handed_over" ? "next" : "now"}"]`);
    if (part) now.replaceChildren(part);
    const swaps = ["handed_over", "busy", "shop_busy", "stopped"].includes(says) ? says : "";
    if (swaps === this.#shown) return;
    this.#shown = swaps;
    const region = this.#root.querySelector("#waiting");
    const notice = swaps ? clone(`[data-says="${swaps}"]`) : this.#told;
    if (swaps) fill(notice, state);
    region.replaceChildren();
    if (swaps) this.#head(notice);
    region.replaceChildren(notice);
  }

  // head makes the notice's title the h1 of a page that has none, because the notice that had it is gone.
  #head(notice) {
    const title = notice.querySelector(".notice-title");
    if (!title || document.querySelector("main h1")) return;
    const h1 = document.createElement("h1");
    h1.append(...title.childNodes);
    title.replaceWith(h1);
  }

  // tick counts the seconds down. Who listens to the page is told once, not every second: the numbers are aria-live="off".
  #tick(state) {
    clearInterval(this.#ticking);
    const count = () => {
      const left = state.due - Date.now();
      const words = state.phase !== "waiting" && state.phase !== "handed_over" ? "now" : left > 500 ? `in ${Math.ceil(left / 1000)}\u00a0s` : "now";
      for (const slot of this.#root.querySelectorAll("[data-slot=when]")) slot.textContent = words;
      if (words === "now") clearInterval(this.#ticking);
    };
    this.#ticking = setInterval(count, 1000);
    count();
  }
}

function clone(selector) {
  return document.querySelector(`template${selector}`)?.content.cloneNode(true);
}

// fill sets the words that only the state knows.
function fill(notice, state) {
  const reason = notice.querySelector("[data-slot=reason]");
  if (reason) {
    const known = document.querySelector("#reasons").content;
    const words = known.querySelector(`[data-decline="${CSS.escape(state.notice.decline ?? "")}"]`) ?? known.querySelector("[data-decline='']");
    reason.textContent = words.textContent;
  }
  const problem = notice.querySelector("[data-slot=title]") && document.querySelector("#problems").content.querySelector(`[data-code="${CSS.escape(state.notice.code)}"]`);
  if (problem) {
    notice.querySelector("[data-slot=title]").textContent = problem.firstElementChild.textContent;
    notice.querySelector("[data-slot=detail]").textContent = problem.lastElementChild.textContent;
  }
  const detail = state.notice?.refused && notice.querySelector("[data-slot=detail]");
  if (detail) detail.textContent = state.notice.refused;
  const payment = notice.querySelector("[data-slot=payment]");
  if (payment && state.payment) payment.textContent = state.payment;
}
