// Follows a run while it is under way, and shows the page again when it has ended. Without this file the page says how far
// the run was, and "Look again" reads it again; a run is started by a plain form either way.

const run = document.getElementById("lab-run");

// A second press would only be told that the first run is under way.
for (const form of document.querySelectorAll("form[data-run]")) {
  const button = form.querySelector("button");
  form.addEventListener("submit", (event) => {
    if (button.getAttribute("aria-disabled")) return event.preventDefault();
    button.dataset.label ??= button.textContent;
    button.textContent = "Running";
    button.setAttribute("aria-disabled", "true");
  });
  // From the back/forward cache the page comes back as it was left.
  addEventListener("pageshow", (event) => {
    if (!event.persisted || !button.dataset.label) return;
    button.textContent = button.dataset.label;
    button.removeAttribute("aria-disabled");
  });
}

function show({ done, of, now }) {
  document.getElementById("lab-progress").value = done;
  document.getElementById("lab-progress").max = of;
  document.getElementById("lab-done").textContent = done;
  if (now) document.getElementById("lab-now").textContent = now;
}

const look = () => location.replace(run.dataset.url);

if (run && window.EventSource) {
  const events = new EventSource(run.dataset.events);
  events.addEventListener("progress", (message) => show(JSON.parse(message.data)));
  events.addEventListener("ended", () => {
    events.close();
    look();
  });
  // The browser connects again by itself after a lost line, but not after a refusal.
  events.onerror = () => events.readyState === EventSource.CLOSED && setTimeout(look, 2000);
  addEventListener("pagehide", () => events.close());
} else if (run) {
  setTimeout(look, 2000);
}
