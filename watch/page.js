"use strict";
// Shows each event in place of what was there. Tables keep how far they were scrolled, and the log shows its end unless
// somebody reads above it.
(() => {
  const main = document.getElementById("main"), connection = document.getElementById("connection"), steering = document.getElementById("steering");
  const answers = (yes) => { if (steering) steering.parentElement.hidden = !yes; }; // nothing stops a process that is gone
  const key = (e) => e.id || e.getAttribute("aria-label")?.replace(/\d+/g, "");
  const find = (name) => [...main.querySelectorAll(".wide, details")].find((e) => key(e) === name);
  const atEnd = (e) => e.scrollTop + e.clientHeight >= e.scrollHeight - 4;
  const showEnd = () => { for (const e of main.querySelectorAll(".log")) e.scrollTop = e.scrollHeight; };
  showEnd();

  const source = new EventSource("/events");
  source.onmessage = (event) => {
    const before = [...main.querySelectorAll(".wide")].map((e) => ({ name: key(e), left: e.scrollLeft, top: e.scrollTop, end: atEnd(e) }));
    const opened = [...main.querySelectorAll("details[open]")].map(key);
    const active = document.activeElement;
    const inside = main.contains(active) && { name: key(active.closest("details, .wide") ?? active), summary: active.tagName === "SUMMARY" };
    main.innerHTML = event.data;
    for (const name of opened) { const e = find(name); if (e) e.open = true; }
    showEnd();
    for (const { name, left, top, end } of before) {
      const e = find(name);
      if (!e) continue;
      e.scrollLeft = left;
      if (!end || !e.classList.contains("log")) e.scrollTop = top;
    }
    if (inside) {
      const e = find(inside.name);
      (inside.summary ? e?.querySelector("summary") : e)?.focus({ preventScroll: true });
    }
    document.title = "ndls: " + main.querySelector("h1").textContent;
    connection.textContent = "";
    answers(true);
  };
  source.onerror = () => { answers(false); connection.textContent = "The process of the run does not answer: it has ended, or was stopped. This page shows the last that it said."; };

  steering?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.target, said = document.getElementById("steered"), act = event.submitter?.value;
    const worker = form.worker.value.trim();
    if (act === "worker" && !worker) { said.textContent = "Name the worker."; form.worker.focus(); return; }
    const where = act === "worker" ? "/drain?worker=" + encodeURIComponent(worker) : "/" + act;
    try {
      const answer = await fetch(where, { method: "POST", headers: { Authorization: "Bearer " + form.token.value } });
      said.textContent = (await answer.text()).trim();
    } catch { said.textContent = "The process of the run does not answer."; }
  });
  addEventListener("beforeprint", () => { for (const e of main.querySelectorAll("details")) e.open = true; });
})();
