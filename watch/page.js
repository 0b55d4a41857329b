"use strict";
// Shows each event in place of what was there. Tables keep how far they were scrolled.
(() => {
  const main = document.getElementById("main"), connection = document.getElementById("connection");
  const source = new EventSource("/events");
  source.onmessage = (event) => {
    const scrolled = [...main.querySelectorAll(".wide")].map((e) => [e.getAttribute("aria-label"), e.scrollLeft]);
    const focused = document.activeElement?.getAttribute?.("aria-label");
    main.innerHTML = event.data;
    for (const [label, left] of scrolled) {
      const e = main.querySelector(`[aria-label="${label}"]`);
      if (e) e.scrollLeft = left;
    }
    if (focused) main.querySelector(`[aria-label="${focused}"]`)?.focus({ preventScroll: true });
    document.title = "ndls: " + main.querySelector("h1").textContent;
    connection.textContent = "";
  };
  source.onerror = () => { connection.textContent = "The process of the run does not answer: it has ended, or was stopped. This page shows the last that it said."; };
})();
