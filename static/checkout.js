// The page's half of the protocol: it runs submission.js, which decides, against the form, the network and the clock.
// Without this file the same form works by itself, with the same key and the same answers.
import { charged, fresh, open, says, step } from "./submission.js";
import * as store from "./store.js";
import * as talk from "./talk.js";
import { Page } from "./page.js";

const root = document.querySelector("[data-page]");
if (root) start(new Page(root));

function start(page) {
  let state;
  let timer;
  let question = page.orderURL;

  const clock = () => ({ now: Date.now(), random: Math.random(), hidden: document.hidden });

  // dispatch is the only place where the state changes.
  function dispatch(event) {
    const before = state;
    go(step(state, event, clock()));
    return state !== before;
  }

  function go(next) {
    state = next.state;
    if (!next.effects.some((effect) => effect.do === "go")) page.show(state, { says: says(state), charged: charged(state) });
    next.effects.forEach(run);
  }

  function run(effect) {
    if (effect.do !== "store" && effect.do !== "forget") clearTimeout(timer);
    switch (effect.do) {
      case "store": return store.put(effect.submission);
      case "forget": return store.drop(page.order);
      case "wait": timer = setTimeout(() => dispatch({ type: "due" }), effect.ms); return;
      case "send": return listen(effect.turn, talk.pay(page.paymentsURL, effect.submission, page.timeout));
      case "ask": {
        const url = question;
        question = page.orderURL;
        return listen(effect.turn, talk.ask(url, page.timeout));
      }
      case "prepare": return prepare(effect.turn);
      case "go": return page.go(effect);
    }
  }

  async function listen(turn, answer) {
    dispatch({ ...(await answer), turn });
  }

  // prepare makes one confirmation token for one press of Pay.
  async function prepare(turn) {
    const card = await element;
    if (!card) return dispatch({ type: "blocked" });
    const { token, refused } = await card.token();
    dispatch(token ? { type: "prepared", turn, token } : { type: "unprepared", turn, refused });
  }

  store.sweep((submission) => !fresh(submission, page.keep, Date.now()));
  go(open(page, store.get(page.order), clock()));

  // Where cards are typed into Stripe's element. A submission that goes on after a reload does not wait for it.
  const element = page.place && import("./element.js").then(({ mount }) => mount(page.place, page.returnURL, page.timeout), () => null);
  element?.then((card) => card ? page.elementCame() : dispatch({ type: "blocked" }));

  // The event and not the click: Enter, a click and a script's requestSubmit all come by here, and a click that is not a
  // submission, on a form that is not filled in, does not.
  page.onSubmit((method) => dispatch(element ? { type: "press" } : { type: "submit", method }));
  page.onChallenge((key, secretURL) => import("./element.js").then(({ challenge }) => challenge(key, secretURL, page.timeout), () => false));
  page.onAgain(() => dispatch({ type: "again" }));
  page.onCheck((url) => {
    question = url;
    return dispatch({ type: "check" });
  });
  store.watch(page.order, () => dispatch({ type: "elsewhere" }));
  window.addEventListener("online", () => dispatch({ type: "check" }));
  document.addEventListener("visibilitychange", () => document.hidden || dispatch({ type: "check" }));
  window.addEventListener("pageshow", (event) => event.persisted && dispatch({ type: "back" }));

  if (document.querySelector("#panel")) {
    import("./try.js").then(({ offer }) => offer(page, {
      begin: () => dispatch({ type: "test" }) && state.key,
      end: (result) => dispatch({ type: "tested", ...result }),
    }), () => {}); // offline just now: the page pays without its panel
  }
}
