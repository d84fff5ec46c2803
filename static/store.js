// Where a submission is kept, so that a reload or a crashed tab does not forget it: this browser's localStorage, or the
// page's own memory where that is blocked, full or missing. Either way the key comes from the server, so what is lost with
// the memory is comfort and never a second charge.

const name = (order) => `payonce.submission.${order}`;
const inMemory = new Map();

// attempt does what may be forbidden: reading window.localStorage alone throws where site data is blocked.
function attempt(work) {
  try {
    return work(window.localStorage);
  } catch {
    return undefined;
  }
}

// get gives the order's submission, or null. What is not one, whoever wrote it, is none.
export function get(order) {
  const text = attempt((storage) => storage.getItem(name(order))) ?? inMemory.get(order);
  return text ? parse(text, order) : null;
}

export function put(submission) {
  const text = JSON.stringify(submission);
  inMemory.set(submission.order, text);
  attempt((storage) => storage.setItem(name(submission.order), text));
}

export function drop(order) {
  inMemory.delete(order);
  attempt((storage) => storage.removeItem(name(order)));
}

// sweep drops what no page would send any more, for orders that were never opened again.
export function sweep(isOld) {
  attempt((storage) => {
    for (const item of Object.keys(storage)) {
      if (!item.startsWith(name(""))) continue;
      const submission = parse(storage.getItem(item), item.slice(name("").length));
      if (!submission || isOld(submission)) storage.removeItem(item);
    }
  });
}

// watch calls when another tab starts or ends a payment of the order.
export function watch(order, call) {
  window.addEventListener("storage", (event) => {
    if (event.key === name(order)) call();
  });
}

function parse(text, order) {
  try {
    const s = JSON.parse(text);
    const isText = (value) => typeof value === "string" && value !== "";
    const whole = s.order === order && isText(s.key) && isText(s.method) !== isText(s.token) && Number.isFinite(s.created_at);
    if (!whole) return null;
    return { order, key: s.key, ...(s.token ? { token: s.token } : { method: s.method }), created_at: s.created_at };
  } catch {
    return null;
  }
}
