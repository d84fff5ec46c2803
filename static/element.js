// Stripe's Payment Element. The card is typed into a frame of Stripe's, which no script of this page can read, and the page
// is given a confirmation token for it: a name for the card that is good for one payment, and for nothing without the shop's
// secret key. Making one charges nothing and begins no payment.
//
// Stripe.js comes from Stripe on every visit and is never kept here, as its terms have it.
import { read } from "./talk.js";

const source = "https://js.stripe.com/v3/";
const patience = 20_000; // how long Stripe.js and its frame may take to come, in ms

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const forced = window.matchMedia("(forced-colors: active)");

// challenge lets Stripe.js show the bank's question (3-D Secure) over this page. It resolves to true when the question was
// answered, or put away; to false if it could not be shown. What came of it only the shop can say, which asks Stripe.
export async function challenge(key, secretURL, timeout) {
  try {
    const [Stripe, answer] = await Promise.all([load(), read(secretURL, timeout)]);
    if (!answer) return true; // there is nothing to answer any more
    await Stripe(key, { locale: "en" }).handleNextAction({ clientSecret: answer.client_secret });
    return true;
  } catch {
    return false;
  }
}

// mount puts the element into its place. It resolves to {token}, or to null if Stripe.js or its frame does not come: it is
// blocked, or there is no network.
//
// token() resolves to {token}; to {refused}, with Stripe's words for what is missing or wrong in the form; or to neither
// if Stripe did not answer in time.
export async function mount(place, returnURL, timeout) {
  try {
    const { key, amount, currency } = place.dataset;
    const stripe = (await load())(key, { locale: "en" });
    const elements = stripe.elements({
      mode: "payment", amount: Number(amount), currency, paymentMethodTypes: ["card"], appearance: appearance(),
    });
    // A wallet opens a window of its own, which this page's isolation (COOP) would cut off.
    const card = elements.create("payment", { wallets: { applePay: "never", googlePay: "never" } });
    const came = new Promise((resolve, reject) => {
      card.on("ready", resolve);
      card.on("loaderror", reject);
    });
    card.mount(place);
    for (const scheme of [dark, forced]) scheme.addEventListener("change", () => elements.update({ appearance: appearance() }));
    await within(patience, came);
    return { token: () => within(timeout, token(stripe, elements, returnURL)).catch(() => ({})) };
  } catch {
    return null;
  }
}

async function token(stripe, elements, returnURL) {
  const { error: incomplete } = await elements.submit();
  if (incomplete) return { refused: incomplete.message };
  const { error, confirmationToken } = await stripe.createConfirmationToken({ elements, params: { return_url: returnURL } });
  if (confirmationToken) return { token: confirmationToken.id };
  return ["card_error", "validation_error"].includes(error.type) ? { refused: error.message } : {};
}

// load gives Stripe.js, once it has run.
function load() {
  if (window.Stripe) return window.Stripe;
  const script = Object.assign(document.createElement("script"), { src: source, async: true });
  const loaded = new Promise((resolve, reject) => {
    script.onload = () => window.Stripe ? resolve(window.Stripe) : reject(new Error("no Stripe"));
    script.onerror = () => reject(new Error("not loaded"));
  });
  document.head.append(script);
  return within(patience, loaded);
}

function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("late")), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// appearance is this page's look for a frame that cannot read its stylesheet. Where a system's own colours are forced on
// pages, the frame is left to them.
function appearance() {
  const theme = dark.matches ? "night" : "stripe";
  if (forced.matches) return { theme };
  const css = getComputedStyle(document.documentElement);
  const of = (name) => css.getPropertyValue(name).trim();
  return {
    theme,
    variables: {
      colorPrimary: of("--ink"), colorBackground: of("--paper"), colorText: of("--ink"), colorTextSecondary: of("--ink-2"),
      colorTextPlaceholder: of("--ink-3"), colorDanger: of("--stop"), fontFamily: of("--sans"), borderRadius: of("--round"),
    },
  };
}
